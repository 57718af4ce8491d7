"""Files of TPT's answers: filled by several, damaged ones made again."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from made import damaged

from zsntta_cli.methods.live.tuned import AnswerFile, is_known

ASKED = {"text": "t", "prompt": "a {}.", "settings": {"views": 64}}
IMAGES = 500


def answers_of(rows):
    """The answers for some rows, which tell which row they are of."""
    answers, rows = np.full((IMAGES, 2), np.nan), np.asarray(rows, int)
    answers[rows] = rows[:, None] / [1, 7]
    return answers


def answer_file(folder, asked=ASKED, digest="d", name="cars"):
    return AnswerFile(folder / "enc" / f"{name}.h5", asked, digest, IMAGES)


def rows_of(answers):
    """The rows that are known, all of which are right."""
    rows = np.flatnonzero(is_known(answers))
    np.testing.assert_array_equal(answers, answers_of(rows))
    return rows.tolist()


def test_answers_add_up(tmp_path):
    file = answer_file(tmp_path)
    assert rows_of(file.read()) == []
    for rows in ([5, 3], [499], [], [3, 4]):
        file.save(answers_of(rows))
    assert rows_of(file.read()) == [3, 4, 5, 499]


@pytest.mark.parametrize("other", [{"digest": "e"}, {"asked": {**ASKED, "prompt": "{}"}}])
def test_answers_on_other_features_or_of_another_question_are_none(tmp_path, other):
    file, theirs = answer_file(tmp_path), answer_file(tmp_path, **other)
    file.save(answers_of([1, 2]))
    if theirs.path != file.path:  # were it renamed, it would tell
        file.path.rename(theirs.path)
    assert rows_of(theirs.read()) == []
    theirs.save(answers_of([7]))
    assert rows_of(theirs.read()) == [7]


def test_damaged_answers_are_none(tmp_path):
    file, generator = answer_file(tmp_path), np.random.default_rng(0)
    file.save(answers_of(np.arange(40)))
    content, known = file.path.read_bytes(), []
    for _ in range(60):
        file.path.write_bytes(damaged(content, generator))
        known.append(len(rows_of(file.read())))
    assert min(known) < 40
    file.save(answers_of(np.arange(40)))
    assert rows_of(file.read()) == [*range(40)]


def test_of_two_writers_each_adds_what_the_other_lacks(tmp_path):
    files = [answer_file(tmp_path) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        for start in range(0, 100, 10):
            rows = (np.arange(start, start + 8), np.arange(start + 4, start + 14))
            list(threads.map(lambda file, own: file.save(answers_of(own)), files, rows))
    assert rows_of(files[0].read()) == [*range(104)]

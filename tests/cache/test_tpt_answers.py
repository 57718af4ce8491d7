"""Files of TPT's answers: whole after any kill, filled by several, damaged ones made again."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from made import damaged

from zsntta_cli.cache.answers import AnswerFile, is_known, unknown

ASKED = {"text": "t", "prompt": "a {}.", "settings": {"views": 64}}
IMAGES = 500


def answers_of(rows):
    """The answers for some rows, which tell which row they are of."""
    answers, rows = unknown(IMAGES), np.asarray(rows, int)
    answers[rows] = rows[:, None] / [1, 7, 1, 3, 5]
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
        for end in ("", ".json"):
            Path(f"{file.path}{end}").rename(f"{theirs.path}{end}")
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


def work(folder, seed, told):
    """Save answers until killed; tell what is kept for certain."""
    file, generator = answer_file(folder), np.random.default_rng(seed)
    while True:  # an error ends it, and the test with it
        rows = np.unique(generator.integers(0, IMAGES, generator.integers(1, 9)))
        file.save(answers_of(rows))
        told.send(rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="copies this process")
def test_nothing_that_was_saved_is_lost_in_16_kills_of_two_workers(tmp_path):
    file, certain, generator = answer_file(tmp_path), set(), np.random.default_rng(1)
    processes = multiprocessing.get_context("fork")
    for turn in range(8):
        workers = []
        for number in range(2):
            ours, theirs = processes.Pipe(False)
            arguments = (tmp_path, 2 * turn + number, theirs)
            process = processes.Process(target=work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            workers.append((process, ours))
        assert workers[0][1].poll(60)
        time.sleep(generator.uniform(0, 0.03))  # into whatever they are at
        assert all(process.is_alive() for process, _ in workers)
        for process, ours in workers:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            try:
                while ours.poll():
                    certain.update(ours.recv().tolist())
            except EOFError:
                pass
        assert certain <= set(rows_of(file.read()))
    assert len(certain) > 20

"""Files of TPT's answers: whole after any kill, merged by several, damaged ones refused."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
from made import damaged

from zsntta_cli.cache import answers as kept
from zsntta_cli.cache.answers import AnswerFile, Answers
from zsntta_cli.cache.folder import answer_paths, stored
from zsntta_cli.errors import StoreError

ASKED = {"text": "t", "prompt": "a {}.", "settings": {"views": 64}}
IMAGES = 500


def answers_of(rows):
    """Answers that tell which row they are of."""
    whole = np.asarray(rows, np.int32)
    return Answers(whole, whole / 7, whole + 1, whole / 3, whole / 5)


def answer_file(folder, asked=ASKED, digest="d", name="cars"):
    return AnswerFile(folder / "enc" / f"{name}.h5", asked, digest, IMAGES, "cars")


def assert_right(rows, answers):
    assert (np.diff(rows) > 0).all()
    for column, expected in zip(answers, answers_of(rows), strict=True):
        assert np.array_equal(column, expected)
        assert column.dtype == expected.dtype


def test_parts_and_merged_ones_are_read_together(tmp_path):
    file = answer_file(tmp_path)
    assert len(file.read()[0]) == 0
    for rows in ([5, 3], [499], [], [3, 4]):  # out of order, the last one, none, one twice
        file.add(np.array(rows, np.int64), answers_of(rows))
        if rows == [499]:
            file.merge()
    rows, answers = file.read()
    assert rows.tolist() == [3, 4, 5, 499]
    assert_right(rows, answers)
    assert not file.is_complete()
    file.add(np.arange(IMAGES), answers_of(np.arange(IMAGES)))
    file.merge()
    file.merge()
    assert file.is_complete()
    assert_right(*file.read())
    assert answer_paths(tmp_path, "enc", ["cars"]) == [file.path]
    assert answer_paths(tmp_path, "enc", ["pets"]) == []
    assert stored(tmp_path) == []  # they are no features, and nothing unfinished


def test_the_first_answer_of_an_image_stays(tmp_path):
    file = answer_file(tmp_path)
    file.add(np.array([1]), answers_of([1]))
    file.merge()
    file.add(np.array([1]), answers_of([9]))
    assert_right(*file.read())
    file.merge()
    assert_right(*file.read())


@pytest.mark.parametrize("other", [{"digest": "e"}, {"asked": {**ASKED, "prompt": "{}"}}])
def test_answers_on_other_features_or_of_another_question_are_none(tmp_path, other):
    file, theirs = answer_file(tmp_path), answer_file(tmp_path, **other)
    file.add(np.array([1, 2]), answers_of([1, 2]))
    file.merge()
    file.add(np.array([3]), answers_of([3]))
    theirs.path.unlink(missing_ok=True)
    if theirs.path != file.path:  # were it renamed, it would tell
        file.path.rename(theirs.path)
    assert len(theirs.read()[0]) == 0
    theirs.add(np.array([7]), answers_of([7]))
    theirs.merge()
    assert theirs.read()[0].tolist() == [7]


def test_damaged_answers_are_refused_or_whole(tmp_path):
    file, generator = answer_file(tmp_path), np.random.default_rng(0)
    file.add(np.arange(40), answers_of(np.arange(40)))
    file.merge()
    content, refused = file.path.read_bytes(), 0
    for _ in range(60):
        file.path.write_bytes(damaged(content, generator))
        try:
            rows, answers = file.read()
        except StoreError:
            refused += 1
        else:
            assert len(rows) in (0, 40)
            assert_right(rows, answers)
    assert refused > 20


def work(folder, seed, told):
    """Add answers and merge them now and then, until killed; tell what is kept for certain."""
    file, generator = answer_file(folder), np.random.default_rng(seed)
    while True:  # an error ends it, and the test with it
        rows = np.unique(generator.integers(0, IMAGES, generator.integers(1, 9)))
        file.add(rows, answers_of(rows))
        told.send(rows)
        if generator.random() < 0.4:
            file.merge()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="copies this process")
def test_nothing_that_was_added_is_lost_in_16_kills_of_two_workers(tmp_path):
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
        rows, answers = file.read()
        assert certain <= set(rows.tolist())
        assert_right(rows, answers)
    assert len(certain) > 20
    file.merge()
    assert_right(*file.read())
    assert not kept.parts_folder(file.path).exists()

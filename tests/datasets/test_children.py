"""Pictures drawn in other processes: the same ones, whatever becomes of the processes."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from zsntta_cli.datasets.drawn import children
from zsntta_cli.datasets.drawn.builtin import RenderedImages, noise_images, read, render
from zsntta_cli.datasets.images import limited
from zsntta_cli.encoders import batches

ROWS = ((7, 5, 900), (0,), tuple(range(16)), (9_999, 3))


@pytest.fixture
def started(monkeypatch):
    """The processes that are started."""
    found = []

    class Watched(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    return found


def content(images):
    return [image.tobytes() for image in images]


def drawn_here(name):
    return [content(render(name).image(i) for i in rows) for rows in ROWS]


@pytest.mark.parametrize("name", ["shapes", "textures"])
def test_children_draw_the_same(name, started, monkeypatch):
    expected, images = drawn_here(name), render(name)
    monkeypatch.setattr(RenderedImages, "image", None)  # nothing is drawn here
    with ThreadPoolExecutor(3) as threads, children.drawing(images, 2) as draw:
        assert [content(drawn) for drawn in threads.map(draw, ROWS)] == expected
        assert len(started) == 2
        assert all(process.poll() is None for process in started)
    assert all(process.poll() is not None for process in started)


def test_lost_children_are_not_missed(started):
    images, expected = render("shapes"), drawn_here("shapes")
    with children.drawing(images, 2) as draw:
        for i, rows in enumerate(ROWS):
            assert content(draw(rows)) == expected[i]
            for process in started[i : i + 1]:
                process.kill()
                process.wait()


@pytest.mark.parametrize("interpreter", ["/nowhere/python", "", "/bin/false"])
def test_without_children_pictures_are_drawn_here(monkeypatch, interpreter):
    monkeypatch.setattr(sys, "executable", interpreter)
    with children.drawing(render("glyphs"), 1) as draw:
        assert [content(draw(rows)) for rows in ROWS] == drawn_here("glyphs")


def test_a_child_ends_when_nobody_can_ask_it(started):
    with children.drawing(render("shapes"), 1) as draw:
        draw([0])
        [child] = started
        child.stdin.close()
        assert child.wait(60) == 0


def test_children_end_when_what_uses_them_fails(started):
    with pytest.raises(ZeroDivisionError), children.drawing(render("shapes"), 2):
        raise ZeroDivisionError
    assert [process.poll() is None for process in started] == [False, False]


def test_batches_of_many_pictures_come_from_children(started, monkeypatch):
    monkeypatch.setattr(batches, "_MANY", 40)

    def pixels(images, rows, workers=2):
        loaded = batches.load_batches(images, rows, np.asarray, workers, False)
        return np.concatenate([batch for batch, _ in loaded])

    shapes, rows = read("shapes", Path()), [range(100, 125), range(3, 18)]
    expected = pixels(shapes, rows, workers=1)
    for images in (read("digits", Path()), noise_images("uniform", 125, 8), limited(shapes, 125)):
        pixels(images, rows)
    pixels(shapes, [range(39)])
    assert not started
    assert np.array_equal(pixels(shapes, rows), expected)
    assert len(started) == 2


def test_batches_left_early_leave_no_child(started, monkeypatch):
    monkeypatch.setattr(batches, "_MANY", 2)
    rows = [range(i, i + 8) for i in range(0, 800, 8)]
    loaded = batches.load_batches(read("shapes", Path()), rows, np.asarray, 2, False)
    next(loaded)
    loaded.close()
    assert all(process.poll() is not None for process in started)
    assert len(started) == 2

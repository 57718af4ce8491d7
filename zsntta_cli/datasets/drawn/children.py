"""Pictures drawn in processes of their own: drawing holds Python's lock, so threads draw as one.

A child is an interpreter that imports this package alone: no script of the caller's runs again in
it, as it would with `multiprocessing`. It ends when nobody can ask it any more. Where none can be
started, or one is lost, the pictures are drawn here: they are the same.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue

from PIL import Image

from zsntta_cli.datasets.drawn.builtin import RenderedImages, render
from zsntta_cli.datasets.drawn.outlines import SIZE

Draw = Callable[[Sequence[int]], list[Image.Image]]

_CODE = "import sys; sys.path[:] = {}; from {} import answer; answer()"
_BYTES = 3 * SIZE * SIZE  # of a picture


@contextlib.contextmanager
def drawing(images: RenderedImages, processes: int) -> Iterator[Draw]:
    """What draws pictures of a set by their numbers, in so many processes at a time."""
    idle = SimpleQueue[_Child]()
    with contextlib.ExitStack() as started:

        def draw(rows: Sequence[int]) -> list[Image.Image]:
            child = idle.get()
            try:
                return child.draw(images.name, rows)
            except OSError:
                return [images.image(i) for i in rows]
            finally:
                idle.put(child)

        for _ in range(processes):
            idle.put(started.enter_context(_child()))
        yield draw


class _Child:
    """A process that draws, or one that is lost or never was, where it raises OSError."""

    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        self._process = process

    def draw(self, name: str, rows: Sequence[int]) -> list[Image.Image]:
        if self._process is None:
            raise ChildProcessError
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(pickle.dumps((name, list(rows))))
        content = bytearray()
        while missing := _BYTES * len(rows) - len(content):
            part = self._process.stdout.read(missing)
            if not part:
                self._process = None
                raise ChildProcessError
            content += part
        starts = range(0, len(content), _BYTES)
        return [Image.frombytes("RGB", (SIZE, SIZE), content[i : i + _BYTES]) for i in starts]


@contextlib.contextmanager
def _child() -> Iterator[_Child]:
    code = _CODE.format(sys.path, __name__)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", code], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:  # no more processes, no interpreter
        yield _Child(None)
        return
    with process:
        try:
            yield _Child(process)
        finally:
            process.kill()


def answer() -> None:
    """Draw, as a child, what is asked for on standard input, until that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            name, rows = pickle.load(sys.stdin.buffer)
            images = render(name)
            content = b"".join(images.image(i).tobytes() for i in rows)
            while content:
                content = content[os.write(1, content) :]

"""What several tests make or look at; none of it is a test."""

import io
import os
import struct
import sys
import tarfile
import threading
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from zsntta_cli.errors import ZsnttaError
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.progress import Reporter

FIXTURES = Path(__file__).parent / "fixtures"
ZSNTTA = Path(sys.executable).with_name("zsntta")  # the entry point as it is installed
TINY = ("--model", "tiny")


def at_once(count, work):
    """Run `work(number)` in so many threads together; none of them may fail."""
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(work, range(count)))


PROMPT = "a photo of a {}."
MADE_UP = {"model": "made-up", "logit_scale": 20.0}  # an encoder that there is not
# A small CLIP, as open_clip describes one; OpenAI's with "quick_gelu".
CONFIG = {
    "embed_dim": 64,
    "vision_cfg": {
        "image_size": 32, "layers": 12, "width": 64, "patch_size": 8, "head_width": 64,
    },
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 1, "layers": 2},
}  # fmt: skip


class Notes(Reporter):
    """A reporter that remembers, and tells when it was told something."""

    def __init__(self):
        self.notes, self.advanced, self.told = [], [], threading.Event()

    def note(self, text):
        self.notes.append(text)
        self.told.set()

    def track(self, _name, _total, _unit="images"):
        return nullcontext(self.advanced.append)


# A script with a method of one's own, which imports `shifts` from beside itself.
OWN_SCRIPT = '''"""Noise above a cut."""
import shifts
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.settings.options import option

class OwnSettings(MethodSettings):
    cut: float = option(0.5, "Where noise begins.")

class Own(Method):
    Settings = OwnSettings

    def push(self, items, learn=True):
        u = items.noise_score + shifts.SHIFT
        return Decisions(items.class_index, u > self.options.cut, 1 - u)

METHODS["own"] = Own
'''


def decisions(data, settings):
    """What the method of a run decides; of a live one, an iterator of its parts."""
    method = METHODS[settings.method](data, settings.options, settings.threshold)
    return method.run() if method.live else method.push(data)


def own_method(run, settings=MethodSettings, **facts):
    """The class of a method that decides by a function of (data, options, threshold)."""

    class Own(Method):
        """A method of a script."""

        Settings = settings

        def __init__(self, data, options, threshold):
            self.given = options, threshold

        def push(self, items, learn=True):
            return run(items, *self.given)

    for name, value in facts.items():
        setattr(Own, name, value)
    return Own


def fails(result, *parts, code=1, stdout=""):
    """One line, behind notes at most, that says all of `parts`; nothing on stdout unless None."""
    assert result.exit_code == code, result.output
    assert stdout is None or result.stdout == stdout
    *notes, line = result.stderr.splitlines(keepends=True)
    assert all(note.startswith("note: ") for note in notes), result.stderr
    assert line.startswith("error: ")
    for part in parts:
        assert part in line


@contextmanager
def refused(*parts, error=ZsnttaError):
    """What is done meanwhile is refused in one line that says all of `parts`."""
    with pytest.raises(error) as caught:
        yield caught
    line = str(caught.value)
    assert "\n" not in line
    for part in parts:
        assert part in line


def row(result, name):
    """The cells of the row of a table that one of its cells names."""
    lines = (line for line in result.stdout.splitlines() if line.startswith("│"))
    rows = ([cell.strip() for cell in line.split("│")[1:-1]] for line in lines)
    (found,) = (cells for cells in rows if name in cells)
    return found


# A PNG of 45 bytes that says it has 900 million pixels.
_SIZE = b"IHDR" + struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
IMAGE_BOMB = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + _SIZE + struct.pack(
    ">II", zlib.crc32(_SIZE), 0) + b"IDAT"  # fmt: skip


def damaged(content, generator, most=4):
    """Some bytes changed, fewer than `most`, or the end cut off."""
    if generator.random() < 0.2:
        return content[: generator.integers(len(content))]
    broken = bytearray(content)
    for i in generator.integers(len(broken), size=generator.integers(1, most)):
        broken[i] = generator.integers(256)
    return bytes(broken)


def pack(path, files):
    """An archive of `files` (path: bytes) in their order."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


# One piece of code makes all pairs of methods: the suite takes these, and `make torture` all.
PAIRS = ("adand+tda", "adand+oga", "cull+stata")


def with_some_pairs(names):
    """Methods without most of the pairs among them."""
    is_long = "ZSNTTA_TORTURE" in os.environ
    return [name for name in names if is_long or "+" not in name or name in PAIRS]

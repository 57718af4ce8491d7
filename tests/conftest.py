import ctypes
import functools
import gc
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

# A shell's background job ignores Ctrl-C, and so would whatever tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before torch is loaded. Threads that spin while they wait starve the other processes, and where
# there are several workers, one thread for each is the fastest.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Kernels that were made for some shape are of no use to the next test.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

os.environ.pop("COLUMNS", None)  # of the terminal of whoever tests, or of a worker

import hypothesis
import numpy as np
import pytest
from feature_files import write_features
from filelock import FileLock
from made import MADE_UP, PROMPT, TINY, ZSNTTA
from PIL import Image
from typed import typed

from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET, NOISE, WORDS
from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.settings import EncoderChoice

# No test asserts a time, and on a busy machine any example takes long.
hypothesis.settings.register_profile("any-time", deadline=None)
hypothesis.settings.load_profile("any-time")
# A property is tried for so long at most, unless an example has failed and is made smaller.
SECONDS = math.inf if "ZSNTTA_TORTURE" in os.environ else 10


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Bound the time of a property: once it is over, its further examples are not run."""
    if (handle := getattr(getattr(item, "obj", None), "hypothesis", None)) is None:
        return (yield)
    plain, end, failed = handle.inner_test, time.monotonic() + SECONDS, []

    @functools.wraps(plain)
    def bounded(*arguments, **values):
        if not failed and time.monotonic() > end:
            return
        try:
            plain(*arguments, **values)
        except (hypothesis.errors.UnsatisfiedAssumption, hypothesis.errors.StopTest):
            raise  # what an example is not of; no failure
        except BaseException:
            failed.append(True)
            raise

    handle.inner_test = bounded
    try:
        return (yield)
    finally:
        handle.inner_test = plain


_swept = [0]  # pages of memory that were left by the last sweep


def pytest_collection_finish():
    """Let no later sweep look through what is imported: a million objects of torch and others."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    """Free what tests have left, once it is 64 MB.

    An error that a test holds, holds the model that it was raised beside, in a cycle; and the C
    library keeps what is freed.
    """
    if sys.platform != "linux":
        return
    pages = Path("/proc/self/statm")
    if int(pages.read_text().split()[1]) > _swept[0] + (64 << 20) // resource.getpagesize():
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        _swept[0] = int(pages.read_text().split()[1])


def pytest_collection_modifyitems(items):
    """The longest first, so that no worker is left alone with them: slow ones, then whole pages."""
    whole = Path(__file__).parent / "whole"
    items.sort(
        key=lambda item: (item.get_closest_marker("slow") is None, whole not in item.path.parents)
    )


@pytest.fixture(scope="session", autouse=True)
def no_word_on_waiting():
    """A busy machine does not say how far a command is, so that all of stderr can be compared.

    Nothing waits for the disk either, which took half of the time: no test cuts the power.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zsntta_cli.progress._SECONDS_TO_A_WORD", 600)
        patch.setattr("os.fsync", lambda _: None)
        patch.setattr("os.sync", lambda: None)
        yield


@pytest.fixture(scope="session")
def tiny():
    return load_encoder(EncoderChoice("tiny"), "cpu")


@pytest.fixture
def picture_folder(tmp_path):
    """Two classes of small pictures, in the formats people have."""
    root = tmp_path / "pictures"
    generator = np.random.default_rng(0)
    for i in range(12):
        name = f"{'big_cat' if i % 2 else 'dog'}/{i}.{('jpg', 'png', 'bmp')[i % 3]}"
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 256, (40 + i, 50, 3), np.uint8)
        Image.fromarray(pixels).save(root / name)
    return root


@pytest.fixture
def zsntta(tmp_path, monkeypatch):
    """Run the command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    return typed


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Features of small subsets of the built-in sets, made by the command line, once a session."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            extract_built_in(folder.with_suffix(".made"))
            folder.with_suffix(".made").rename(folder)
    return folder / "features"


def extract_built_in(folder):
    folder.mkdir()
    arguments = ["--dataset", "shapes", "--limit", "300", "--batch-size", "50", *TINY]
    result = subprocess.run(
        [ZSNTTA, "extract", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    names = ["shapes", "noise-gaussian", "glyphs", "textures", "other-shapes", "digits"]
    assert [line.split(":")[0] for line in lines] == [f"features/tiny/{n}.h5" for n in names]
    assert "300 images in" in lines[0]
    assert "75 images in" in lines[1]


@pytest.fixture
def cached(zsntta, cache, tmp_path):
    """Run the command line beside those features."""
    kept = shutil.ignore_patterns("records.sqlite*")  # of tests that run beside the features
    shutil.copytree(cache, tmp_path / "features", ignore=kept)
    return zsntta


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    """54 built-in shapes and 6 letters as files, and a folder with all of their features."""
    from zsntta_cli.datasets.drawn.builtin import render
    from zsntta_cli.datasets.tree import LeftOut
    from zsntta_cli.detection.encoding import Encoding
    from zsntta_cli.detection.sources import photos_of
    from zsntta_cli.encoders.text import prompt_features
    from zsntta_cli.progress import Reporter

    root = tmp_path_factory.mktemp("drawn")
    for name, count in (("shapes", 54), ("glyphs", 6)):
        images = render(name)
        for i in range(count):
            place, _, kind = images.sample_ids[i].partition("-")
            path = root / "pictures" / (kind if name == "shapes" else "x") / f"{place[-5:]}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            images.read(i).save(path)
    encoding = Encoding(EncoderChoice("tiny"), root / "features", "cpu", 2, Reporter())
    with encoding.store:
        [photos] = photos_of([str(root / "pictures")], LeftOut())
        encoding.encode(photos)
        assert not [photo.error for photo in photos if photo.error]
        prompt_features(encoding.encode_texts, PROMPT, render("shapes").class_names)
    return root


@pytest.fixture
def pictures(zsntta, drawn, tmp_path):
    """Run the command line beside copies of them."""
    shutil.copytree(drawn / "pictures", tmp_path / "pictures")
    shutil.copytree(drawn / "features", tmp_path / "features")
    return zsntta


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """Two ID sets, two OOD sets, noise and words in 16 dimensions."""
    root = tmp_path_factory.mktemp("made-up") / "features"
    generator = np.random.default_rng(0)
    text = np.linalg.qr(generator.standard_normal((16, 6)))[0].T.astype(np.float32)

    def write(name, centres, labels, kind=DATASET, classes=(), texts=(), ids=None):
        rows = 8 * centres + 1.2 * generator.standard_normal((len(labels), 16))
        write_features(
            root / "made" / f"{name}.h5", kind=kind, name=name, encoder=MADE_UP, source={},
            blocks=[rows.astype(np.float16)], labels=np.asarray(labels, np.int32),
            sample_ids=ids or [f"{name}/{i}" for i in range(len(labels))],
            class_names=classes, texts=texts,
        )  # fmt: skip

    for name, names in (("pets", ["cat", "dog", "ox"]), ("birds", ["owl", "rook", "wren"])):
        labels = generator.integers(0, 3, 400)
        texts = [Text(t, text[:3]) for t in (PROMPT, "art of a {}.")]
        write(name, text[labels], labels, classes=names, texts=texts)
    for i, name in enumerate(("sky", "sand")):
        write(name, text[[3 + i] * 300], [-1] * 300)
    write("noise-gaussian", 0.3 * text[[5] * 60], [-1] * 60, NOISE)
    words = [f"word {i}" for i in range(40)]
    embedded = generator.standard_normal((40, 16)).astype(np.float32)
    embedded /= np.linalg.norm(embedded, axis=1, keepdims=True)
    write("words-nouns", np.empty((0, 16)), [], WORDS, words, [Text(PROMPT, embedded)])
    return root


@pytest.fixture
def simulate(zsntta, features, tmp_path):
    def run(*arguments):
        encoder = () if "--from" in arguments else ("--encoder", "made")
        kept = ("--records", tmp_path / "kept.sqlite")
        return zsntta("simulate", *encoder, "--features-dir", features, *kept, *arguments)

    return run

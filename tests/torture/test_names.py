"""Names of sets, encoders and folders that are found on the disk."""

import os
import shutil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torture.tool import LONG, examples, powerless, run

LETTERS = st.text(
    st.sampled_from("ab1é猫._-:=/ \n\t\x1b\x07\x7f\u202e\u200b\udcff'\"$*?[]{}~%\\"), max_size=12
)
NAMES = st.one_of(
    LETTERS, st.integers(90, 300).map("x".__mul__), st.integers(50, 99).map("猫".__mul__),
    st.sampled_from([".hid", "-x", "words-x", "noise-x", "cifar10", "CON", "~", "a\nerror: b",
                     "\x1b[2Jx", "[/bold]", "a:b:c"]),
)  # fmt: skip

LOOKING = (
    ("cache", "list"), ("cache", "verify"), ("cache", "show", "pets"), ("encoders", "list"),
    ("datasets", "verify", "mine=pictures", "--deep"),
    ("simulate", "--method=mcm", "--encoder=made", "--id=pets", "--ood=all"),
)  # fmt: skip


@pytest.fixture(scope="module")
def stage(place):
    from PIL import Image

    (place / "pictures" / "cat").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(place / "pictures" / "cat" / "1.png")
    return place


@given(name=NAMES.filter(lambda name: "/" not in name and name not in ("", ".", "..")),
       kind=st.sampled_from(["set", "encoder", "rows", "class", "image"]))  # fmt: skip
@example(name="a\nb\x1b[31m", kind="set")
@example(name="[/bold]", kind="set")
@examples(1, 60)
def test_names_on_the_disk(zsntta, stage, name, kind):
    """What somebody else called a file is shown, and never obeyed."""
    made = stage / "features" / "made"
    path = {
        "set": made / f"{name}.h5", "encoder": stage / "features" / name / "pets.h5",
        "rows": made / f".{name}.rows", "class": stage / "pictures" / name / "1.png",
        "image": stage / "pictures" / "cat" / f"{name}.png",
    }[kind]  # fmt: skip
    source = made / "pets.h5" if path.suffix == ".h5" else stage / "pictures" / "cat" / "1.png"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)
    except (OSError, shutil.SameFileError):  # no name for a file here
        return
    try:
        for words in LOOKING:
            zsntta(*words, cwd=stage).check()
    finally:
        path.unlink()
        if path.parent not in (made, stage / "pictures" / "cat"):
            shutil.rmtree(path.parent)  # with the accuracies that were kept beside features


@pytest.mark.parametrize(
    ("what", "mode"),
    [("features", 0o000), ("features", 0o400), ("features/made", 0o000), ("features/made", 0o400),
     ("features/made", 0o100), ("features/made/pets.h5", 0o000)],
)  # fmt: skip
def test_what_may_not_be_entered_or_read(place, tmp_path, what, mode):
    shutil.copytree(place / "features", tmp_path / "features")
    os.chmod(tmp_path / what, mode)
    try:
        for words in (("cache", "list"), ("cache", "verify")) if LONG else (("cache", "list"),):
            answer = run(*words, cwd=tmp_path, before=powerless())
            said = answer.stdout + answer.stderr
            assert "Permission denied" in said or "is not readable" in said, answer
            assert not any(word in said for word in ("nothing in", "delete it", "Traceback"))
    finally:
        os.chmod(tmp_path / what, 0o700)

"""Class names: between commas, one a line, or a list in JSON or YAML; anything else is refused."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made import refused

from zsntta_cli.detection.names import notes_on, read_classes, typed_classes
from zsntta_cli.errors import SettingsError

WORDS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz é"), min_size=1, max_size=8)
NAMES = st.lists(WORDS.map(str.strip).filter(bool), min_size=2, max_size=6, unique=True)

NOTATIONS = {
    "commas": ",".join,
    "double quotes": lambda names: ", ".join(f'"{name}"' for name in names),
    "lines": lambda names: "".join(f"{name}\n\n" for name in names),
    "lines of Windows": "\r\n".join,
    "JSON": json.dumps,
    "YAML": lambda names: f"[{', '.join(names)}]",
    "a data.yaml": lambda names: "train: x\nnames:\n" + "".join(f"- {n}\n" for n in names),
    "numbers in it": lambda names: "names:\n" + "".join(f"  {i}: {n}\n"
                                                        for i, n in enumerate(names)),
}  # fmt: skip


@pytest.mark.parametrize("notation", NOTATIONS)
@given(names=NAMES)
@example(names=["a", "names"])
def test_names_are_read_in_each_notation(notation, names, tmp_path_factory):
    if notation in ("double quotes", "JSON", "lines"):
        names = [f"{names[0]}, {names[1]}", *names]  # which hold commas
    text, path = NOTATIONS[notation](names), tmp_path_factory.getbasetemp() / "names"
    assert typed_classes(text) == tuple(names)
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_text(text, encoding=encoding)
        assert read_classes(path) == tuple(names)


def test_names_that_only_look_like_a_notation_stay():
    assert typed_classes("bird's nest,7 up,C# book") == ("bird's nest", "7 up", "C# book")
    assert typed_classes("cup (red)\n3 men\n12 men\n") == ("cup (red)", "3 men", "12 men")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["cat","dog"', "not valid"),
        ("names: a\n", "no list"),
        ('{"cat": "dog"}', "no 'names'"),
        ('[["cat"]]', "class 1 is ['cat']"),
        ('cat,"dog', "quotes do not enclose whole names"),
        ("cat,'dog", 'class 2 is "\'dog"'),
        ("cat,dog,", "class 3 is ''"),
        ("cat|dog", "class 1 is 'cat|dog'"),
        ("cat;dog", "class 1 is 'cat;dog'"),
        ("cat,\ndog", "class 1 is 'cat,'"),
        ("0: cat\n1: dog", "class 1 is '0: cat'"),
        ("1. cat\n2. dog", "class 1 is '1. cat'"),
        ("- cat\n- dog", "class 1 is '- cat'"),
        ("n02119789 fox\nn02100735 dog", "class 1 is 'n02119789 fox'"),
        ("# mine\ncat", "class 1 is '# mine'"),
        ("classes = 3\nnames = a", "class 1 is 'classes = 3'"),
        ("<html>\n<p>404\n", "class 1 is '<html>'"),
    ],
)
def test_other_notations_are_refused_with_how_they_were_read(text, said, tmp_path):
    (tmp_path / "names").write_text(text)
    for read, given_as in ((typed_classes, text), (read_classes, tmp_path / "names")):
        with refused(said, error=SettingsError):
            read(given_as)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("a.csv", b"id,name\n0,cat\n1,dog\n", "a table"), ("b.txt", b"\n \n", "no class names"),
     ("c.txt", "cat".encode("utf-16"), "cannot read")],
)  # fmt: skip
def test_files_that_have_no_names(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with refused(said, error=SettingsError):
        read_classes(tmp_path / name)


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("anything else", ["Others", "something_else", "none of these", "Background", "unknown",
                           "other animals", "neither of them"]),
        ("does not show", ["not a dog", "no circle", "non-food", "a photo without people",
                           "a dog that isn't black"]),
        ("not have", ["猫", "Hündin", "кошка"]),
        ("", ["dog", "forget-me-not", "northern flicker", "rest room", "noisy miner", "nonpareil"]),
    ],
)  # fmt: skip
def test_a_name_that_is_no_class_for_an_encoder_has_a_note(said, names):
    for name in names:
        notes = list(notes_on(["cat", name]))
        assert len(notes) == bool(said), name
        assert all(said in note and name in note and "cat" not in note for note in notes)

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
        ('["cat","dog"', "looks like a list in JSON or YAML but is not valid"),
        ("cat,'dog", 'class 2 is "\'dog", which looks like part of another notation'),
        ('cat,"dog', "quotes do not enclose whole names"),
        ("cat|dog", "class 1 is 'cat|dog', which looks like part of another notation"),
        ("cat;dog", "class 1 is 'cat;dog', which looks like part of another notation"),
        ("cat,dog,", "class 3 is '', must be a name: it is empty"),
        ('[["cat"]]', "class 1 is ['cat'], must be a name"),
        ('{"cat": "dog"}', "looks like a mapping but has no 'names'"),
        ("0: cat\n1: dog", "class 1 is '0: cat', which looks like"),
        ("1. cat\n2. dog", "class 1 is '1. cat', which looks like"),
        ("- cat\n- dog", "class 1 is '- cat', which looks like"),
        ("n02119789 fox\nn02100735 dog", "class 1 is 'n02119789 fox', which looks like"),
        ("# mine\ncat", "class 1 is '# mine', which looks like"),
        ("cat,\ndog", "class 1 is 'cat,', which looks like"),
        ("classes = 3\nnames = a", "class 1 is 'classes = 3', which looks like"),
        ("<html>\n<p>404\n", "class 1 is '<html>', which looks like"),
        ("nams: [a, b]\n", "part of another notation"),
        ("names: a\n", "but has no list"),
        ("id\tname\n0\tcat\n", "part of another notation"),
    ],
)
def test_other_notations_are_refused_with_how_they_were_read(text, said, tmp_path):
    (tmp_path / "names").write_text(text)
    for read, given_as in ((typed_classes, text), (read_classes, tmp_path / "names")):
        with refused(said, error=SettingsError):
            read(given_as)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("a.csv", b"id,name\n0,cat\n1,dog\n", "looks like a table"),
     ("b.txt", b"\n \n", "has no class names: it must have one name per line"),
     ("c.txt", "cat".encode("utf-16"), "cannot read the class names"),
     ("d.txt", None, "cannot read the class names")],
)  # fmt: skip
def test_files_that_have_no_names(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with refused(said, error=SettingsError):
        read_classes(tmp_path / name)


def test_a_file_that_is_typed_as_names_is_asked_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("cat\n")
    with refused("is a file: type --classes-file names.txt", error=SettingsError):
        typed_classes("names.txt")


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("anything else", ["other", "Others", "anything else", "something_else", "none of these",
                           "Background", "unknown", "other animals", "neither of them", "misc"]),
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

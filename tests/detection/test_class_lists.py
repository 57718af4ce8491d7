"""Class names in the notations that people have, from a small grammar of them."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zsntta_cli.detection.classes.names import read_classes, typed_classes
from zsntta_cli.errors import SettingsError

WORDS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz é"), min_size=1, max_size=8)
NAMES = st.lists(WORDS.map(str.strip).filter(bool), min_size=2, max_size=6, unique=True)
WITH_COMMAS = NAMES.map(lambda names: [f"{names[0]}, {names[1]}", *names[2:], "last"])

# What a list of names is written as: typed, and in files by their endings.
TYPED = {
    "commas": ",".join,
    "JSON": json.dumps,
    "Python": lambda names: str([*names]),
    "a tuple": lambda names: str((*names,)),
    "YAML": lambda names: f"[{', '.join(names)}]",
    "double quotes": lambda names: ", ".join(f'"{name}"' for name in names),
    "single quotes": lambda names: ",".join(f"'{name}'" for name in names),
    "a comma at the end": lambda names: ",".join(names) + ",",
    "lines": "\n".join,
    "a word processor's quotes": lambda names: ", ".join(f"“{name}”" for name in names),
    "a set": lambda names: "{" + ", ".join(map(repr, names)) + "}",
    "by number": lambda names: str(dict(enumerate(names))),
    "to number": lambda names: json.dumps({name: i for i, name in enumerate(names)}),
}
FILES = {
    "plain.txt": "\n".join,
    "commented.txt": lambda names: "# mine\n" + "".join(f"{name}  # so\n\n" for name in names),
    "numbers.names": lambda names: "".join(f"{i}: {name}\n" for i, name in enumerate(names)),
    "from-one.txt": lambda names: "".join(f"{i}. {name}\n" for i, name in enumerate(names, 1)),
    "dashes.md": lambda names: "".join(f"- {name}\n" for name in names),
    "trailing.txt": lambda names: ",\n".join(f'"{name}"' for name in names),
    "one-line.csv": ",".join,
    "one-line-ended.csv": lambda names: ",".join(names) + ",\n",
    "semicolons.csv": lambda names: "id;name\n" + "".join(f"1;{name}\n" for name in names),
    "synsets.txt": lambda names: "".join(f"n{i:08} {name}\n" for i, name in enumerate(names)),
    "column.csv": lambda names: "id,name\n" + "".join(f"{i},{n}\n" for i, n in enumerate(names)),
    "numbered.csv": lambda names: "".join(f"{i},{name}\n" for i, name in enumerate(names)),
    "list.json": json.dumps,
    "coco.json": lambda names: json.dumps({"categories": [{"id": 1, "name": n} for n in names]}),
    "config.json": lambda names: json.dumps({"id2label": dict(enumerate(names))}),
    "data.yaml": lambda names: "train: x\nnames:\n" + "".join(
        f"  {i}: {name}\n" for i, name in enumerate(names)),
    "list.yml": lambda names: f"nc: {len(names)}\nnames:\n" + "".join(f"- {n}\n" for n in names),
}  # fmt: skip
HOLD_COMMAS = ("JSON", "Python", "double quotes", "list.json", "coco.json", "config.json")


@pytest.mark.parametrize("notation", TYPED)
@given(names=NAMES)
@example(names=["a", "names"])  # a key in YAML of detectors
def test_typed_names_are_read_in_each_notation(notation, names):
    assert typed_classes(TYPED[notation](names)) == tuple(names)


@pytest.mark.parametrize("notation", FILES)
@given(names=NAMES)
def test_names_of_a_file_are_read_in_each_notation(notation, names, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / notation
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_text(FILES[notation](names), encoding=encoding)
        assert read_classes(path) == tuple(names)


@pytest.mark.parametrize("notation", HOLD_COMMAS)
@given(names=WITH_COMMAS)
def test_a_name_in_quotes_may_have_a_comma(notation, names, tmp_path_factory):
    if notation in TYPED:
        assert typed_classes(TYPED[notation](names)) == tuple(names)
    else:
        path = tmp_path_factory.getbasetemp() / notation
        path.write_text(FILES[notation](names))
        assert read_classes(path) == tuple(names)


def test_names_that_only_look_like_a_notation_stay(tmp_path):
    assert typed_classes("bird's nest,7 up,C# book") == ("bird's nest", "7 up", "C# book")
    assert typed_classes("cat;dog, ox") == ("cat;dog", "ox")
    path = tmp_path / "imagenet.txt"
    path.write_text("tench, Tinca tinca\ngreat white shark, white shark\n7 up\n")
    assert read_classes(path) == ("tench, Tinca tinca", "great white shark, white shark", "7 up")
    path.write_text("cup (red)\n3 men\n12 men\n")
    assert read_classes(path) == ("cup (red)", "3 men", "12 men")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["cat","dog"', "looks like a list in JSON or YAML, and is none"),
        ("cat,'dog", 'class 2 is "\'dog", a piece of a notation'),
        ('cat,"dog', "quotes do not enclose whole names"),
        ("cat|dog", "names have commas between them, --classes 'cat,dog'"),
        ("cat;dog", "names have commas between them, --classes 'cat,dog'"),
        (",cat", "class 1 is '', must be a name: it is empty"),
        ('[["cat"]]', r"class 1 is \['cat'\], must be a name"),
        ("cat, ,dog", "class 2 is '', must be a name: it is empty"),
        ('{"cat": "dog"}', "understood as a mapping, which has no class names"),
    ],
)
def test_what_looks_like_a_notation_and_is_none_is_refused(text, said):
    with pytest.raises(SettingsError, match=said):
        typed_classes(text)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", 'names = ["a", "b"]\n', "do not enclose|a piece of a notation"),
        ("a.pbtxt", 'item {\n  id: 1\n}\n', "class 1 is 'item {', a piece of a notation"),
        ("a.txt", "<html>\n<p>404\n", "class 1 is '<html>', a piece"),
        ("a.py", "CLASSES = ['a',\n'b']\n", "a piece of a notation"),
        ("a.csv", "a,b\nc,d\n", "a table of 2 columns without a head"),
        ("a.yaml", "nc: 3\nnames: [a, b]\n", "says nc: 3, and has 2 names"),
        ("b.yaml", "nams: [a, b]\n", r"did you mean 'names'\?"),
        ("c.yaml", "names: [a, b\n", "is none"),
        ("b.txt", "\n \n", "has no class names: it must have one name per line"),
    ],
)  # fmt: skip
def test_files_of_other_notations_are_refused(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(SettingsError, match=said):
        read_classes(tmp_path / name)
    with pytest.raises(SettingsError, match="cannot read the class names"):
        read_classes(tmp_path / "none.txt")


def test_a_file_that_is_typed_as_names_is_asked_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("cat\n")
    with pytest.raises(SettingsError, match=r"is a file: --classes-file names\.txt reads it"):
        typed_classes("names.txt")

"""Lists beside images: each form, where its images lie, and what is refused."""

import json
import unicodedata

import pytest
from made import refused
from PIL import Image

from zsntta_cli.datasets import load_images
from zsntta_cli.datasets.lists import read_list

SPLIT = {"train": [], "val": [], "test": [["0.png", 1, "dog"], ["1.png", 0, "cat"]]}
FIELDS = [{"file_name": "0.png", "label": "dog"}, {"file_name": "1.png", "label": "cat"}]
FORMS = {
    "head.csv": "path,label\n0.png,dog\n1.png,cat\n",
    "no-head.csv": "0.png,dog\n1.png,cat\n",
    "tabs.tsv": "image\tclass\n0.png\tdog\n1.png\tcat\n",
    "numbers.csv": "label,file_name,class_name\n1.0,0.png,dog\n0.0,1.png,cat\n",
    "from-1.csv": "path,label,class_name\n0.png,2,dog\n1.png,1,cat\n",
    "lines.jsonl": "\n".join(map(json.dumps, FIELDS)),
    "objects.json": json.dumps(FIELDS),
    "split_zhou_Pets.json": json.dumps(SPLIT),
}


@pytest.fixture
def pictures(tmp_path):
    (tmp_path / "lists" / "images").mkdir(parents=True)
    for i in range(2):
        Image.new("RGB", (8, 8), (i, i, i)).save(tmp_path / "lists" / "images" / f"{i}.png")
    return tmp_path / "lists"


def read(path, text, label=""):
    path.write_text(text)
    return load_images(f"mine={path}" + f"?label={label}" * bool(label), path.parent)


@pytest.mark.parametrize("name", FORMS)
def test_each_form_has_the_same_images_labels_and_names(pictures, name):
    images = read(pictures / name, FORMS[name])
    assert images.labels.tolist() == [1, 0]
    assert list(images.class_names) == ["cat", "dog"]
    assert images.sample_ids == ["0.png", "1.png"]
    assert images.read(1).getpixel((0, 0)) == (1, 1, 1)
    assert any("are read from" in note for note in images.notes)


def test_openoods_lists_have_numbers_and_folders_of_their_own(pictures):
    """benchmark_imglist/cifar10/test.txt names images_classic's files; -1 is no class."""
    (pictures.parent / "benchmark" / "set").mkdir(parents=True)
    images = read(pictures.parent / "benchmark" / "set" / "test.txt",
                  "images/0.png 3\nimages/1.png -1\n")  # fmt: skip
    assert images.labels.tolist() == [3, -1]
    assert list(images.class_names) == []


def test_a_name_is_found_in_the_form_that_is_on_disk(pictures):
    for form, other in (("NFC", "NFD"), ("NFD", "NFC")):
        name = f"caf\u00e9-{form}.png"
        Image.new("RGB", (8, 8)).save(pictures / "images" / unicodedata.normalize(form, name))
        listed = unicodedata.normalize(other, f"images/{name}")
        images = read(pictures / f"{form}.csv", f"sep=;\npath;label\n{listed};cat\n")
        assert images.sample_ids == [unicodedata.normalize(form, f"images/{name}")]


def test_a_list_of_labels_that_was_not_read_is_named(pictures):
    (pictures / "images" / "list.csv").write_text("path,label\n0.png,dog\n1.png,cat\n")
    [note] = load_images(f"mine={pictures}/images", pictures).notes
    assert "--dataset mine=" in note


def test_a_column_is_named_and_names_become_words(pictures):
    text = "path,label,kind\n0.png,x,001.Big_Dog\n1.png,x,002.SeaLake\n"
    images = read(pictures / "more.csv", text, "kind")
    assert list(images.class_names) == ["Big Dog", "Sea Lake"]
    assert "001.Big_Dog as 'Big Dog'" in images.notes[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("path,label\n0.png,a\n7.png,b\n", "7.png"),
        ("path,label\n0.png,a\n0.png,b\n", "two labels for 0.png"),
        ("path,label\n0.png,a\n1.png,3\n", "mix"),
        ("path,label,class_name\n0.png,1,a\n1.png,1,b\n", "both 'a' and 'b'"),
        ("path,label\n", "no image"),
        ("title,kind\nx,1\n", "'path', of title, kind"),
    ],
)
def test_what_a_list_cannot_be(pictures, text, said):
    with refused(said):
        read(pictures / "wrong.csv", text)


def test_labels_that_are_none_are_refused_and_their_paths_read(pictures):
    for name, content in (("l.csv", b"path;class\nimages/0.png;caf\xe9\n"),
                          ("l.jsonl", b'{"path": "images/0.png", "label": ["a"]}')):  # fmt: skip
        (pictures / name).write_bytes(content)
        assert [row.path for row in read_list(pictures / name)] == ["images/0.png"]
        with refused("a single text or number"):
            load_images(f"mine={pictures / name}", pictures)

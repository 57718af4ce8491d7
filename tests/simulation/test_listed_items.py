"""Streams of listed OOD images, by hand: docs/streams.md, "Listed OOD images"."""

import hashlib

import numpy as np
import pytest
from feature_files import write_features
from made import MADE_UP, PROMPT, refused

from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.results.frame import tables
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.stream import OOD

TEXT = [Text(PROMPT, np.eye(2, 4, dtype=np.float32))]
FOLDER = "made"


@pytest.fixture
def root(tmp_path):
    """Four ID images; six OOD images, of which the even ones look like the first class."""

    def write(name, rows, labels, ids, names=(), texts=(), **source):
        write_features(
            tmp_path / FOLDER / f"{name}.h5", kind=DATASET, name=name, encoder=MADE_UP,
            source=source, blocks=[np.array(rows, np.float16)], labels=np.array(labels, np.int32),
            class_names=names, texts=texts, sample_ids=ids,
        )  # fmt: skip

    unit = np.eye(4)
    write("pets", unit[[0, 1, 0, 1]], [0, 1, 0, 1], list("abcd"), ("cat", "dog"), TEXT)
    sky = unit[[0, 2, 0, 2, 0, 2]], [-1] * 6, [f"sky/{i}.jpg" for i in range(6)]
    write("sky", *sky)
    write("part", *sky, limit=6)
    return tmp_path


def write_list(root, *lines, ratio="1", pair="pets_sky"):
    path = root / "lists" / ratio / f"{pair}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def run(root, ood="sky", **values):
    values = {"ratio": 0.5, "ood_items": str(root / "lists"), "fixed": 0.9} | values
    return build_run("zs-clip", FOLDER, "pets", ood, PROMPT, **values)


@pytest.mark.parametrize(
    "lines", [("1", "3", "5", "5"), ("sky/1.jpg", "sky/3.jpg", "", "sky/5.jpg", " sky/5.jpg ")]
)
def test_the_stream_has_the_listed_images_by_number_or_by_name(root, lines):
    path = write_list(root, *lines)
    replay = Simulator(root).replay(run(root))
    stream = replay.stream
    assert sorted(stream.row[stream.kind == OOD].tolist()) == [1, 3, 5, 5]
    record = replay.record()
    assert record.counts == {"id": 4, "ood": 4, "noise": 0}
    assert record.metric("acc_n") == 1  # none of them is like a class
    assert record.digests["items/sky"] == hashlib.sha256(path.read_bytes()).hexdigest()
    write_list(root, "0", "2", "4")
    assert Simulator(root).run(run(root)).metric("acc_n") == 0


def test_what_the_set_lacks_is_left_out_and_said_in_one_line(root):
    write_list(root, "sky/1.jpg", "sky/9.jpg", "sky/8.jpg", "sky/9.jpg")
    record = Simulator(root).run(run(root))
    assert record.counts["ood"] == 1
    (note,) = (note for note in record.notes if note.kind == "lacking")
    assert note.text == (
        "The list for 'sky' with 'pets' names 2 images that the set lacks, so the stream leaves "
        "them out: sky/9.jpg, sky/8.jpg."
    )


def test_runs_with_and_without_lists_and_with_other_lists_never_count_as_one(root):
    write_list(root, "1", "3")
    first = Simulator(root).run(run(root))
    plain = Simulator(root).run(run(root, ood_items=""))
    write_list(root, "1", "5")
    other = Simulator(root).run(run(root))
    assert len({record.key for record in (first, plain, other)}) == 3
    (table,) = tables([first, plain, other])
    assert len(table.rows) == 3


def test_each_ratio_has_its_own_list_and_they_are_one_row_a_ratio(root):
    write_list(root, "1", ratio="0.33")
    write_list(root, "1", "3", "5", ratio="3")
    records = [Simulator(root).run(run(root, ratio=ratio)) for ratio in (0.25, 0.75)]
    assert [record.counts["ood"] for record in records] == [1, 3]
    (table,) = tables(records)
    assert {row.settings["features"] for row in table.rows} == {""}


@pytest.mark.parametrize(
    ("lines", "values", "kind", "said"),
    [
        ((), {}, StoreError, "names no image of 'sky'"),
        (("7",), {}, StoreError, "from 0 to 5"),
        (("1",), {"ratio": 0.25}, SettingsError, "0.33/pets_sky.txt"),
        (("1",), {"ratio": "natural"}, SettingsError, "omit --ood-items"),
        (("1",), {"ood": "part"}, StoreError, "extract it without --limit"),
    ],
)
def test_wrong_lists_are_refused(root, lines, values, kind, said):
    write_list(root, *lines)
    write_list(root, *lines, pair="pets_part")
    with refused(said, error=kind):
        Simulator(root).run(run(root, **values))

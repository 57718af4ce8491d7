"""What a run reads: norms, exchanged names, lists of OOD images, words and other texts."""

import hashlib
import json

import numpy as np
import pytest
from feature_files import write_features
from made import MADE_UP, PROMPT, refused

from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.errors import StoreError
from zsntta_cli.results.frame import tables
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.stream import OOD

PAIR = ("--id", "pets", "--ood", "sky")


def write(root, name, rows, labels, class_names=(), texts=(), ids=(), **source):
    write_features(
        root / f"{name}.h5", kind=DATASET, name=name, encoder=MADE_UP, source=source,
        blocks=[np.asarray(rows, np.float16)], labels=np.asarray(labels, np.int32),
        class_names=class_names, texts=texts, sample_ids=ids or [*map(str, range(len(labels)))],
    )  # fmt: skip


# Of Food-101, the second and the third the wrong way round.
NAMES = ("apple_pie", "cheese_plate", "Cheesecake", "ramen")
ORDER = [0, 2, 1, 3]  # with the two under each other's name


def test_official_has_the_names_swapped_as_if_they_and_their_texts_were_exchanged(tmp_path):
    """Food whose images look as their class's text says, and the same with texts swapped."""
    text = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0].astype(np.float32)
    noise = 0.02 * np.random.default_rng(1).standard_normal((60, 8))
    labels = np.repeat(range(4), 10)
    for folder, order in (("made", [0, 1, 2, 3]), ("renamed", ORDER)):
        texts, names = [Text(PROMPT, text[:4][order])], [NAMES[i] for i in order]
        write(tmp_path / folder, "food101", text[labels] + noise[:40], labels, names, texts)
        write(tmp_path / folder, "sky", text[[5] * 20] + noise[40:], [-1] * 20)

    def run_of(folder, preset, **values):
        return build_run("zs-clip", folder, "food101", "sky", PROMPT, preset, **values)

    simulator = Simulator(tmp_path)
    assert simulator.run(run_of("made", "paper")).metric("acc_s") == 1.0
    swapped = simulator.replay(run_of("made", "official"))
    renamed = simulator.replay(run_of("renamed", "official", swapped_names=False))
    assert np.array_equal(swapped.stream.row, renamed.stream.row)
    right = [replay.made.decisions.class_index == replay.labels for replay in (swapped, renamed)]
    assert np.array_equal(*right)
    for replay in (swapped, renamed):
        assert (replay.record().metric("acc_s"), replay.record().metric("acc_n")) == (0.5, 1.0)


@pytest.mark.parametrize("names", [(), ("cat", "dog")])
def test_a_set_without_classes_for_all_images_is_no_id_set(tmp_path, names):
    write(tmp_path / "made", "some", np.eye(3), [0, 1, -1], names)
    with refused("'some' cannot be an ID set", "1 image of 3" if names else "no class names"):
        Simulator(tmp_path).run(build_run("zs-clip", "made", "some", None, PROMPT, ratio=0.0))


# Lists: docs/streams.md, "Listed OOD images".


@pytest.fixture
def root(tmp_path):
    """Four ID images; six OOD images, of which the even ones look like the first class."""
    folder, unit = tmp_path / "made", np.eye(4)
    texts = [Text(PROMPT, np.eye(2, 4, dtype=np.float32))]
    write(folder, "pets", unit[[0, 1, 0, 1]], [0, 1, 0, 1], ("cat", "dog"), texts)
    for name, source in (("sky", {}), ("part", {"limit": 6})):
        ids = [f"sky/{i}.jpg" for i in range(6)]
        write(folder, name, unit[[0, 2, 0, 2, 0, 2]], [-1] * 6, ids=ids, **source)
    return tmp_path


def write_list(root, *lines, ratio="1", pair="pets_sky"):
    path = root / "lists" / ratio / f"{pair}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def listed(root, ood="sky", **values):
    values = {"ratio": 0.5, "ood_items": str(root / "lists"), "fixed": 0.9} | values
    return build_run("zs-clip", "made", "pets", ood, PROMPT, **values)


@pytest.mark.parametrize(
    "lines", [("1", "3", "5", "5"), ("sky/1.jpg", "sky/3.jpg", "", "sky/5.jpg", " sky/5.jpg ")]
)
def test_the_stream_has_the_listed_images_by_number_or_by_name(root, lines):
    path = write_list(root, *lines)
    replay = Simulator(root).replay(listed(root))
    stream, record = replay.stream, replay.record()
    assert sorted(stream.row[stream.kind == OOD].tolist()) == [1, 3, 5, 5]
    assert record.counts == {"id": 4, "ood": 4, "noise": 0}
    assert record.metric("acc_n") == 1  # none of them is like a class
    assert record.digests["items/sky"] == hashlib.sha256(path.read_bytes()).hexdigest()
    write_list(root, "0", "2", "4")
    assert Simulator(root).run(listed(root)).metric("acc_n") == 0


def test_what_the_set_lacks_is_left_out_and_said_in_one_line(root):
    write_list(root, "sky/1.jpg", "sky/9.jpg", "sky/8.jpg", "sky/9.jpg")
    record = Simulator(root).run(listed(root))
    assert record.counts["ood"] == 1
    [text] = [note.text for note in record.notes if note.kind == "lacking"]
    assert text.startswith("The list for 'sky' with 'pets' names 2 images that the set lacks")
    assert text.endswith("leaves them out: sky/9.jpg, sky/8.jpg.")


def test_runs_with_other_lists_never_count_as_one_and_those_of_all_ratios_do(root):
    write_list(root, "1", "3")
    records = [Simulator(root).run(listed(root)), Simulator(root).run(listed(root, ood_items=""))]
    write_list(root, "1", "5")
    records.append(Simulator(root).run(listed(root)))
    [table] = tables(records)
    assert len(table.rows) == len({record.key for record in records}) == 3
    write_list(root, "1", ratio="0.33")
    write_list(root, "1", "3", "5", ratio="3")
    records = [Simulator(root).run(listed(root, ratio=ratio)) for ratio in (0.25, 0.75)]
    assert [record.counts["ood"] for record in records] == [1, 3]
    [table] = tables(records)
    assert {row.settings["features"] for row in table.rows} == {""}


@pytest.mark.parametrize(
    ("lines", "values", "said"),
    [
        ((), {}, "names no image of 'sky'"),
        (("7",), {}, "from 0 to 5"),
        (("1",), {"ood": "part"}, "extract it without --limit"),
    ],
)
def test_wrong_lists_are_refused(root, lines, values, said):
    write_list(root, *lines)
    write_list(root, *lines, pair="pets_part")
    with refused(said, error=StoreError):
        Simulator(root).run(listed(root, **values))


# Words and texts that a method needs, from the command line.


def test_methods_with_words_decide_and_say_which_they_lack(simulate):
    methods = ("neglabel", "csp", "adaneg", "tanl", "csp+tda")
    result = simulate(*(word for name in methods for word in ("--method", name)), *PAIR,
                      "--set", "words=nouns", "--set", "mined-share=0.5", "--set", "groups=3",
                      "--format", "json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    records = json.loads(result.stdout)
    assert [r["settings"]["method"] for r in records] == list(methods)
    assert all(0 < r["accuracies"]["acc_h"] <= 1 for r in records)
    lacking = simulate("--method", "neglabel", "--prompt", "art of a {}.", *PAIR)
    assert "'art of a {}.' is not cached for 'words-nouns'" in lacking.stderr


def test_clipn_needs_its_own_text_features(simulate, tmp_path):
    run = ("--method", "clipn", *PAIR, "--set", "no-text=no.npy", "--report", "ood")
    for array, code in (
        (np.ones((2, 16)), 1), (np.array([{}], dtype=object), 1), (np.full((3, 16), np.nan), 1),
        (np.random.default_rng(0).normal(size=(3, 16)), 0),
    ):  # fmt: skip
        np.save(tmp_path / "no.npy", array)
        result = simulate(*run)
        assert ("an array (3, 16)" in result.stderr or "no.npy" in result.stderr) == bool(code)
        assert result.exit_code == code, result.stderr

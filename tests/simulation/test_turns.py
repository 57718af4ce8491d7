"""Several sets in turn: every image in its part, parts one after the other, anew or not."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import TINY, fails

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import StreamSettings
from zsntta_cli.simulation.stream import ID, NOISE, OOD, build_stream
from zsntta_cli.simulation.turns import build_turns, turns

SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=4)


def stream_of(settings, id_sizes, ood_sizes, n_noise=0):
    labels = np.arange(sum(id_sizes)) % 3
    return build_turns(settings, id_sizes, ood_sizes, n_noise, labels)


@given(st.data(), st.sampled_from(["natural", 0.0, 0.25, 0.6, "0.1..0.7"]),
       st.sampled_from(["shuffled", "class", "dirichlet:0.1"]), st.integers(0, 9))  # fmt: skip
def test_every_id_image_once_in_its_part_and_parts_in_order(data, ratio, order, seed):
    count = data.draw(st.integers(2, 4))
    sizes = st.lists(st.integers(count, 40), min_size=count, max_size=count)
    id_sizes, ood_sizes = (
        data.draw(sizes if data.draw(st.booleans()) else st.tuples(st.integers(20, 80)))
        for _ in "io"
    )
    stream = stream_of(StreamSettings(ratio=ratio, order=order, seed=seed), id_sizes, ood_sizes)
    assert sorted(stream.row[stream.kind == ID]) == list(range(sum(id_sizes)))
    if max(len(id_sizes), len(ood_sizes)) == 1:
        assert stream.turn is None
        return
    assert (np.diff(stream.turn) >= 0).all()
    parts = turns(id_sizes, ood_sizes)
    assert len(parts) == max(len(id_sizes), len(ood_sizes))
    for number, part in enumerate(parts):
        here = stream.turn == number
        assert sorted(stream.row[here & (stream.kind == ID)]) == sorted(part.id_rows)
        assert {*stream.row[here & (stream.kind == OOD)]} <= {*part.ood_rows}
    if ratio == "natural":
        assert sorted(stream.row[stream.kind == OOD]) == list(range(sum(ood_sizes)))


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 9))
def test_one_set_and_one_other_is_the_plain_stream(n_id, n_ood, seed):
    settings = StreamSettings(seed=seed, ratio=0.4, noise="gaussian")
    plain = build_stream(settings, n_id, n_ood, 7)
    stream = stream_of(settings, [n_id], [n_ood], 7)
    assert (stream.kind == plain.kind).all()
    assert (stream.row == plain.row).all()


def test_only_one_set_is_dealt_to_the_parts():
    for id_sizes, ood_sizes in (([30], [9, 9, 9]), ([9, 9, 9], [30])):
        parts = turns(id_sizes, ood_sizes)
        dealt = [p.id_rows if len(id_sizes) == 1 else p.ood_rows for p in parts]
        assert sorted(np.concatenate(dealt)) == list(range(30))
        assert [len(rows) for rows in dealt] == [10, 10, 10]
        assert any(np.diff(rows).max() > 1 for rows in dealt), "not as they lie"


def test_parts_are_of_other_orders_and_noise_goes_on():
    settings = StreamSettings(ratio=0.0, noise="gaussian", noise_every=4)
    stream = stream_of(settings, [40, 40], [], 100)
    first, second = (stream.row[(stream.turn == n) & (stream.kind == ID)] for n in (0, 1))
    assert (first != second - 40).any()
    assert stream.row[stream.kind == NOISE].tolist() == list(range(20))


def test_a_limit_is_of_the_whole_stream():
    stream = stream_of(StreamSettings(ratio=0.0, limit=50), [40, 40], [])
    assert len(stream) == 50
    assert (stream.turn == 1).sum() == 10


@pytest.mark.parametrize(("ids", "oods"), [([3, 3], [3, 3, 3]), ([3, 3, 3], [3, 3])])
def test_sets_that_make_no_pairs(ids, oods):
    with pytest.raises(SettingsError, match="come in turn"):
        turns(ids, oods)


# On the command line.

RUN = ("simulate", *TINY, "--noise", "none", "--id", "shapes", "--ood", "glyphs+digits")


def records(cached, *options):
    result = cached(*RUN, *options, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_record_has_what_each_set_gave(cached):
    [record] = records(cached, "--method", "ridge")
    assert [(p["id_set"], p["ood_set"]) for p in record["parts"]] == [
        ("shapes", "glyphs"), ("shapes", "digits"),
    ]  # fmt: skip
    for kind, name in (("id", "n_id"), ("ood", "n_ood")):
        assert record["counts"][kind] == sum(part[name] for part in record["parts"])
    for metric, weight in (("acc_s", "n_id"), ("acc_n", "n_ood")):
        mean = np.average([p["metrics"][metric] for p in record["parts"]],
                          weights=[p[weight] for p in record["parts"]])  # fmt: skip
        assert record["accuracies"][metric] == pytest.approx(mean)
    assert {"glyphs", "digits", "shapes", "text/shapes"} == {*record["digests"]}


def test_a_method_begins_anew_or_goes_on(cached):
    zs, ridge = (records(cached, "--method", name, "--reset", "never", "--reset", "each")
                 for name in ("max-logit", "ridge"))  # fmt: skip
    assert zs[0]["parts"] == zs[1]["parts"], "what learns nothing has nothing to forget"
    assert ridge[0]["parts"][0] == ridge[1]["parts"][0]
    assert ridge[0]["parts"][1] != ridge[1]["parts"][1]


def test_the_table_has_a_row_a_set_and_the_csv_too(cached):
    result = cached(*RUN, "--method", "zs-clip", "--method", "tda")
    rows = [line.split("│")[1:4] for line in result.stdout.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in rows[2:]] == [
        [name, "shapes", ood] for name in ("zs-clip", "tda") for ood in ("glyphs", "digits")
    ]
    csv = cached(*RUN, "--method", "zs-clip", "--format", "csv").stdout.splitlines()
    assert [line.split(",")[4:7] for line in csv[1:]] == [
        ["shapes", "glyphs+digits", ""], ["shapes", "glyphs", "part 1 of 2"],
        ["shapes", "digits", "part 2 of 2"],
    ]  # fmt: skip


def test_a_list_has_rows_of_its_parts_under_one_key(cached):
    assert cached(*RUN, "--method", "zs-clip").exit_code == 0
    rows = json.loads(cached("records", "list", "--format", "json").stdout)
    assert [row["aggregate"] for row in rows] == [None, "part 1 of 2", "part 2 of 2"]
    assert len({row["key"] for row in rows}) == 1


def test_it_is_kept_and_repeated(cached, tmp_path):
    first = cached(*RUN, "--method", "ridge", "--format", "json", "--output", "one.json")
    assert first.exit_code == 0, first.output
    again = cached(*RUN, "--method", "ridge")
    assert "1 of 1 runs were kept from before" in again.stderr
    repeated = cached("simulate", "--from", "one.json", "--fresh", "--format", "json")
    [before], [after] = (json.loads(text) for text in (
        (tmp_path / "one.json").read_text(), repeated.stdout,
    ))  # fmt: skip
    assert (before["parts"], before["digests"]) == (after["parts"], after["digests"])


def test_id_sets_in_turn_share_the_first_ones_classes(cached):
    run = ("simulate", *TINY, "--method", "zs-clip", "--ratio", 0)
    result = cached(*run, "--id", "shapes+shapes", "--format", "json")
    [record] = json.loads(result.stdout)
    [one] = json.loads(cached(*run, "--id", "shapes", "--format", "json").stdout)
    assert record["counts"]["id"] == 2 * one["counts"]["id"]
    assert record["parts"][0]["metrics"]["id_accuracy"] == one["detection"]["id_accuracy"]
    fails(cached(*run, "--id", "shapes+digits"), "'digits' cannot come in turn with 'shapes'")


@pytest.mark.parametrize(("options", "words"), [
    (("--method", "zs-clip", "--ood", "glyphs+digits+glyphs", "--id", "shapes+shapes"),
     "2 ID sets come in turn and 3 OOD sets"),
    (("--method", "tent", "--ood", "glyphs+digits"), "tent encodes its images live"),
    (("--method", "zs-clip", "--ood", "glyphs+lost"), "no features of 'lost'"),
    (("--method", "zs-clip", "--ood", "glyphs+"), "''"),
    (("--method", "zs-clip", "--ood", "shapes+glyphs"), "cannot be its own OOD set"),
])  # fmt: skip
def test_what_cannot_come_in_turn(cached, options, words):
    result = cached("simulate", *TINY, "--noise", "none", "--limit", 40, *options)
    assert result.exit_code, result.output
    assert words in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("error")]) == 1

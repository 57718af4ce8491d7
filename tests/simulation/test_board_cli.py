"""`zsntta board` on made-up features."""

import re

import numpy as np
import pytest
from made import fails

from zsntta_cli.results import run_queue
from zsntta_cli.results.store import RecordStore
from zsntta_cli.simulation.simulator import Simulator

PAIRS = ("--pair", "pets,sky", "--pair", "birds,sand")
SOME = [x for name in ("zs-clip", "tda", "max-logit") for x in ("--method", name)]


@pytest.fixture
def board(zsntta, features, tmp_path):
    def run(*arguments):
        kept = ("--records", tmp_path / "kept.sqlite", "--features-dir", features)
        return zsntta("board", "--encoder", "made", *kept, "--seed", 0, "--seed", 1, *arguments)

    return run


def kept(tmp_path):
    with RecordStore(tmp_path / "kept.sqlite") as store:
        return [one.record for one in store.all()]


def test_the_table_and_the_page_are_those_of_the_records(board, tmp_path):
    result = board(*PAIRS, *SOME, "--out", "board.md")
    assert result.exit_code == 0, result.output
    records = kept(tmp_path)
    # Two that decide: 2 clean sets, 2 pairs x 8 streams. Max-logit: 2 pairs. 2 noises, 2 seeds.
    assert len(records) == (2 * (2 + 16) + 2) * 4
    text = (tmp_path / "board.md").read_text()
    _, plain, injected = text.split("## All pairs, ")
    for part, noise in ((plain, "none"), (injected, "gaussian")):
        found = [
            [record.accuracies.acc_h for record in records if is_of(record, "tda", noise, 0.25, s)]
            for s in (0, 1)
        ]
        assert [len(some) for some in found] == [2, 2]
        by_seed = np.mean(found, axis=1)
        wanted = f"{100 * by_seed.mean():.2f}±{100 * by_seed.std(ddof=1):.2f}"
        row = re.search(r"^\| `tda`.*$", part, re.MULTILINE)[0]
        assert row.split(" | ")[3].strip("*") == wanted
        title = "nothing" if noise == "none" else "Gaussian noise"
        block = result.stdout.split(f"{title} injected\n")[1]
        shown = next(line for line in block.splitlines() if line.startswith("tda "))
        assert shown.split()[3].strip("*") == wanted.partition("±")[0]
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert result.stdout.endswith("board.md\n")


def is_of(record, method, noise, ratio, seed):
    stream = record.settings.stream
    own = record.settings.method, stream.noise, stream.ratio, stream.seed, stream.order
    return own == (
        method, noise, ratio, seed, "shuffled",
    )  # fmt: skip


def test_a_second_call_takes_all_from_the_store(board, tmp_path):
    first = board(*PAIRS[:2], *SOME)
    again = board(*PAIRS[:2], *SOME, "--out", "board.md")
    assert "76 of 76 runs were kept from before" in again.stderr
    assert again.stdout.removesuffix("board.md\n") == first.stdout
    more = board(*PAIRS[:2], *SOME, "--method", "mcm", "--jobs", "2")
    assert "76 of 80 runs were kept from before" in more.stderr
    assert re.search(r"^mcm ", more.stdout, re.MULTILINE)


def test_ctrl_c_leaves_what_was_finished(board, tmp_path, monkeypatch):
    replay, done = Simulator.replay, []

    def interrupted(self, settings, analyse=False):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(settings)
        return replay(self, settings, analyse)

    monkeypatch.setattr(Simulator, "replay", interrupted)
    result = board(*PAIRS, *SOME, "--out", "board.md")
    assert result.exit_code == 130
    assert "what was finished is kept; the same command resumes" in result.stderr
    assert {record.settings for record in kept(tmp_path)} == set(done)
    assert not (tmp_path / "board.md").exists()
    monkeypatch.undo()
    assert "3 of 152 runs were kept from before" in board(*PAIRS, *SOME).stderr


def test_who_is_not_run_is_told_before_the_runs(board):
    more = ("--method", "clipn", "--method", "neglabel", "--words", "birds=nouns,verbs")
    result = board(*PAIRS, *SOME, *more)
    assert "note: not run: clipn (needs no-text)\n" in result.stderr
    assert "note: not run: neglabel (no features of 'words-verbs' by made in " in result.stderr
    assert not re.search(r"^(clipn|neglabel) ", result.stdout, re.MULTILINE)


def test_what_cannot_be_a_pair_is_refused(board):
    fails(board("--pair", "pets"), "--pair is 'pets', must be ID,OOD: two sets", code=2)
    fails(board("--pair", "pets,pets"), "must be ID,OOD", code=2)
    fails(board("--pair", "pets,sea"), "sea")
    fails(board(*PAIRS, "--method", "adnd"), "adnd", "adand", code=2)
    fails(board(*PAIRS, "--out", "."), "cannot write .: it is a folder")


def test_a_model_has_its_own_pairs(zsntta, cached):
    result = cached("board", "--model", "tiny", "--method", "zs-clip", "--seed", "0")
    assert result.exit_code == 0, result.output
    assert "Mean of 4 pairs in %, Gaussian noise injected" in result.stdout
    assert "66 runs in" in result.stderr  # one clean, four pairs on eight streams; two injections


def test_parts_of_a_pair_make_no_difference(board, monkeypatch):
    def cells(result):
        rows = re.findall(r"^(?:zs-clip|tda) .*", result.stdout, re.MULTILINE)
        return [row.split()[:6] for row in rows]  # but for the time

    two = ("--method", "zs-clip", "--method", "tda")
    whole = cells(board(*PAIRS[:2], *two))
    assert len(whole) == 8
    monkeypatch.setattr(run_queue, "_WORTH", 1)
    parts = board(*PAIRS[:2], *two, "--fresh", "--jobs", "2")
    assert (parts.exit_code, cells(parts)) == (0, whole)

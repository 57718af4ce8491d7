"""TPT once an image: replays of kept answers are the live runs, whatever the stream."""

import errno
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import PROMPT
from streams import assert_same

from zsntta_cli.cache import store
from zsntta_cli.extraction.plan import ExtractPlan, extract
from zsntta_cli.methods.live import tpt
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings, LiveSettings
from zsntta_cli.simulation import tuned
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.tuned import CACHED_ANSWERS, live_among

LIVE = LiveSettings(device="cpu", workers=1)


def tpt_run(ood_set="glyphs", **values):
    return build_run("tpt", "tiny", "shapes", ood_set, PROMPT, **{"views": 3, **values})


def extract_tiny(root, limit):
    names = ("shapes", "glyphs")
    plan = ExtractPlan(names, limit=limit, noise=("gaussian",), noise_count=4, partners=False)
    settings = ExtractSettings(8, workers=1, overwrite=True, device="cpu", features_dir=root)
    list(extract(plan, EncoderChoice("tiny"), settings, Reporter()))


def ask(root, run=None):
    """Keep the answers for all images, the noise too: a live run that asks about each."""
    run = run or tpt_run(pipeline="all", noise="gaussian", noise_every=4)
    return Simulator(root, LIVE).replay(run)


@pytest.fixture(scope="module")
def unasked(tmp_path_factory):
    """Features of 8 shapes, 8 letters and 4 noise images."""
    root = tmp_path_factory.mktemp("unasked")
    extract_tiny(root, 8)
    return root


@pytest.fixture(scope="module")
def asked(unasked, tmp_path_factory):
    """The same, with TPT's answers for all of them."""
    root = tmp_path_factory.mktemp("asked") / "features"
    shutil.copytree(unasked, root)
    ask(root)
    return root


@pytest.fixture
def root(unasked, tmp_path):
    shutil.copytree(unasked, tmp_path / "features")
    return tmp_path / "features"


def answer_files(root):
    return sorted((root / "tiny").glob("*.tpt"))


def replayed(root, run):
    replay = Simulator(root).replay(run)
    assert replay.made.device == CACHED_ANSWERS
    return replay


def live(root, run):
    """A live run that knows no kept answers, and keeps none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuned, "tuned_stream", lambda *_: None)
        return Simulator(root, LIVE).replay(run)


def assert_equal_items(one, other):
    assert_same(one.made.decisions, other.made.decisions)
    assert one.made.columns.keys() == other.made.columns.keys()
    for name, column in one.made.columns.items():
        assert np.array_equal(column, other.made.columns[name], equal_nan=True)


STREAMS = st.fixed_dictionaries({
    "pipeline": st.sampled_from(["normal", "gt", "all"]),
    "ratio": st.sampled_from([0.0, 0.25, 0.5, 0.75]),
    "order": st.sampled_from(["shuffled", "class", "burst", "late", "first"]),
    "seed": st.integers(0, 5),
    "noise": st.sampled_from(["none", "gaussian"]),
    "fixed": st.sampled_from([None, 0.2, 0.5, 0.9]),
    "fixed_on": st.sampled_from(["id-score", "noise-score"]),
    "limit": st.sampled_from([None, 6]),
    "ood_fill": st.sampled_from(["repeat", "cap"]),
})  # fmt: skip


@settings(max_examples=10, deadline=None)
@given(values=STREAMS)
def test_a_replay_decides_as_the_live_run_item_by_item(unasked, asked, values):
    run = tpt_run(**values)
    assert_equal_items(replayed(asked, run), live(unasked, run))
    assert not live_among(asked, [run])
    assert live_among(unasked, [run]) == {run}


def test_a_live_run_keeps_what_it_computes_and_computes_what_lacks(root):
    ask(root, tpt_run(ood_set=None, ratio=0.0, pipeline="all"))
    run = tpt_run(pipeline="all")
    assert live_among(root, [run])
    assert not live_among(root, [tpt_run(pipeline="gt")])
    assert not live_among(root, [tpt_run(ratio=0.0)])
    partly = Simulator(root, LIVE).replay(run)
    assert partly.made.device == "cpu"
    assert_equal_items(partly, live(root, run))
    assert not live_among(root, [run])  # all letters were shown
    assert_equal_items(replayed(root, run), partly)
    assert live_among(root, [tpt_run(pipeline="all", noise="gaussian")])
    assert not live_among(root, [tpt_run(noise="gaussian")])  # which never tunes on it


def test_ctrl_c_keeps_the_answers_so_far(root, monkeypatch):
    calls = []
    original = tpt.PromptTuning.__call__

    def interrupted(self, item, views):
        calls.append(item)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return original(self, item, views)

    monkeypatch.setattr(tpt.PromptTuning, "__call__", interrupted)
    run = tpt_run(pipeline="all")
    stopped = Simulator(root, LIVE).replay(run)
    assert stopped.unfinished
    again = Simulator(root, LIVE).replay(run)
    assert len(calls) == 6 + 16 - 5
    assert_equal_items(again, live(root, run))


def test_answers_that_cannot_be_kept_stop_no_live_run(root, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    notes, run = [], tpt_run()
    reporter = Reporter()
    reporter.note = notes.append
    replay = Simulator(root, LIVE, reporter).replay(run)
    assert_equal_items(replay, live(root, run))
    assert "answers of TPT are not kept: cannot write" in notes[-1]
    assert not answer_files(root)


def test_other_classes_settings_and_features_have_answers_of_their_own(root):
    folder, run = root / "tiny", tpt_run(pipeline="all")
    ask(root, run)
    for file in folder.glob("shapes.*"):
        shutil.copyfile(file, folder / file.name.replace("shapes", "twin"))
    replayed(root, replace(run, id_set="twin"))  # of equal classes and prompt
    others = [tpt_run(pipeline="all", keep=1.0), tpt_run(pipeline="all", learning_rate=0.01)]
    assert {ask(root, one).made.device for one in others} == {"cpu"}
    path = folder / "shapes.h5"
    whole = store.read(path)
    [text] = whole.texts.values()
    swapped = replace(text, features=text.features[::-1].copy())
    turned = replace(whole, class_names=whole.class_names[::-1], texts={text.template: swapped})
    store.write(turned, store.read_sample_ids(path))
    assert ask(root, run).made.device == "cpu"
    kept = [np.load(path)["answers"] for path in folder.glob("glyphs.*.tpt")]
    assert len({rows[:, 1].tobytes() for rows in kept}) == 4
    extract_tiny(root, 6)
    assert live_among(root, [run])
    renewed = Simulator(root, LIVE).replay(run)
    assert_equal_items(replayed(root, run), renewed)

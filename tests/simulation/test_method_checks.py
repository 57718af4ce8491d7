"""What `zsntta methods check` finds: methods of the package hold, and who cheats is caught."""

import dataclasses
import gc
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from made import with_some_pairs

from zsntta_cli import plugins
from zsntta_cli.cache.hdf5 import read_features
from zsntta_cli.methods import METHODS, Method, WarmUp
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.scores import softmax
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.plugins import load_script
from zsntta_cli.settings.options import Settings, option
from zsntta_cli.simulation.checks import CHECKS, FAILED, HELD, NOT_RUN, examine
from zsntta_cli.simulation.sources import Sources

CACHED = with_some_pairs(name for name, method in METHODS.items() if not method.live)
QUICK = {  # less to compute, and every stage of every method all the same
    "warmup": 2, "ridge_block": 64, "groups": 20, "oga_every": 512, "dota_every": 512,
    "syde_map": 4, "syde_map_steps": 10,
}  # fmt: skip


@dataclass(frozen=True)
class PlainSettings(Settings):
    batch_size: int = option(1, "Items that are decided on at once.")


def plain(data, options, threshold, u=None, classes=None, more=False):
    """ZS-CLIP, or another noise score or other classes in its place."""
    u = data.noise_score if u is None else u
    is_noise = (u > OnlineThreshold(threshold, options.batch_size)(u)) | more
    return Decisions(data.class_index if classes is None else classes, is_noise, 1 - u)


def by_the_mean_of_all(data, *settings):
    u = data.noise_score
    return plain(data, *settings, u=np.clip(u - u.mean() + 0.5, 0, 1) if len(u) else u)


def by_the_length(data, *settings):
    share = np.sqrt((1 + np.arange(len(data))) / max(len(data), 1))
    return plain(data, *settings, u=data.noise_score * share)


def by_the_next_item(data, *settings):
    next_is_noise = np.append(data.noise_score[1:] > 0.7, False)[: len(data)]
    return plain(data, *settings, more=next_is_noise)


def by_the_mean_of_the_pool(data, *settings):
    u = data.noise_score
    return plain(data, *settings, u=np.clip(u - data.pool.zero_shot.noise_score.mean() + 0.5, 0, 1))


def by_the_place_in_the_pool(data, *settings):
    return plain(data, *settings, more=data.index >= 0.55 * len(data.pool.image_features))


def by_numpys_randomness(data, *settings):
    return plain(data, *settings, more=np.random.random(len(data)) < 0.01)  # noqa: NPY002


def by_randoms_randomness(data, *settings):
    return plain(
        data, *settings, more=np.array([random.random() < 0.01 for _ in range(len(data))], bool)
    )


def seeds_numpys_randomness(data, *settings):
    np.random.seed(0)  # noqa: NPY002
    return plain(data, *settings)


def by_its_callers_frames(data, *settings):
    frame = sys._getframe()
    while frame := frame.f_back:
        stream = frame.f_locals.get("stream")
        if hasattr(stream, "kind") and len(stream) == len(data):
            return plain(data, *settings, more=stream.kind != 0)
    return plain(data, *settings)


def by_all_objects(data, *settings):
    sources = [thing for thing in gc.get_objects() if isinstance(thing, Sources)]
    if not sources:
        return plain(data, *settings)
    return plain(data, *settings, more=data.index >= len(sources[-1].id_set))


def by_the_labels_in_a_file(data, *settings):
    path = Path("features/tiny/shapes.h5")
    classes = data.class_index.copy()
    if path.exists():
        labels = read_features(path).labels
        is_id = data.index < len(labels)
        classes[is_id] = labels[data.index[is_id]]
    return plain(data, *settings, classes=classes)


def normalises_in_place(data, *settings):
    data.pool.image_features[...] /= 2
    return plain(data, *settings)


def sorts_its_index(data, *settings):
    decisions = plain(data, *settings)
    data.index.sort()
    return decisions


def with_two_best_classes(data, *settings):
    best = np.sort(softmax(data.logits(slice(None))), axis=1).astype(float)
    return plain(data, *settings, u=1 - (best[:, -1] - best[:, -2]))


def with_a_largest_score(data, *settings):
    decisions = plain(data, *settings)
    return dataclasses.replace(
        decisions, id_score=decisions.id_score + 0 * decisions.id_score.max()
    )


def remembers_the_last_run(data, *settings, runs=[]):  # noqa: B006
    runs.append(1)
    return plain(data, *settings, u=data.noise_score * 0.9 ** len(runs))


def with_whole_numbers(data, *settings):
    decisions = plain(data, *settings)
    return dataclasses.replace(decisions, is_noise=decisions.is_noise.astype(int))


def with_nans(data, *settings):
    decisions = plain(data, *settings)
    return dataclasses.replace(decisions, id_score=np.where(data.injected, np.nan, 1.0))


def with_a_class_too_many(data, *settings):
    return plain(data, *settings, classes=data.class_index + 1)


def undecided(data, *settings):
    return dataclasses.replace(plain(data, *settings), is_noise=None)


def raises(data, *settings):
    raise IndexError("list index out of range")


CHEATS = [
    (by_the_mean_of_all, "no look-ahead"),
    (by_the_length, "no look-ahead"),
    (by_the_next_item, "no look-ahead"),
    (by_the_mean_of_the_pool, "no look-ahead"),
    (by_the_place_in_the_pool, "order of the pool"),
    (by_numpys_randomness, "global random states"),
    (by_numpys_randomness, "twice is once"),
    (by_randoms_randomness, "global random states"),
    (seeds_numpys_randomness, "global random states"),
    (by_its_callers_frames, "no labels"),
    (by_all_objects, "no labels"),
    (by_the_labels_in_a_file, "no labels"),
    (normalises_in_place, "inputs unchanged"),
    (sorts_its_index, "inputs unchanged"),
    (with_two_best_classes, "one class"),
    (with_a_largest_score, "no item"),
    (remembers_the_last_run, "twice is once"),
    (with_whole_numbers, "well-formed decisions"),
    (with_nans, "well-formed decisions"),
    (with_a_class_too_many, "well-formed decisions"),
    (undecided, "well-formed decisions"),
    (raises, "well-formed decisions"),
]


def results(name, **values):
    return {result.check: result for result in examine(name, processes=False, **values)}


def failing(found):
    return {check for check, result in found.items() if result.outcome == FAILED}


@pytest.fixture
def register(monkeypatch):
    def add(run, **line):
        monkeypatch.setitem(METHODS, "mine", Method(run, PlainSettings, **line))
        return results("mine")

    return add


@pytest.mark.parametrize("name", CACHED)
def test_every_method_of_the_package_holds(name):
    fields = {field.name for field in dataclasses.fields(METHODS[name].settings)}
    found = results(name, **{k: v for k, v in QUICK.items() if k in fields})
    assert {check: found[check].evidence for check in failing(found)} == {}
    missing = {check for check, result in found.items() if result.outcome == NOT_RUN}
    method = METHODS[name]
    assert ("no look-ahead" in missing) == method.offline
    assert ("pieces against the whole" in missing) == (not method.stepper)
    assert ("score and decision" in missing) == (not method.decides)
    assert len(missing) == method.offline + (not method.stepper) + (not method.decides)


def test_an_honest_method_of_ones_own_holds(register):
    assert failing(register(plain)) == set()


@pytest.mark.parametrize(
    ("cheat", "check"), CHEATS, ids=[f"{cheat.__name__}-{check}" for cheat, check in CHEATS]
)
def test_who_cheats_is_caught(register, cheat, check):
    assert check in failing(register(cheat))


@pytest.mark.parametrize(
    ("cheat", "checks"),
    [(by_the_next_item, {"no look-ahead"}), (by_the_place_in_the_pool, {"order of the pool"}),
     (by_its_callers_frames, {"no labels"}), (with_two_best_classes, {"one class"}),
     (with_a_largest_score, {"no item"})],
)  # fmt: skip
def test_and_of_nothing_else(register, cheat, checks):
    assert failing(register(cheat)) == checks


def test_what_differs_first_is_named(register):
    found = register(by_the_next_item)["no look-ahead"].evidence
    assert "is_noise" in found
    assert "became" in found
    assert "item " in found
    found = register(raises)["one item"].evidence
    assert found == "it raised IndexError: list index out of range"
    assert (
        register(normalises_in_place)["inputs unchanged"].evidence == "it writes to image_features"
    )


def test_offline_is_not_asked_for_the_future_and_all_else(register):
    found = register(by_the_mean_of_all, offline=True)
    assert found["no look-ahead"].outcome == NOT_RUN
    assert "offline" in found["no look-ahead"].evidence
    assert failing(found) == set()


def test_a_batch_is_decided_at_once(register):
    def by_batches(data, options, threshold):
        u = data.noise_score.copy()
        for start in range(0, len(u), options.batch_size):
            batch = slice(start, start + options.batch_size)
            u[batch] = np.clip(u[batch] - u[batch].mean() + 0.5, 0, 1)
        return plain(data, options, threshold, u=u)

    register(by_batches)
    assert failing(results("mine", batch_size=64)) == set()
    register(by_batches, at_once=lambda options: 1)  # it says that it decides one by one
    assert failing(results("mine", batch_size=64)) == {"no look-ahead"}


def test_a_cut_lies_behind_the_warm_up(register):
    def later(data, *settings):
        u = data.noise_score
        late = np.arange(len(u)) >= 2_000
        return plain(data, *settings, u=np.where(late, u * u.max(initial=0), u))

    warm_up = WarmUp(lambda _: 2_000, "two thousand")
    assert failing(register(later, warm_up=warm_up)) == {"no look-ahead"}


class Forgetful:
    """A stepper whose threshold begins anew with each piece."""

    def __init__(self, _data, options, threshold):
        self._settings = options, threshold

    def push(self, data):
        return plain(data, *self._settings)


def test_pieces_that_are_not_the_whole_are_caught(register):
    assert failing(register(plain, stepper=Forgetful)) == {"pieces against the whole"}


def test_live_methods_are_said_not_to_be_run():
    found = results("tent")
    assert {result.outcome for result in found.values()} == {NOT_RUN}
    assert "live" in found["one item"].evidence


SCRIPT = '''
"""Noise by the order of a set of texts."""
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.methods.settings import ZsClipSettings
from zsntta_cli.methods.detectors.zs_clip import run as zs_clip
import dataclasses

def run(data, options, threshold):
    order = [{names}.index(name) for name in {names_in_order}]
    decisions = zs_clip(data, options, threshold)
    return dataclasses.replace(decisions, id_score=decisions.id_score * (1 + order[0]) / 1000)

METHODS["hashed"] = Method(run, ZsClipSettings)
'''
NAMES = [f"class {i}" for i in range(500)]


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """A method of a script, with what it takes the names' order from."""
    monkeypatch.setitem(METHODS, "hashed", METHODS["zs-clip"])  # so that it is gone afterwards
    monkeypatch.delitem(METHODS, "hashed")
    monkeypatch.setattr(plugins, "_added", {})

    def load(names_in_order):
        path = tmp_path / "hashed.py"
        path.write_text(SCRIPT.format(names=NAMES, names_in_order=names_in_order))
        assert load_script(path)["method"] == ["hashed"]
        return {result.check: result for result in examine("hashed")}

    return load


def test_another_process_has_the_same_decisions(scripted):
    found = scripted(NAMES)
    assert found["another process"].outcome == HELD
    assert failing(found) == set()


def test_the_order_of_a_set_is_caught_in_another_process(scripted):
    assert failing(scripted(f"list(set({NAMES}))")) == {"another process"}


def test_the_demos_features_are_taken_where_they_are_at_hand(cache):
    found = {result.check: result for result in examine("zs-clip", root=cache, processes=False)}
    assert failing(found) == set()


def test_every_check_has_a_sentence():
    for check in CHECKS.values():
        assert check.__doc__

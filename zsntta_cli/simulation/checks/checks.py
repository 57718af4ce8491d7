"""The checks, a function for each entry of CHECKS, which returns evidence or raises an error."""

import contextlib
import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zsntta_cli.errors import counted
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.match import matched
from zsntta_cli.methods.scores import unit, zero_shot
from zsntta_cli.settings import MATCH, ThresholdSettings
from zsntta_cli.settings.prompts import DEFAULT_PROMPT
from zsntta_cli.simulation.checks import material
from zsntta_cli.simulation.checks.elsewhere import decided_elsewhere
from zsntta_cli.simulation.checks.examined import (
    NOT_RUN,
    CheckResult,
    Examined,
    Failed,
    GlobalRandomness,
    NotRun,
    difference,
    slight,
    tried,
)
from zsntta_cli.simulation.checks.material import Material
from zsntta_cli.simulation.runs import RunSettings, build_run
from zsntta_cli.simulation.simulator import Simulator

_SHORTEST, _LONGEST = 1_206, 18_000  # items of a stream
_CUTS = 7
_PIECES = (1, 7, 64, 500)  # items that a stepper is pushed at a time
_MANY_CLASSES, _FEW_ITEMS = 300, 270
_SEEDS = 1, 2  # of the random states that no method may know


def examine(
    name: str, root: Path | None = None, processes: bool = True, **values: Any
) -> list[CheckResult]:
    """Check a method of METHODS, with some settings, for what is required of every method.

    The demo's features under `root` are used if they exist, else random ones. Without `processes`
    no other process is started.

    Raises:
        SettingsError: the method is unknown, or a value is out of its range.
    """
    run = _run(name, **values)
    if METHODS[name].live:
        reason = "the method is live: it is given images and an encoder, and these checks features"
        return [CheckResult(check, NOT_RUN, reason) for check in CHECKS]
    items = _items(run)
    images = (Material.cached(root, items) if root else None) or Material.drawn(items)
    examined = Examined(name, run.options, images, run.threshold)
    checks = {c: f for c, f in CHECKS.items() if processes or f is not in_another_process}
    return [tried(check, lambda f=function: f(examined)) for check, function in checks.items()]  # type: ignore[misc]


def _run(name: str, **values: Any) -> RunSettings:
    sets = material.ENCODER, material.ID_SET, material.OOD_SET
    return build_run(name, *sets, DEFAULT_PROMPT, **values)


def _items(run: RunSettings) -> int:
    """Enough items for the method's own rule to decide on half of them, a multiple of nine."""
    wanted = 2 * METHODS[run.method].warm_up.items(run.options) + 300
    return min(max(wanted, _SHORTEST), _LONGEST) // 9 * 9


def well_formed(examined: Examined) -> str:
    """Classes, decisions and scores have the shapes, types and values that they should."""
    data = examined.stream()
    decisions = examined.decide(data)
    _check_form(examined, data, decisions)
    return f"{len(data):,} items: {examined.material.about}"


def _check_form(examined: Examined, data: StreamData, decisions: Decisions) -> None:
    """Raise Failed if decisions do not allow a run to be judged."""
    count, classes = len(data), len(data.pool.text_features)
    columns = {"class_index": "iu", "is_noise": "b", "id_score": "f"}
    if (decisions.is_noise is None) == examined.method.decides:
        kind = "None" if decisions.is_noise is None else "an array"
        raise Failed(f"is_noise is {kind}, but its line says decides={examined.method.decides}")
    for name, kinds in columns.items():
        column = getattr(decisions, name)
        if column is None:
            continue
        if np.shape(column) != (count,) or np.asarray(column).dtype.kind not in kinds:
            raise Failed(
                f"{name} is {np.asarray(column).dtype} {np.shape(column)}, must be "
                f"{_TYPES[name]} ({count},)"
            )
    wrong = np.flatnonzero((decisions.class_index < 0) | (decisions.class_index >= classes))
    if len(wrong):
        value = decisions.class_index[wrong[0]]
        raise Failed(f"item {wrong[0]:,}: class_index is {value}, there are {classes} classes")
    wrong = np.flatnonzero(~np.isfinite(decisions.id_score))
    if len(wrong):
        value = decisions.id_score[wrong[0]]
        raise Failed(f"item {wrong[0]:,}: id_score is {value}; {len(wrong):,} are not finite")


_TYPES = {"class_index": "whole numbers", "is_noise": "bool", "id_score": "floats"}


def no_look_ahead(examined: Examined) -> str:
    """Decisions before a cut stay the same if the items after it are replaced or missing."""
    if examined.method.offline:
        raise NotRun("it is declared offline: it sees the whole stream before it decides")
    data, slight_at = examined.stream(), 0
    whole, cuts = examined.decide(data), _cuts(examined, len(data))
    for cut in cuts:
        before = whole.part(slice(cut))
        futures = {
            f"from item {cut:,} on are like no class": another_future(data, cut, False),
            f"from item {cut:,} on are like the classes": another_future(data, cut, True),
        }
        if cut in cuts[::3]:
            futures[f"from item {cut:,} on are missing"] = data.part(slice(cut))
        for how, stream in futures.items():
            other = examined.decide(stream).part(slice(cut))
            if changed := difference(before, other):
                raise Failed(f"where items {how}: {changed}")
            slight_at += slight(before, other) > 0
    if slight_at > 2:
        raise Failed(f"decisions before {slight_at} cuts differ by less than their scores")
    delay = examined.method.delay(examined.options)
    declared = f"; it is declared to decide up to {delay:,} items late" * bool(delay)
    return f"cut at {_listed(cuts)} of {len(data):,} items: two other futures, and none{declared}"


def _cuts(examined: Examined, items: int) -> list[int]:
    """Where to cut: in the warm-up, near its end and after it, at the ends of batches."""
    batch = max(examined.method.at_once(examined.options), 1)
    warm_up = examined.method.warm_up.items(examined.options)
    spread = np.linspace(items / _CUTS, items - 1, _CUTS - 2).astype(int).tolist()
    cuts = {cut // batch * batch for cut in (max(warm_up, 1), warm_up + 37, *spread)}
    return sorted(cut for cut in cuts if 0 < cut < items)


def another_future(data: StreamData, now: int, like_classes: bool) -> StreamData:
    """The same stream up to an item; then other images, all like classes or all unlike them."""
    rng, pool, later = np.random.default_rng(now), data.pool, data.index[now:]
    features, text = pool.image_features[:].copy(), pool.text_features
    rows = rng.normal(size=(len(later), text.shape[1]))
    if like_classes:
        rows = text[rng.integers(len(text), size=len(later))] + 0.01 * rows
    else:  # what is left of them beside the classes
        rows -= rows @ np.linalg.pinv(text) @ text
    features[later] = 2 * np.linalg.norm(features, axis=1).mean() * unit(rows)
    scores = zero_shot(features, text, pool.logit_scale)
    injected = data.injected.copy()
    injected[now:] = rng.random(len(later)) < 0.3 * (not like_classes)
    other = dataclasses.replace(pool, image_features=features, zero_shot=scores)
    return StreamData(other, data.index, injected, data.seed)


def twice_is_once(examined: Examined) -> str:
    """Two runs give the same result to the bit."""
    data = examined.stream()
    if changed := difference(examined.decide(data), examined.decide(data), exact=True):
        raise Failed(f"the second of two runs: {changed}")
    return f"two runs on {len(data):,} items, to the bit"


def in_another_process(examined: Examined) -> str:
    """Another process, with other text hashes, gives the same result to the bit."""
    here = examined.decide(examined.stream())
    if changed := difference(here, decided_elsewhere(examined), exact=True):
        raise Failed(f"another process: {changed}")
    return f"{len(here.class_index):,} items, to the bit"


def global_randomness(examined: Examined) -> str:
    """The random states that a process shares are neither read nor changed."""
    data, decisions = examined.stream(), []
    for seed in _SEEDS:
        with GlobalRandomness(seed) as states:
            decisions.append(examined.decide(data))
            if changed := states.changed():
                raise Failed(f"{' and '.join(changed)} global random state was drawn from or set")
    first, second = decisions
    if other_decisions := difference(first, second, exact=True):
        raise Failed(f"with another seed of the global random states: {other_decisions}")
    return "two seeds of random's and NumPy's states: neither read nor changed"


def no_labels(examined: Examined) -> str:
    """With the same features, other labels and another truth change no decision.

    The runs are made as on the command line, on feature files, so that the labels that a method
    could see in files or in the calling frames change, too.
    """
    images = examined.material
    here, relabelled = (_replayed(examined, one) for one in (images, images.with_other_truth()))
    if changed := difference(here, relabelled):
        raise Failed(f"where labels and the truth are others behind the same features: {changed}")
    return (
        f"a run on feature files, and one where {images.sizes[0] // 4:,} images fewer are ID and "
        f"all labels others"
    )


def _replayed(examined: Examined, images: Material) -> Decisions:
    """A run on feature files of these images, in a folder of its own."""
    options = examined.options
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        root = Path("features")
        images.write(root)
        if examined.method.needs == WORDS:
            options = dataclasses.replace(options, words=material.WORD_LIST)
        elif examined.method.needs == NO_TEXT:
            options = dataclasses.replace(options, no_text=str(root / "no-text.npy"))
        run = _run(examined.name)
        run = dataclasses.replace(
            run, stream=images.stream_settings, threshold=examined.threshold, options=options
        )
        return Simulator(root).replay(run).decisions


def pool_order(examined: Examined) -> str:
    """The position of an image among all images changes no decision."""
    data = examined.stream()
    order = np.random.default_rng(3).permutation(len(data.pool.image_features))
    place = np.argsort(order)
    pool = dataclasses.replace(
        data.pool, image_features=data.pool.image_features[order],
        zero_shot=dataclasses.replace(
            data.pool.zero_shot,
            **{k: v[order] for k, v in vars(data.pool.zero_shot).items() if v is not None},
        ),
    )  # fmt: skip
    moved = StreamData(pool, place[data.index], data.injected, data.seed)
    if changed := difference(examined.decide(data), examined.decide(moved)):
        raise Failed(f"where ID, OOD and injected noise images are mixed in the pool: {changed}")
    return f"{len(order):,} images in another order of the pool"


def inputs_unchanged(examined: Examined) -> str:
    """The arrays that a method gets are unchanged afterwards."""
    examined.changed.clear()
    examined.decide(examined.stream())
    if examined.changed:
        raise Failed(f"it writes to {', '.join(sorted(examined.changed))}")
    return "every array is as it was"


def one_class(examined: Examined) -> str:
    """A single class is enough: with MCM's score or, if that is constant, the logit's."""
    images = Material.drawn(_FEW_ITEMS, classes=1)
    data, threshold = images.stream(examined.method.needs), examined.threshold
    if examined.method.decides:  # MCM is 1 for every image: simulate asks for this score
        data = matched(data, None)
        threshold = dataclasses.replace(threshold, score=MATCH)
    return _takes(examined, data, threshold)


def clean_stream(examined: Examined) -> str:
    """A stream without OOD images and injected noise is accepted."""
    return _takes(examined, examined.material.clean_stream(examined.method.needs))


def one_item(examined: Examined) -> str:
    """A stream of one item is accepted."""
    return _takes(examined, examined.stream().part(slice(1)))


def no_item(examined: Examined) -> str:
    """A stream of no item is accepted."""
    return _takes(examined, examined.stream().part(slice(0)))


def many_classes(examined: Examined) -> str:
    """More classes than items are accepted."""
    images = Material.drawn(_FEW_ITEMS, classes=_MANY_CLASSES)
    return _takes(examined, images.stream(examined.method.needs))


def _takes(examined: Examined, data: StreamData, threshold: ThresholdSettings | None = None) -> str:
    """Decide on a stream, and check the form of the decisions."""
    other = dataclasses.replace(examined, threshold=threshold or examined.threshold)
    _check_form(examined, data, other.decide(data))
    classes = len(data.pool.text_features)
    return f"{counted(len(data), 'item')}, {counted(classes, 'class', 'classes')}"


def in_pieces(examined: Examined) -> str:
    """A stepper that gets the stream in pieces gives the decisions of the whole stream."""
    method, data = examined.method, examined.stream()
    if not method.stepper:
        raise NotRun("it has no stepper: it takes whole streams")
    whole, batch = examined.decide(data), max(method.at_once(examined.options), 1)
    for size in _PIECES:
        step = -(-size // batch) * batch
        with examined.one_thread():
            stepper = method.start(data.part(slice(0)), examined.options, examined.threshold)
            pushed = Decisions.joined([stepper.push(piece) for piece in _pieces(data, step)])
        if changed := difference(whole, pushed, exact=True):
            raise Failed(f"in pieces of {step:,} items: {changed}")
    return f"pieces of {_listed(_PIECES)} items and an empty one, to the bit"


def _pieces(data: StreamData, size: int) -> Iterator[StreamData]:
    bounds = [0, 0, *range(size, len(data), size), len(data)]
    return (data.part(slice(a, b)) for a, b in itertools.pairwise(bounds))


def score_agrees(examined: Examined) -> str:
    """Items called clean have higher ID scores than items called noise: reported, not required."""
    decisions = examined.decide(examined.stream())
    if decisions.is_noise is None:
        raise NotRun("it gives scores without decisions")
    is_noise = decisions.is_noise
    if is_noise.all() or not is_noise.any():
        return "all items are called the same"
    clean, noise = (decisions.id_score[part].mean() for part in (~is_noise, is_noise))
    warning = "" if clean > noise else ": AUROC and FPR95 are of the score, and say the opposite"
    return f"mean ID score {clean:.3g} of what is called clean, {noise:.3g} of noise{warning}"


def _listed(numbers: Sequence[int]) -> str:
    *first, last = [f"{n:,}" for n in numbers]
    return f"{', '.join(first)} and {last}" if first else last


CHECKS: dict[str, Callable[[Examined], str]] = {
    "well-formed decisions": well_formed,
    "no look-ahead": no_look_ahead,
    "no labels": no_labels,
    "order of the pool": pool_order,
    "twice is once": twice_is_once,
    "another process": in_another_process,
    "global random states": global_randomness,
    "inputs unchanged": inputs_unchanged,
    "one class": one_class,
    "a clean stream": clean_stream,
    "one item": one_item,
    "no item": no_item,
    "many classes": many_classes,
    "pieces against the whole": in_pieces,
    "score and decision": score_agrees,
}

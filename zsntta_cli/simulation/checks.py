"""Is a method honest? Three checks of whole streams that differ in what it must not know.

A method never looks ahead, decides by what images and texts show, not by the order of the classes,
and gives the same result twice. Each entry of CHECKS runs the method on drawn features in memory,
and names the first item whose decision differs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError, counted, first_line
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS, Method
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.match import Match
from zsntta_cli.methods.method import fault
from zsntta_cli.methods.scores import unit, zero_shot
from zsntta_cli.settings import MATCH
from zsntta_cli.settings.prompts import DEFAULT_PROMPT
from zsntta_cli.simulation.runs import RunSettings, build_run
from zsntta_cli.simulation.simulator import decide_from_cache

HELD, FAILED, NOT_RUN = "held", "FAILED", "not run"
Outcome = tuple[str, str]  # one of these, and its evidence

_SCALE = 20.0  # of logits
_DIM, _CLASSES, _CLUSTERS, _WORDS = 32, 10, 4, 300
_OOD_SHARE, _NOISE_EVERY = 0.4, 8
_ROUND = _NOISE_EVERY + 1  # items from one injected image to the next
_SHORTEST, _LONGEST = 134 * _ROUND, 2_000 * _ROUND  # items of a stream
_ROUNDED = 0.002  # share of items on which the last bits of products of other shapes may decide
_SLIGHT = 2  # runs with another future, in which they may decide on any item

Array = NDArray[np.float32]


@dataclass(frozen=True)
class CheckResult:
    """The result of one check."""

    check: str
    outcome: str  # HELD, FAILED or NOT_RUN
    evidence: str  # on what, or which item first differed


def check_method(method: str | type[Method], **settings: Any) -> list[CheckResult]:
    """Check a method with some settings: one of METHODS by its name, or a class of your own.

    Raises:
        SettingsError: the method is unknown or not a class of a method, or a value is out of range.
    """
    if isinstance(method, str):
        run = build_run(method, "drawn", "id", "ood", DEFAULT_PROMPT, **settings)
        return [CheckResult(check, *_outcome(check, run)) for check in CHECKS]
    if wrong := fault(method, Method):
        raise SettingsError(f"{wrong}.")
    name = method.__name__
    before = METHODS.data.get(name)
    METHODS[name] = method  # where runs find it
    try:
        return check_method(name, **settings)
    finally:
        if before is None:
            del METHODS[name]
        else:
            METHODS.data[name] = before


def _outcome(check: str, run: RunSettings) -> Outcome:
    """The outcome of a check; any error of the method is a failure, too."""
    if METHODS[run.method].live:
        reason = "the method is live: it needs images and an encoder, but these checks use features"
        return NOT_RUN, reason
    try:
        return CHECKS[check](run)
    except Exception as error:  # the method is someone else's code
        return FAILED, f"it raised {type(error).__name__}: {first_line(error)}"


def the_future(run: RunSettings) -> Outcome:
    """Decisions before a cut stay the same if later items are replaced or missing."""
    if METHODS[run.method].offline:
        return NOT_RUN, "it is declared offline: it sees the whole stream before it decides"
    items, together, slight = _drawn(run), run.options.at_once, 0
    whole, total = _decide(run, items), len(items)
    # After the first item, after the warm-up, between, before the last item.
    places = {1, run.options.warm_up + 37, total // 3, total // 2, total * 2 // 3, total - 1}
    cuts = [cut for cut in sorted(places) if together <= cut < total]
    for cut in cuts:
        futures = {
            "resemble no class": _with_another_future(items, cut, like_classes=False),
            "resemble the classes": _with_another_future(items, cut, like_classes=True),
            "are missing": items.part(slice(cut)),
        }
        decided = slice(cut // together * together)
        for how, stream in futures.items():
            before, after = whole.part(decided), _decide(run, stream).part(decided)
            if changed := _difference(before, after):
                return FAILED, f"if the items from {cut:,} on {how}: {changed}"
            slight += bool(_difference(before, after, share=0))
    if slight > _SLIGHT:
        return FAILED, f"{slight} of {3 * len(cuts)} other futures change an earlier decision"
    delay = together - 1
    late = f"; it declares a delay of up to {counted(delay, 'item')}" if delay else ""
    return HELD, f"{len(cuts)} cuts in {total:,} items, with two other futures and with none{late}"


def the_classes(run: RunSettings) -> Outcome:
    """Decisions stay the same if the classes have another order."""
    items, order = _drawn(run), np.random.default_rng(3).permutation(_CLASSES)
    moved = replace(items, text_features=items.text_features[order])
    if METHODS[run.method].needs == NO_TEXT and items.more_text is not None:  # a row per class
        moved = replace(moved, more_text=items.more_text[order])
    after = _decide(run, _scored(moved))
    after = replace(after, class_index=order[after.class_index].astype(np.int32))
    if changed := _difference(_decide(run, items), after):
        return FAILED, f"if the classes have another order: {changed}"
    return HELD, f"{_CLASSES} classes in another order, {len(items):,} items"


def two_runs(run: RunSettings) -> Outcome:
    """Two runs give the same result, bit for bit."""
    items = _drawn(run)
    if changed := _difference(_decide(run, items), _decide(run, items), 0, rtol=0, atol=0):
        return FAILED, f"the second of two runs: {changed}"
    return HELD, f"{len(items):,} items, bit for bit"


CHECKS: dict[str, Callable[[RunSettings], Outcome]] = {
    "another future": the_future,
    "other classes": the_classes,
    "two runs": two_runs,
}


def _drawn(run: RunSettings) -> StreamData:
    """Enough items for the method's own rule to decide on half of them; each time the same.

    They are clusters around class texts and elsewhere, and injected ones around a point.
    """
    wanted = min(max(2 * run.options.warm_up + 300, _SHORTEST), _LONGEST)
    items, rng = wanted // _ROUND * _ROUND, np.random.default_rng(24)
    text, clusters = _directions(rng, _CLASSES), _directions(rng, _CLUSTERS)
    of_classes = 10 * text[rng.integers(_CLASSES, size=items)]
    elsewhere = 5 * clusters[rng.integers(_CLUSTERS, size=items)]
    is_ood = rng.random(items) < _OOD_SHARE
    injected = np.arange(items) % _ROUND == _NOISE_EVERY
    centres = np.where(is_ood[:, None], elsewhere, of_classes)
    centres[injected] = 3
    features = (centres + 1.5 * rng.normal(size=centres.shape)).astype(np.float32)
    no_text, words = unit(_directions(rng, _CLASSES) - text), _directions(rng, _WORDS)
    needs = METHODS[run.method].needs
    more_text, sizes = {WORDS: (words, (_WORDS,)), NO_TEXT: (no_text, ())}.get(needs, (None, ()))
    return StreamData.scored(
        features, text, _SCALE, injected, seed=run.stream.seed, more_text=more_text,
        more_sizes=sizes,
    )  # fmt: skip


def _scored(items: StreamData) -> StreamData:
    """The same items after a change of their features or of the class texts."""
    features, text = items.image_features, items.text_features
    return replace(items, zero_shot=zero_shot(features, text, items.logit_scale))


def _with_another_future(items: StreamData, now: int, like_classes: bool) -> StreamData:
    """The same stream up to an item; then other images, all like classes or all unlike them."""
    rng, later, text = np.random.default_rng(now), len(items) - now, items.text_features
    rows = rng.normal(size=(later, _DIM))
    if like_classes:
        rows = text[rng.integers(_CLASSES, size=later)] + 0.01 * rows
    else:  # what is left of them beside the classes
        rows -= rows @ np.linalg.pinv(text) @ text
    features = items.image_features.copy()
    features[now:] = 2 * np.linalg.norm(features, axis=1).mean() * unit(rows)
    return _scored(replace(items, image_features=features))


def _decide(run: RunSettings, items: StreamData) -> Decisions:
    """The decisions of a run on these images, made as on the command line."""
    return decide_from_cache(run, Match(None)(items) if run.threshold.score == MATCH else items)


def _directions(rng: np.random.Generator, count: int) -> Array:
    return unit(rng.normal(size=(count, _DIM))).astype(np.float32)


def _difference(
    first: Decisions,
    second: Decisions,
    share: float = _ROUNDED,
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> str:
    """The first item with another decision, and how many differ; empty if all are equal.

    Scores are equal but for their last bits, and up to a `share` of the items because of them.
    """
    differs = ~np.isclose(first.id_score, second.id_score, rtol, atol, equal_nan=True)
    differs |= first.class_index != second.class_index
    if first.is_noise is not None and second.is_noise is not None:
        differs |= first.is_noise != second.is_noise
    if differs.mean() <= share:
        return ""
    item = int(np.flatnonzero(differs)[0])
    changes = []
    for name in ("class_index", "is_noise", "id_score"):
        before, after = getattr(first, name), getattr(second, name)
        if before is not None and before[item] != after[item]:
            changes.append(f"{name} {before[item]} became {after[item]}")
    return f"item {item:,}: {', '.join(changes)}; {counted(int(differs.sum()), 'item')} in all"

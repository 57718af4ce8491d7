"""Is a method honest? Three checks of whole runs, on images that differ in what it must not know.

A method never looks ahead, decides by what images and texts show, not by names, labels or their
order, and gives the same result twice. Each entry of CHECKS runs the method, as a replay does, on
drawn images in memory, and names the first item with another decision.
"""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.names import DATASET, NOISE, noise_name
from zsntta_cli.errors import SettingsError, counted, first_line
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS, Method
from zsntta_cli.methods.base import Decisions, MoreText
from zsntta_cli.methods.method import fault
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import NOISE_TYPES, StreamSettings
from zsntta_cli.settings.prompts import DEFAULT_PROMPT
from zsntta_cli.simulation.runs import RunSettings, build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.sources import Library, Sources
from zsntta_cli.simulation.stream import build_stream

HELD, FAILED, NOT_RUN = "held", "FAILED", "not run"

_ENCODER = {"model": "drawn", "pretrained": "drawn", "precision": "fp32", "logit_scale": 20.0}
_DIM, _CLASSES, _CLUSTERS = 32, 10, 4
_OOD_SHARE, _NOISE_EVERY = 0.4, 8
_ROUND = _NOISE_EVERY + 1  # items from one injected image to the next
_SHORTEST, _LONGEST = 134 * _ROUND, 2_000 * _ROUND  # items of a stream
_ROUNDED = 0.002  # share of items on which the last bits of products of other shapes may decide
_SLIGHT = 2  # runs with another future, in which they may decide on any item


@dataclass(frozen=True)
class CheckResult:
    """The result of one check."""

    check: str
    outcome: str  # HELD, FAILED or NOT_RUN
    evidence: str  # on what, or which item first differed


class _Failed(Exception):
    """A check failed; its text is the evidence."""


class _NotRun(Exception):
    """A check does not apply; its text says why."""


def check_method(method: str | type[Method], **settings: Any) -> list[CheckResult]:
    """Check a method with some settings: one of METHODS by its name, or a class of your own.

    Raises:
        SettingsError: the method is unknown or no class of a method, or a value is out of range.
    """
    with _named(method) as name:
        run = build_run(name, "drawn", "id", "ood", DEFAULT_PROMPT, **settings)
        if METHODS[name].live:
            reason = (
                "the method is live: it is given images and an encoder, and these checks features"
            )
            return [CheckResult(check, NOT_RUN, reason) for check in CHECKS]
        return [_result(check, run) for check in CHECKS]


@contextmanager
def _named(method: str | type[Method]) -> Iterator[str]:
    """The name under which METHODS has a method, if only within."""
    if isinstance(method, str):
        yield method
        return
    if wrong := fault(method, Method):
        raise SettingsError(f"{wrong}.")
    before = METHODS.data.get(method.__name__)
    METHODS[method.__name__] = method
    try:
        yield method.__name__
    finally:
        if before is None:
            del METHODS[method.__name__]
        else:
            METHODS.data[method.__name__] = before


def _result(check: str, run: RunSettings) -> CheckResult:
    """The result of a check; any error of the method is a failure, too."""
    try:
        return CheckResult(check, HELD, CHECKS[check](run))
    except _NotRun as reason:
        return CheckResult(check, NOT_RUN, str(reason))
    except _Failed as finding:
        return CheckResult(check, FAILED, str(finding))
    except Exception as error:  # the method is someone else's code
        return CheckResult(check, FAILED, f"it raised {type(error).__name__}: {first_line(error)}")


def the_future(run: RunSettings) -> str:
    """Decisions before a cut stay the same if later items are replaced or missing."""
    method = METHODS[run.method]
    if method.offline:
        raise _NotRun("it is declared offline: it sees the whole stream before it decides")
    images = _Images.drawn(_items(run))
    whole, together = images.decisions(run), run.options.at_once
    cuts, slight = [cut for cut in _cuts(run) if cut >= together], 0
    for cut in cuts:
        others = {
            "are like no class": images.with_another_future(cut, like_classes=False),
            "are like the classes": images.with_another_future(cut, like_classes=True),
            "are missing": dataclasses.replace(images, shown=cut),
        }
        decided = slice(cut // together * together)
        for how, other in others.items():
            before, after = whole.part(decided), other.decisions(run).part(decided)
            if changed := _difference(before, after):
                raise _Failed(f"where items from item {cut:,} on {how}: {changed}")
            slight += bool(_difference(before, after, share=0))
    if slight > _SLIGHT:
        raise _Failed(f"{slight} of {3 * len(cuts)} other futures change a decision before them")
    delay = run.options.at_once - 1
    late = f"; it is declared to decide up to {counted(delay, 'item')} late" if delay else ""
    return f"{len(cuts)} cuts in {_items(run):,} items: two other futures, and none{late}"


def the_classes(run: RunSettings) -> str:
    """Decisions stay the same if classes get other names, labels and places.

    Labels, the truth and the rows of the sets change behind the same features, too: fewer of the
    images are ID, and others.
    """
    images = _Images.drawn(_items(run))
    order = np.random.default_rng(3).permutation(_CLASSES)
    moved = images.with_other_classes(order).decisions(run)
    moved = dataclasses.replace(moved, class_index=order[moved.class_index].astype(np.int32))
    if changed := _difference(images.decisions(run), moved):
        raise _Failed(f"where classes have other names, labels and places: {changed}")
    return f"{_CLASSES} classes with other names, labels and places, on {_items(run):,} items"


def two_runs(run: RunSettings) -> str:
    """Two runs give the same result to the bit."""
    images = _Images.drawn(_items(run))
    if changed := _difference(images.decisions(run), images.decisions(run), 0, rtol=0, atol=0):
        raise _Failed(f"the second of two runs: {changed}")
    return f"{_items(run):,} items, to the bit"


CHECKS: dict[str, Callable[[RunSettings], str]] = {
    "another future": the_future,
    "other classes": the_classes,
    "two runs": two_runs,
}


def _items(run: RunSettings) -> int:
    """Enough items for the method's own rule to decide on half of them, in whole rounds."""
    wanted = 2 * run.options.warm_up + 300
    return min(max(wanted, _SHORTEST), _LONGEST) // _ROUND * _ROUND


def _cuts(run: RunSettings) -> list[int]:
    """Where to cut: after the first item, after the warm-up, between, before the last item."""
    items, warm_up = _items(run), run.options.warm_up
    cuts = {1, warm_up + 37, items // 3, items // 2, items * 2 // 3, items - 1}
    return sorted(cut for cut in cuts if cut < items)


@dataclass(frozen=True)
class _Images:
    """P drawn images, ID then OOD then noise, and the texts of C classes and of words."""

    features: NDArray[np.float32]  # (P, D) raw
    sizes: tuple[int, int, int]  # images of each kind
    labels: NDArray[np.int32]  # (N_id,)
    text: NDArray[np.float32]  # (C, D) unit norm
    words: NDArray[np.float32]  # (W, D) unit norm
    no_text: NDArray[np.float32]  # (C, D) unit norm: what CLIPN asks for
    name: str = "class"  # that the classes are named after
    shown: int | None = None  # items of the stream; None: all
    order: str = "shuffled"  # of the stream

    @classmethod
    def drawn(cls, items: int) -> "_Images":
        """Clusters around class texts and elsewhere, noise around a point; the same each time."""
        rng = np.random.default_rng(24)
        n_noise = items // _ROUND
        n_ood = round(_OOD_SHARE * (items - n_noise))
        n_id = items - n_noise - n_ood
        text, clusters = _directions(rng, _CLASSES), _directions(rng, _CLUSTERS)
        labels = rng.integers(_CLASSES, size=n_id).astype(np.int32)
        ood = 5 * clusters[rng.integers(_CLUSTERS, size=n_ood)]
        centres = np.concatenate([10 * text[labels], ood, np.full((n_noise, _DIM), 3)])
        features = (centres + 1.5 * rng.normal(size=centres.shape)).astype(np.float32)
        words = _directions(rng, 300)
        no_text = unit(_directions(rng, _CLASSES) - text)
        return cls(features, (n_id, n_ood, n_noise), labels, text, words, no_text)

    @property
    def stream(self) -> StreamSettings:
        """The stream over all images, each once."""
        n_id, n_ood, _ = self.sizes
        limit = None if self.shown is None else self.shown - self.shown // _ROUND
        return StreamSettings(
            ratio=n_ood / (n_id + n_ood), noise=NOISE_TYPES[0], noise_every=_NOISE_EVERY,
            limit=limit, order=self.order,
        )  # fmt: skip

    @property
    def rows(self) -> NDArray[np.integer]:
        """The image that each item of the stream shows (T,)."""
        stream = build_stream(self.stream, *self.sizes)
        rows: NDArray[np.integer] = stream.row + np.cumsum([0, *self.sizes[:2]])[stream.kind]
        return rows

    def with_another_future(self, now: int, like_classes: bool) -> "_Images":
        """The same stream up to an item; then other images, all like classes or all unlike them."""
        rng, later = np.random.default_rng(now), self.rows[now:]
        rows = rng.normal(size=(len(later), _DIM))
        if like_classes:
            rows = self.text[rng.integers(_CLASSES, size=len(later))] + 0.01 * rows
        else:  # what is left of them beside the classes
            rows -= rows @ np.linalg.pinv(self.text) @ self.text
        features = self.features.copy()
        features[later] = 2 * np.linalg.norm(features, axis=1).mean() * unit(rows)
        return dataclasses.replace(self, features=features)

    def with_other_classes(self, order: NDArray[np.integer]) -> "_Images":
        """The same images in a row: class `order[i]` is the i-th; other labels, names and truth."""
        n_id, n_ood, n_noise = self.sizes
        sizes = n_id - n_id // 4, n_ood + n_id // 4, n_noise
        labels = (self.labels[: sizes[0]] + 1) % _CLASSES
        other = dataclasses.replace(
            self, features=self.features.copy(), sizes=sizes, labels=labels, order="burst",
            text=self.text[order], no_text=self.no_text[order], name="another",
        )  # fmt: skip
        other.features[other.rows] = self.features[self.rows]
        return other

    def decisions(self, run: RunSettings) -> Decisions:
        """The decisions of a run on these images, made as on the command line."""
        run = dataclasses.replace(run, stream=self.stream)
        return Simulator(_Drawn(self)).replay(run).decisions

    def part(self, kind: str, name: str, rows: slice) -> Features:
        """Some of the images as a set: its labels, if it is the ID set, and its class texts."""
        images, is_id = self.features[rows], name == "id"
        return Features(
            Path(name), kind, name, _ENCODER, {}, images,
            self.labels if is_id else np.full(len(images), -1, np.int32),
            tuple(f"{self.name} {i}" for i in range(_CLASSES)) if is_id else (),
            {DEFAULT_PROMPT: Text(DEFAULT_PROMPT, self.text)} if is_id else {},
            machine={}, created="",
        )  # fmt: skip


class _Drawn(Library):
    """Drawn images as the sets of a folder, which are in memory alone."""

    def __init__(self, images: _Images) -> None:
        super().__init__(Path())
        n_id, n_ood, _ = images.sizes
        noise = noise_name(NOISE_TYPES[0])
        self._images = images
        self._sets = {
            "id": images.part(DATASET, "id", slice(n_id)),
            "ood": images.part(DATASET, "ood", slice(n_id, n_id + n_ood)),
            noise: images.part(NOISE, noise, slice(n_id + n_ood, None)),
        }

    def _read_file(self, encoder_name: str, name: str) -> Features:
        del encoder_name
        return self._sets[name]

    def more_text(self, settings: RunSettings) -> MoreText | None:
        """The words that a method needs, or the features of its "no" text encoder."""
        needs = METHODS[settings.method].needs
        if needs == WORDS:
            return MoreText(self._images.words, (len(self._images.words),))
        return MoreText(self._images.no_text) if needs == NO_TEXT else None

    def origins(self, settings: RunSettings, sources: Sources) -> dict[str, dict[str, Any]]:
        """None: they are of no file."""
        del settings, sources
        return {}


def _directions(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    return unit(rng.normal(size=(count, _DIM))).astype(np.float32)


def _difference(
    one: Decisions,
    other: Decisions,
    share: float = _ROUNDED,
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> str:
    """The first item with another decision, and how many differ; empty if all are equal.

    Scores are equal but for their last bits, and up to a `share` of the items because of them.
    """
    differs = ~np.isclose(one.id_score, other.id_score, rtol, atol, equal_nan=True)
    differs |= one.class_index != other.class_index
    if one.is_noise is not None and other.is_noise is not None:
        differs |= one.is_noise != other.is_noise
    if differs.mean() <= share:
        return ""
    item = int(np.flatnonzero(differs)[0])
    changes = []
    for name in ("class_index", "is_noise", "id_score"):
        before, after = getattr(one, name), getattr(other, name)
        if before is not None and before[item] != after[item]:
            changes.append(f"{name} {before[item]} became {after[item]}")
    return f"item {item:,}: {', '.join(changes)}; {counted(int(differs.sum()), 'item')} in all"

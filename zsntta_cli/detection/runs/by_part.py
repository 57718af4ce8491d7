"""Verdicts on a set in parts: one file for each part, so that finished parts are not repeated.

On arrival one detector goes through the parts in order, and its state is kept after each. In
hindsight it learns from one part, and judges every part by what it learned there, each image by
itself: parts then do not depend on each other, and several processes may judge them. Ranks are
within a part. A file is absent or whole.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import FeatureSet, PartFile
from zsntta_cli.cache.hdf5 import read_sample_ids
from zsntta_cli.detection import kept
from zsntta_cli.detection.encoding import Encoded, Encoding
from zsntta_cli.detection.runs.deciding import RowMaker, on_arrival
from zsntta_cli.detection.runs.detecting import Batch, DetectRun, RowSink, detect_run
from zsntta_cli.detection.runs.flags import Flagged, Ranking, flagged
from zsntta_cli.detection.runs.request import Request
from zsntta_cli.detection.sources.item import Item, refuse
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.settings.options import check

PART = "{part}"  # in the name of the verdict files
_BLOCK = 2048  # images at a time
MakeSink = Callable[[Path], RowSink]


@dataclass(frozen=True)
class PartsRequest:
    """The request for verdicts on the parts of a set."""

    request: Request
    out: str  # the verdict files' name, with PART in it
    calibrate_on: int | None = None  # the part that is learned from, in hindsight
    only: int | None = None  # the only part that is judged
    jobs: int = 1

    def __post_init__(self) -> None:
        check(self.jobs >= 1, f"jobs is {self.jobs}, must be 1 or more.")
        check(self.request.images.set_name is not None, "parts need a cached set: --set.")
        rule = self.request.rule
        if self.request.on_arrival:
            alone = self.calibrate_on is None and self.only is None and self.jobs == 1
            check(
                alone,
                "on arrival each part goes on from what was learned on the one before: one process "
                "does so in order, and nothing is calibrated.",
            )
            return
        check(
            self.calibrate_on is not None,
            "in hindsight parts need one calibration: name the part that is learned from, as "
            "--calibrate-on 1, or take --decide arrival.",
        )
        check(rule.clean is None, "a rate of clean images is measured on one folder, not on parts.")

    def place(self, index: int) -> Path:
        """The verdict file of a part."""
        return Path(self.out.replace(PART, f"{index:05d}"))

    @property
    def calibration(self) -> Path:
        """The file of the detector that judges all parts."""
        return Path(self.out.replace(PART, "calibration")).with_suffix(".h5")


@dataclass(frozen=True)
class JudgedPart:
    """A verdict file of a part."""

    path: Path
    images: int
    noise: int | None  # called noise; None of a file that was there


def parts_to_judge(asked: PartsRequest, cached: FeatureSet | None) -> range:
    """The numbers of the requested parts.

    Raises:
        SettingsError: the set is not in parts, or has no such part.
    """
    name = asked.request.images.set_name
    if cached is None or not cached.parts:
        raise SettingsError(f"'{name}' was not made in parts: leave {PART} out of --out.")
    of = len(cached.parts)
    for option, index in (("calibrate-on", asked.calibrate_on), ("part", asked.only)):
        check(index is None or 1 <= index <= of, f"{option} is {index}, must be 1 to {of}.")
    return range(1, of + 1) if asked.only is None else range(asked.only, asked.only + 1)


def judge_in_order(
    asked: PartsRequest, encoding: Encoding, make_sink: MakeSink
) -> Iterator[JudgedPart]:
    """Judge the parts on arrival, one after the other, from the first one without its file."""
    run = detect_run(asked.request, encoding)
    numbers = parts_to_judge(asked, run.cached)
    done = _resume(asked, run, numbers)
    for index in numbers:
        if index <= done:
            yield JudgedPart(asked.place(index), _part(run, index).images, None)
            continue
        decide = on_arrival(run.detector, asked.request.rule.flag, Ranking())
        place = asked.place(index)
        sink, judged = _begin(run, place, make_sink), JudgedPart(place, 0, 0)
        for batch in _batches(run, index, decide):
            sink.take(batch)
            judged = _counted(judged, batch)
        # The state before the verdicts: where there are verdicts, there is what comes after them.
        kept.write(_state(place), run.detector, _said_of(run, index))
        _end(sink)
        if index > 1:
            _state(asked.place(index - 1)).unlink(missing_ok=True)
        yield judged


def _resume(asked: PartsRequest, run: DetectRun, numbers: range) -> int:
    """How many parts are done; the detector continues after the last of them."""
    done = 0
    while done < len(numbers) and asked.place(done + 1).exists():
        done += 1
    while done and not _state(asked.place(done)).exists():
        done -= 1
    if done:
        _check_same(_state(asked.place(done)), run, done)
    return done


def _state(place: Path) -> Path:
    """The state after the part of a verdict file."""
    return place.with_name(f".{place.name}.state")


def _said_of(run: DetectRun, index: int) -> dict[str, object]:
    assert run.cached
    return {"set": run.cached.digest, "part": index}


def _check_same(path: Path, run: DetectRun, index: int) -> None:
    """Let the detector continue from a file; StoreError if features or settings differ."""
    more = kept.resume(path, run.detector)
    if more != _said_of(run, index):
        raise StoreError(
            f"{path} was made of other features, or of part {more.get('part')}: remove it and the "
            f"verdict files beside it, or take another --out."
        )


def calibrate(asked: PartsRequest, encoding: Encoding) -> range:
    """Let a detector learn from one part, unless that is kept; return the parts to judge.

    Raises:
        StoreError: the kept detector was calibrated on other features, or with other settings.
    """
    run, index = detect_run(asked.request, encoding), asked.calibrate_on
    assert index
    numbers = parts_to_judge(asked, run.cached)
    if asked.calibration.exists():
        _check_same(asked.calibration, run, index)
        return numbers
    assert run.cached
    start, stop = _rows(run.cached, index)
    features = run.cached.image_features[start:stop].astype(np.float32)
    run.detector.decide_all(features=features, seed=asked.request.rule.seed, learn=True)
    kept.write(asked.calibration, run.detector, _said_of(run, index))
    return numbers


def judge_part(
    asked: PartsRequest, encoding: Encoding, index: int, make_sink: MakeSink
) -> JudgedPart:
    """Judge a part with the calibrated detector, unless its verdict file exists."""
    run, place = detect_run(asked.request, encoding), asked.place(index)
    assert asked.calibrate_on
    if place.exists():
        return JudgedPart(place, _part(run, index).images, None)
    _check_same(asked.calibration, run, asked.calibrate_on)
    verdicts, ranks = _frozen(run, index)
    first = 0

    def decided(features: NDArray[np.float32]) -> Flagged:
        nonlocal first
        rows = slice(first, first + len(features))
        first += len(features)
        return verdicts[rows], ranks[rows]

    sink, judged = _begin(run, place, make_sink), JudgedPart(place, 0, 0)
    for batch in _batches(run, index, decided):
        sink.take(batch)
        judged = _counted(judged, batch)
    _end(sink)
    return judged


def _frozen(run: DetectRun, index: int) -> Flagged:
    """The verdicts on a part's images, each by itself, flagged and ranked together."""
    assert run.cached
    start, stop = _rows(run.cached, index)
    blocks = [
        run.detector.predict(features=run.cached.image_features[i : min(i + _BLOCK, stop)])
        for i in range(start, stop, _BLOCK)
    ]
    if not blocks:
        return run.detector.predict(features=run.cached.image_features[:0]), []
    return flagged(Verdicts.joined(blocks), run.request.rule.flag)


def _rows(cached: FeatureSet, index: int) -> tuple[int, int]:
    """The rows of a part within the set."""
    start = sum(part.images for part in cached.parts[: index - 1])
    return start, start + cached.parts[index - 1].images


def _part(run: DetectRun, index: int) -> PartFile:
    assert run.cached
    return run.cached.parts[index - 1]


def _batches(
    run: DetectRun, index: int, decide: Callable[[NDArray[np.float32]], Flagged]
) -> Iterator[Batch]:
    """The rows of a part's verdicts, in batches."""
    assert run.cached
    ids, (start, stop) = read_sample_ids(_part(run, index).path), _rows(run.cached, index)
    maker = RowMaker(decide, run.encoding.name)
    load = partial(refuse, "its features are cached, but not where it is stored")
    for i in range(start, stop, _BLOCK):
        rows = run.cached.image_features[i : min(i + _BLOCK, stop)]
        names = ids[i - start : i - start + len(rows)]
        encoded = [Encoded(Item(name, load), row) for name, row in zip(names, rows, strict=True)]
        yield Batch([one.item for one in encoded], maker.rows(encoded))


def _counted(judged: JudgedPart, batch: Batch) -> JudgedPart:
    noise = sum(bool(row["noise"]) for row in batch.rows)
    count = (judged.noise or 0) + noise
    return replace(judged, images=judged.images + len(batch.rows), noise=count)


def _begin(run: DetectRun, place: Path, make_sink: MakeSink) -> RowSink:
    place.parent.mkdir(parents=True, exist_ok=True)
    sink = make_sink(place)
    sink.open(run)
    return sink


def _end(sink: RowSink) -> None:
    sink.complete()
    sink.close()

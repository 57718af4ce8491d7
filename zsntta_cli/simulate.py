"""Stream x method -> run record, and grids of runs over one encoder's feature files."""

import dataclasses
import functools
import hashlib
import itertools
import math
import multiprocessing
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from zsntta_cli import __version__
from zsntta_cli.errors import SettingsError
from zsntta_cli.library import Library, Sources
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.metrics import Accuracies, Detection, accuracies, detection
from zsntta_cli.scores import ZeroShot, zero_shot
from zsntta_cli.settings import RunSettings
from zsntta_cli.store import FeatureSet
from zsntta_cli.stream import ID, NOISE, OOD, Stream, build_stream

if TYPE_CHECKING:
    from zsntta_cli.live.session import LiveSession

LiveFactory = Callable[[], "LiveSession"]  # called at the first live run: it imports torch
Columns = dict[str, NDArray[Any]]

_KINDS = {"id": ID, "ood": OOD, "noise": NOISE}
_NO_ACCURACIES = Accuracies(math.nan, math.nan, math.nan)
_CLIP_NORM = 10.0  # about the norm of raw features of OpenAI's ViT-B encoders


@dataclass(frozen=True)
class Record:
    """What one run gave, with all that it takes to run it again."""

    settings: RunSettings
    accuracies: Accuracies
    detection: Detection
    counts: dict[str, int]  # items of each kind in the stream
    repeated: dict[str, float]  # sets that were too small: how often their images were shown
    digests: dict[str, str]  # of the feature files
    seconds: float  # of the method alone
    created: str
    versions: dict[str, str]
    unfinished: int = 0  # items of the stream that a Ctrl-C kept a live method from

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values; a metric without samples is None."""
        plain = dataclasses.asdict(self)
        for group in ("accuracies", "detection"):
            plain[group] = {k: None if np.isnan(v) else v for k, v in plain[group].items()}
        return plain


class Simulator:
    """Runs on the feature files under one folder; each file is read and scored once."""

    def __init__(self, root: Path, options: str = "", live: LiveFactory | None = None) -> None:
        """`options` are those of the command line that name the encoder, for messages."""
        self._library = Library(root, options)
        self._live = functools.cache(live) if live else None
        self._blas = ThreadpoolController()
        self._zero_shot = functools.lru_cache(maxsize=16)(self._score_file)
        self._pool = functools.lru_cache(maxsize=2)(self._make_pool)

    def run(self, settings: RunSettings) -> Record:
        """One run.

        Raises:
            StoreError: features that are missing, broken or of different encoders.
            SettingsError: settings that do not fit the sets.
        """
        return self.replay(settings).record

    def replay(self, settings: RunSettings, analyse: bool = False) -> "Replay":
        """One run with its stream and decisions; `analyse` a live method's gradients too."""
        sources = self._library.sources(settings)
        stream = build_stream(settings.stream, *sources.sizes)
        pool = self._pool(settings.encoder, settings.prompt, *sources.names)
        more_text = self._library.more_text(settings)
        if more_text is not None:
            pool = dataclasses.replace(pool, more_text=more_text)
        index = stream.row + np.cumsum([0, *sources.sizes])[stream.kind]
        data = StreamData(pool, index, stream.kind == NOISE, settings.stream.seed)
        started = time.perf_counter()
        decisions, columns = self._decide(settings, sources, stream, data, analyse)
        seconds = time.perf_counter() - started
        digests = {source.name: source.digest for source in sources.present}
        if more_text is not None:
            digests["more_text"] = hashlib.sha256(more_text.data).hexdigest()
        done = stream.first(len(decisions.class_index))
        unfinished = len(stream) - len(done)
        return Replay(settings, sources, done, decisions, digests, seconds, columns, unfinished)

    def _decide(
        self,
        settings: RunSettings,
        sources: Sources,
        stream: Stream,
        data: StreamData,
        analyse: bool,
    ) -> tuple[Decisions, Columns]:
        if settings.method in METHODS:
            # A method's products are small: a second BLAS thread gains nothing and stalls them
            # where the machine is busy.
            with self._blas.limit(limits=1, user_api="blas"):
                return METHODS[settings.method](data, settings), {}
        assert self._live is not None
        labels = true_labels(sources, stream)
        return self._live().run(settings, sources, stream, data, labels, analyse)

    def _score_file(self, encoder: str, prompt: str, id_set: str, name: str) -> ZeroShot:
        source = self._library.read(encoder, name)
        text = self._library.text(encoder, prompt, id_set)
        return zero_shot(source.image_features, text, source.encoder["logit_scale"])

    def _make_pool(self, encoder: str, prompt: str, id_set: str, *others: str) -> Pool:
        names = (id_set, *others)
        scores = [self._zero_shot(encoder, prompt, id_set, name) for name in names]
        return Pool(
            _raw_features([self._library.read(encoder, name) for name in names]),
            self._library.text(encoder, prompt, id_set),
            self._library.read(encoder, id_set).encoder["logit_scale"],
            ZeroShot(
                np.concatenate([s.class_index for s in scores]),
                np.concatenate([s.noise_score for s in scores]),
            ),
        )


@dataclass(frozen=True)
class Replay:
    """A run: what the stream was, what the method decided."""

    settings: RunSettings
    sources: Sources
    stream: Stream
    decisions: Decisions
    digests: dict[str, str]
    seconds: float
    columns: Columns = field(default_factory=dict)  # what else a live method's items have
    unfinished: int = 0  # items that a Ctrl-C cut off

    @property
    def labels(self) -> NDArray[np.int64]:
        """True class of all items (T,); -1 where an item belongs to none."""
        return true_labels(self.sources, self.stream)

    def _repeated(self) -> dict[str, float]:
        sources = zip((OOD, NOISE), (self.sources.ood_set, self.sources.noise), strict=True)
        shown = {s.name: int((self.stream.kind == k).sum()) / len(s) for k, s in sources if s}
        return {name: round(times, 3) for name, times in shown.items() if times > 1}

    @property
    def record(self) -> Record:
        """The decisions judged on the test samples; injected items do not count."""
        tests = self.stream.kind != NOISE
        decisions, labels = self.decisions, self.labels[tests]
        judged = _NO_ACCURACIES
        if decisions.is_noise is not None:
            judged = accuracies(labels, decisions.class_index[tests], decisions.is_noise[tests])
        return Record(
            self.settings,
            judged,
            detection(decisions.id_score[tests], labels >= 0),
            {name: int((self.stream.kind == kind).sum()) for name, kind in _KINDS.items()},
            self._repeated(),
            self.digests,
            self.seconds,
            datetime.now(UTC).isoformat(timespec="seconds"),
            {"zsntta": __version__, "numpy": np.__version__, "python": platform.python_version()},
            self.unfinished,
        )


def true_labels(sources: Sources, stream: Stream) -> NDArray[np.int64]:
    """True class of all items (T,); -1 where an item belongs to none."""
    is_id = stream.kind == ID
    rows = np.where(is_id, stream.row, 0)
    return np.where(is_id, sources.id_set.labels[rows], -1)


def _raw_features(sources: Sequence[FeatureSet]) -> NDArray[np.float32]:
    """Features of all sources, one below the other; normalised ones get the norm of raw ones."""
    shape = sum(len(source) for source in sources), sources[0].image_features.shape[1]
    pool = np.empty(shape, np.float32)
    start = 0
    for source in sources:
        rows = pool[start : start + len(source)]
        rows[:] = source.image_features
        if source.normalized:
            rows *= _CLIP_NORM
        start += len(source)
    return pool


def run_all(
    root: Path,
    runs: Sequence[RunSettings],
    options: str = "",
    jobs: int = 1,
    live: LiveFactory | None = None,
) -> list[Record]:
    """All runs, in order, on `jobs` processes; the results do not depend on their number.

    A live run that Ctrl-C stopped is the last one.
    """
    is_live = any(run.method not in METHODS for run in runs)
    if is_live and jobs > 1:
        raise SettingsError("live methods take the whole machine: run them with --jobs 1.")
    if jobs == 1 or len(runs) < 2:
        return _run_some(root, options, runs, live)
    pairs = [
        list(some)
        for _, some in itertools.groupby(runs, lambda run: (run.encoder, run.id_set, run.ood_set))
    ]
    pieces = 1 if len(pairs) >= jobs else jobs
    chunks = [pair[i::pieces] for pair in pairs for i in range(min(pieces, len(pair)))]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as workers:
        done = workers.map(functools.partial(_run_some, root, options), chunks)
        by_run = {record.settings: record for records in done for record in records}
    return [by_run[run] for run in runs]


def _run_some(
    root: Path, options: str, runs: Sequence[RunSettings], live: LiveFactory | None = None
) -> list[Record]:
    simulator = Simulator(root, options, live)
    records: list[Record] = []
    for settings in runs:
        records.append(simulator.run(settings))
        if records[-1].unfinished:
            break
    return records

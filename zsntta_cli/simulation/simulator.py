"""Run methods on streams; features are read and scored once for any number of runs."""

import functools
import sys
import time
from contextlib import closing, nullcontext, redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from zsntta_cli import plugins
from zsntta_cli.cache.store import problems
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.methods import FROZEN, METHODS
from zsntta_cli.methods.base import Decisions, StreamData, check_decisions
from zsntta_cli.methods.scores import CLIP_NORM, ZeroShot, blocks, zero_shot
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import MATCH, LiveSettings
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.replay import GRADIENTS, ZERO_SHOT, Made, Replay
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library, Sources
from zsntta_cli.simulation.stream import NOISE, Stream, build_stream

if TYPE_CHECKING:
    from zsntta_cli.simulation.live import LiveSession

_FEW = 2**17  # numbers in the text features: 256 classes of 512


class Simulator:
    """Runs on the feature files in one folder; each file is read and scored once."""

    def __init__(
        self, root: Path, live: LiveSettings | None = None, reporter: Reporter | None = None
    ) -> None:
        """`root` is the folder of the files; without `live` no method encodes images."""
        self._library, self._live, self._reporter = Library(root), live, reporter or Reporter()
        self._zero_shot = functools.lru_cache(maxsize=16)(self._score_file)

    def run(self, run: RunSettings) -> Record:
        """Run one method on one stream, and judge its decisions.

        Raises:
            StoreError: features are missing, broken or made with different encoders.
            SettingsError: settings do not fit the sets.
        """
        return self.replay(run).record()

    def replay(self, run: RunSettings, analyse: bool = False) -> Replay:
        """Run, and keep stream and decisions; `analyse`: also the gradients of a live method."""
        sources, method = self._library.sources(run), METHODS[run.method]
        listed = sources.listed.rows if sources.listed else None
        stream = build_stream(run.stream, *sources.sizes, sources.id_set.labels, listed)
        data = self._items(sources, stream)
        if method.live:
            made = self._decide_live(sources, stream, data, analyse)
        else:
            started = time.perf_counter()
            decisions = decide_from_cache(run, data)
            made = Made(decisions, time.perf_counter() - started)
        decided = len(made.decisions.class_index)
        is_frozen = method.class_probability == FROZEN
        of_class = 1 - data.zero_shot.noise_score[:decided] if is_frozen else None
        done = Stream(stream.kind[:decided], stream.row[:decided])
        return Replay(sources, done, made, len(stream) - decided, of_class)

    @plugins.worded_errors()
    def _decide_live(
        self, sources: Sources, stream: Stream, data: StreamData, analyse: bool
    ) -> Made:
        """The decisions of a live method, from its kept answers if they are complete."""
        # Only for live methods: it imports their settings.
        from zsntta_cli.simulation.tuned import CACHED_ANSWERS, tuned_stream

        run, started = sources.run, time.perf_counter()
        tuned = tuned_stream(sources, stream, data)
        if tuned and not len(tuned.lacking):  # TPT changes no layer of the image tower
            decisions, seconds = tuned.decide(slice(None)), time.perf_counter() - started
            unmoved = dict.fromkeys(GRADIENTS, np.full(len(stream), np.nan)) if analyse else {}
            columns = {ZERO_SHOT: 1 - data.noise_score, **unmoved}
            return Made(decisions, seconds, columns, CACHED_ANSWERS)
        if self._live is None:
            raise StoreError(
                f"{run.method} needs the images of '{run.id_set}' here: not all of its "
                f"answers are kept."
            )
        with closing(tuned) if tuned else nullcontext():
            made = self._session.run(sources, stream, data, analyse, tuned)
        if tuned and tuned.problem:
            self._reporter.note(f"note: answers of TPT are not kept: {tuned.problem}")
        return made

    @cached_property
    def _session(self) -> "LiveSession":
        """The session that makes live runs, which imports torch."""
        from zsntta_cli.encoders.clip import wait_passively

        wait_passively()
        from zsntta_cli.simulation.live import LiveSession

        assert self._live is not None
        return LiveSession(self._live, self._reporter)

    def _score_file(self, encoder: str, prompt: str, id_set: str, name: str) -> ZeroShot:
        of_id, source = self._library.read(encoder, id_set), self._library.read(encoder, name)
        text, scale = of_id.texts[prompt].features, float(of_id.model(prompt)["logit_scale"])
        # With few classes most of the time goes to work that no second BLAS thread speeds up.
        threads = 1 if text.size <= _FEW else None
        with np.errstate(all="ignore"), threadpool_limits(threads, user_api="blas"):
            scores = zero_shot(source.image_features, text, scale)
        if not np.isfinite(scores.noise_score).all():
            wrong = "; ".join(problems(source.path))
            raise StoreError(
                f"{source.path} cannot be used: {wrong}: delete it, and extract or import it again"
            )
        return scores

    def _items(self, sources: Sources, stream: Stream) -> StreamData:
        """The items of a stream as the run's method sees them.

        Normalised features get the norm of raw ones.
        """
        run, id_set, files = sources.run, sources.id_set, sources.files
        model, scores = id_set.model(run.prompt), list[ZeroShot]()
        types = [np.float32 if f.normalized else f.image_features.dtype for f in files.values()]
        features = np.empty((len(stream), id_set.dim), np.result_type(*types))
        for kind, file in files.items():
            of_kind = np.flatnonzero(stream.kind == kind)
            for block in blocks(len(of_kind)):  # indexing by rows makes a further copy
                places = of_kind[block]
                features[places] = file.image_features[stream.row[places]]
                if file.normalized:
                    features[places] *= CLIP_NORM
            scores.append(self._zero_shot(run.encoder, run.prompt, id_set.name, file.name))
        items = StreamData(
            features, id_set.texts[run.prompt].features, float(model["logit_scale"]),
            ZeroShot.joined(scores).part(sources.rows(stream)), stream.kind == NOISE,
            run.stream.seed,
        )  # fmt: skip
        items = items.beside(sources.more) if sources.more else items
        if run.threshold.score != MATCH:
            return items
        from zsntta_cli.methods.match import Match  # not for every start

        return Match(model.get("logit_bias"))(items)


@plugins.worded_errors()
def decide_from_cache(run: RunSettings, data: StreamData) -> Decisions:
    """The decisions of a method that is not live, checked.

    Raises:
        SettingsError: it ends the program, or does not return decisions.
    """
    name = run.method
    # A method's products are small: a second BLAS thread gains nothing and stalls them where the
    # machine is busy. What an own method prints is no result.
    with threadpool_limits(1, user_api="blas"), redirect_stdout(sys.stderr):
        try:
            method = METHODS[name](data, run.options, run.threshold)
            return check_decisions(method.push(data), name, len(data), len(data.text_features))
        except SystemExit as error:
            raise SettingsError(
                f"{name} ends the program with sys.exit({error.code!r})."
            ) from error

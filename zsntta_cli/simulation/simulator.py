"""Run methods on streams; features are read and scored once for any number of runs."""

import functools
import sys
import time
from collections.abc import Mapping
from contextlib import closing, nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import ThreadpoolController

from zsntta_cli import plugins
from zsntta_cli.cache.origin import shared_once
from zsntta_cli.cache.store import Features, problems
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.methods import FROZEN, METHODS
from zsntta_cli.methods.base import Decisions, StreamData, check_decisions
from zsntta_cli.methods.scores import ZeroShot, zero_shot
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import MATCH, LiveSettings
from zsntta_cli.settings.prompts import PHOTOS
from zsntta_cli.simulation.curves import GRADIENTS, ZERO_SHOT
from zsntta_cli.simulation.record import Made, Record, Replay
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library, Sources
from zsntta_cli.simulation.stream import NOISE, Stream, build_stream

if TYPE_CHECKING:
    from zsntta_cli.simulation.live import LiveSession

_FEW = 2**17  # numbers in the text features: 256 classes of 512
_CLIP_NORM = 10.0  # about the norm of raw features of OpenAI's ViT-B encoders


class Simulator:
    """Runs on the feature files in one folder; each file is read and scored once."""

    def __init__(
        self, root: Path, live: LiveSettings | None = None, reporter: Reporter | None = None
    ) -> None:
        """`root` is the folder of the files; without `live` no method encodes images."""
        self._library, self._live, self._reporter = Library(root), live, reporter or Reporter()
        self._zero_shot = functools.lru_cache(maxsize=16)(self._score_file)

    def run(self, settings: RunSettings) -> Record:
        """Run one method on one stream, and judge its decisions.

        Raises:
            StoreError: features are missing, broken or made with different encoders.
            SettingsError: settings do not fit the sets.
        """
        return self.replay(settings).record()

    def replay(self, settings: RunSettings, analyse: bool = False) -> Replay:
        """Run and keep the stream and the decisions; `analyse`: also a live method's gradients."""
        sources, method = self._library.sources(settings), METHODS[settings.method]
        _check_fits(settings, sources.id_set)
        listed = sources.listed.rows if sources.listed else None
        stream = build_stream(settings.stream, *sources.sizes, sources.id_set.labels, listed)
        data = self._items(settings, sources, stream)
        if more_text := self._library.more_text(settings):
            data = data.beside(more_text)
        bias = sources.id_set.model(settings.prompt).get("logit_bias")
        data = as_seen(settings, data, bias)
        digests = self._library.digests(settings)
        if method.live:
            made = self._decide_live(settings, sources, stream, data, digests, analyse)
        else:
            started = time.perf_counter()
            decisions = decide_from_cache(settings, data)
            made = Made(decisions, time.perf_counter() - started)
        decided = len(made.decisions.class_index)
        done = Stream(stream.kind[:decided], stream.row[:decided])
        is_frozen = method.class_probability == FROZEN
        of_class = 1 - data.zero_shot.noise_score[:decided] if is_frozen else None
        del data  # of a long stream, hundreds of MB
        origins = shared_once(self._library.origins(settings))
        left = len(stream) - decided
        return Replay(settings, sources, done, made, digests, left, origins, of_class)

    @plugins.worded_errors()
    def _decide_live(
        self,
        settings: RunSettings,
        sources: Sources,
        stream: Stream,
        data: StreamData,
        digests: Mapping[str, str],
        analyse: bool,
    ) -> Made:
        """What a live method makes of a stream, or what its kept answers do where all are there."""
        # Only for live methods: it imports their settings.
        from zsntta_cli.simulation.tuned import CACHED_ANSWERS, kept_answers, replay_tuned

        started = time.perf_counter()
        kept = kept_answers(settings, sources, digests)
        known = kept.of_stream(sources.rows(stream)) if kept else None
        replayed = replay_tuned(settings, sources, stream, data, known) if known else None
        if replayed:  # with the columns of a live run; TPT changes no layer of the image tower
            unmoved = dict.fromkeys(GRADIENTS, np.full(len(stream), np.nan)) if analyse else {}
            columns = {ZERO_SHOT: 1 - data.noise_score, **unmoved}
            return Made(replayed, time.perf_counter() - started, columns, CACHED_ANSWERS)
        if self._live is None:
            raise StoreError(
                f"{settings.method} needs the images of '{settings.id_set}' here: not all of its "
                f"answers are kept."
            )
        with closing(kept) if kept else nullcontext():
            made = self._session.run(settings, sources, stream, data, analyse, known)
        if kept and kept.problem:
            self._reporter.note(f"note: answers of TPT are not kept: {kept.problem}")
        return made

    @functools.cached_property
    def _session(self) -> "LiveSession":
        """What makes live runs; it imports torch."""
        from zsntta_cli.encoders.clip import wait_passively

        wait_passively()
        from zsntta_cli.simulation.live import LiveSession

        assert self._live is not None
        return LiveSession(self._live, self._reporter)

    def _score_file(self, encoder: str, prompt: str, id_set: str, name: str) -> ZeroShot:
        of_id, source = self._library.read(encoder, id_set), self._library.read(encoder, name)
        text, scale = of_id.texts[prompt].features, float(of_id.model(prompt)["logit_scale"])
        # Of few classes most of the time goes to what no second BLAS thread helps in.
        threads = 1 if text.size <= _FEW else None
        with np.errstate(all="ignore"), _blas("").limit(limits=threads, user_api="blas"):
            scores = zero_shot(source.image_features, text, scale)
        if not np.isfinite(scores.noise_score).all():
            wrong = "; ".join(problems(source.path))
            raise StoreError(
                f"{source.path} cannot be used: {wrong}: delete it, and extract or import it again"
            )
        return scores

    def _items(self, settings: RunSettings, sources: Sources, stream: Stream) -> StreamData:
        """The items of a stream, with all that is known of them before any method.

        Normalised features get the norm of raw ones.
        """
        id_set, prompt = sources.id_set, settings.prompt
        files, frozen = sources.files, []
        types = [np.float32 if f.normalized else f.image_features.dtype for f in files.values()]
        features = np.empty((len(stream), id_set.dim), np.result_type(*types))
        for kind, file in files.items():
            of_kind = stream.kind == kind
            features[of_kind] = file.image_features[stream.row[of_kind]]
            if file.normalized:
                features[of_kind] *= np.float32(_CLIP_NORM)
            frozen.append(self._zero_shot(settings.encoder, prompt, id_set.name, file.name))
        return StreamData(
            features, id_set.texts[prompt].features, float(id_set.model(prompt)["logit_scale"]),
            ZeroShot.joined(frozen).part(sources.rows(stream)), stream.kind == NOISE,
        )  # fmt: skip


def as_seen(run: RunSettings, items: StreamData, logit_bias: float | None = None) -> StreamData:
    """The items of a stream as a run's method sees them: with its seed and by its noise score."""
    if run.threshold.score == MATCH:
        from zsntta_cli.methods.match import matched  # not for every start

        items = matched(items, logit_bias)
    return replace(items, seed=run.stream.seed)


@functools.cache
def _blas(method: str) -> ThreadpoolController:
    """The BLAS libraries: looked for anew with each method, which may load one, as SciPy has."""
    del method
    return ThreadpoolController()


@plugins.worded_errors()
def decide_from_cache(settings: RunSettings, data: StreamData) -> Decisions:
    """The decisions of a method that is not live, checked.

    Raises:
        SettingsError: it ends the program, or does not return decisions.
    """
    method = METHODS[settings.method]
    # A method's products are small: a second BLAS thread gains nothing and stalls them where the
    # machine is busy.
    with _blas(settings.method).limit(limits=1, user_api="blas"):
        try:
            with redirect_stdout(sys.stderr):  # what an own method prints is no result
                decisions = method(data, settings.options, settings.threshold).push(data)
        except SystemExit as error:
            message = f"{settings.method} ends the program with sys.exit({error.code!r})."
            raise SettingsError(message) from error
    return check_decisions(decisions, settings.method, len(data), len(data.text_features))


def _check_fits(settings: RunSettings, id_set: Features) -> None:
    """Refuse a method or a score that an ID set's classes, or its prompt, do not suit."""
    name, method = settings.method, METHODS[settings.method]
    if settings.prompt == PHOTOS and (method.live or method.needs):
        raise SettingsError(
            f"{name} needs class names or words, but the prompt 'photos' stands for classes made "
            f"from photos: omit one of them."
        )
    is_match = settings.threshold.score == MATCH
    if method.decides and len(id_set.class_names) == 1 and not is_match:
        raise SettingsError(
            f"{settings.id_set} has only one class, so MCM is 1 for any image: "
            "--set score=match uses the logit itself"
        )
    if is_match and method.live and id_set.model(settings.prompt).get("logit_bias") is None:
        raise SettingsError(
            f"score is match, which {name} supports only for sigmoid models (SigLIP): this encoder "
            f"has no logit bias."
        )

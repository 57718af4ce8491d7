"""Runs of live methods: the encoder and the images they need, progress, what Ctrl-C leaves."""

import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.identity import difference
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import MATCH, EncoderChoice, LiveSettings
from zsntta_cli.simulation.live_images import stream_images
from zsntta_cli.simulation.record import Machine
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, Stream
from zsntta_cli.simulation.watch import GradientNorms, Running, forget_peak, machine_of

Columns = dict[str, NDArray[Any]]


@dataclass
class LiveSession:
    """Live runs; the encoder of the last one is kept for the next."""

    settings: LiveSettings
    reporter: Reporter
    seconds: float = 0.0  # of the last run, without loading its encoder and finding its images
    _encoders: dict[EncoderChoice, Encoder] = field(default_factory=dict)

    def run(
        self,
        settings: RunSettings,
        sources: Sources,
        stream: Stream,
        data: StreamData,
        labels: NDArray[np.int64],
        analyse: bool = False,
    ) -> tuple[Decisions, Columns]:
        """Decisions on all items, or on those up to a Ctrl-C, and further columns of these.

        `analyse`: note the gradients of clean and noisy samples too.

        Raises:
            StoreError, DatasetError: features that were not made here, or images that are gone.
            KeyboardInterrupt: nothing was decided yet.
        """
        running, gradients = Running(stream, labels), GradientNorms(stream)
        live = self._live(settings, sources, stream, data, gradients if analyse else None)
        forget_peak()
        started = time.perf_counter()
        name = f"{settings.method}: {settings.ood_set or settings.id_set}"
        run, parts = METHODS[settings.method].load(), list[Decisions]()
        with self.reporter.track(name, len(stream)) as advance:
            try:
                with closing(run(live, settings.options, settings.threshold)) as steps:
                    for part in steps:
                        parts.append(part)
                        running.add(part)
                        gradients.item = running.items
                        advance(len(part.class_index), running.text)
            except KeyboardInterrupt:
                if not parts:
                    raise
        self.seconds = time.perf_counter() - started
        done = slice(running.items)
        columns = {"zero_shot_id_score": 1 - data.noise_score[done]}
        if analyse:
            columns["gradient_clean"] = gradients.clean[done]
            columns["gradient_noisy"] = gradients.noisy[done]
        return Decisions.joined(parts), columns

    @property
    def machine(self) -> Machine:
        """What the encoder of the last run ran on."""
        [encoder] = self._encoders.values()
        return machine_of(encoder.device)

    def _live(
        self,
        settings: RunSettings,
        sources: Sources,
        stream: Stream,
        data: StreamData,
        gradients: GradientNorms | None,
    ) -> LiveData:
        encoder = self._encoder(sources)
        live = LiveData(
            data,
            encoder,
            stream_images(stream, sources, self.settings, encoder.image_size),
            sources.id_set.class_names,
            settings.prompt,
            self.settings.workers,
            stream.kind == ID if settings.flat().get("pipeline") == "gt" else None,
        )
        if settings.threshold.score == MATCH:
            live = replace(live, match_bias=sources.id_set.identity["logit_bias"])
        return replace(live, watch=gradients) if gradients else live

    def _encoder(self, sources: Sources) -> Encoder:
        """The encoder that the features were made by, loaded."""
        path, made_by = sources.id_set.path, sources.id_set.identity
        if "imported" in sources.id_set.source:
            raise StoreError(
                f"{path} was imported: a live method needs the encoder and the images, so extract "
                f"the set here."
            )
        names = [made_by.get(key) for key in ("model", "pretrained", "precision")]
        if not all(isinstance(name, str) for name in names):
            raise StoreError(f"{path} does not say which encoder made it: extract the set here.")
        model, weights, precision = map(str, names)
        choice = EncoderChoice(model, self.settings.pretrained or weights, precision)
        if choice not in self._encoders:
            self._encoders = {choice: load_encoder(choice, self.settings.device)}
        encoder = self._encoders[choice]
        if found := difference(made_by, encoder.identity):
            raise StoreError(
                f"{path} was made by another encoder than {choice.slug} is now ({found.key}: "
                f"{found.one}, now {found.other}): extract the set again."
            )
        return encoder

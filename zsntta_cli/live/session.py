"""Runs of live methods: the encoder and the images they need, progress, what Ctrl-C leaves."""

import gc
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.encoder import Encoder, load_encoder
from zsntta_cli.errors import SettingsError
from zsntta_cli.extract import Reporter
from zsntta_cli.library import SAME_ENCODER, Sources
from zsntta_cli.live import LIVE_METHODS
from zsntta_cli.live.base import LiveData
from zsntta_cli.live.images import stream_images
from zsntta_cli.live.watch import GradientNorms, Running
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.settings import EncoderChoice, LiveSettings, RunSettings
from zsntta_cli.stream import ID, Stream

Columns = dict[str, NDArray[Any]]


@dataclass
class LiveSession:
    """Live runs; the encoder of the last one is kept for the next."""

    settings: LiveSettings
    reporter: Reporter
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
            SettingsError, DatasetError: features that were not made here, or images that are gone.
            KeyboardInterrupt: nothing was decided yet.
        """
        gc.enable()  # unlike replays, this makes cycles
        running, gradients = Running(stream, labels), GradientNorms(stream)
        live = self._live(settings, sources, stream, data, gradients if analyse else None)
        name = f"{settings.method}: {settings.ood_set or settings.id_set}"
        parts: list[Decisions] = []
        with self.reporter.track(name, len(stream)) as advance:
            try:
                with closing(LIVE_METHODS[settings.method](live, settings)) as steps:
                    for part in steps:
                        parts.append(part)
                        running.add(part)
                        gradients.item = running.items
                        advance(len(part.class_index), running.text)
            except KeyboardInterrupt:
                if not parts:
                    raise
        done = slice(running.items)
        columns = {"zero_shot_id_score": 1 - data.noise_score[done]}
        if analyse:
            columns["gradient_clean"] = gradients.clean[done]
            columns["gradient_noisy"] = gradients.noisy[done]
        return Decisions.joined(parts), columns

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
            self.settings.workers,
            stream.kind == ID if getattr(settings.options, "pipeline", "") == "gt" else None,
        )
        return replace(live, watch=gradients) if gradients else live

    def _encoder(self, sources: Sources) -> Encoder:
        """The encoder that the features were made by, loaded."""
        path, made_by = sources.id_set.path, sources.id_set.encoder
        if "imported" in sources.id_set.source:
            raise SettingsError(
                f"{path} was imported: a live method needs the encoder and the images, so extract "
                f"the set here."
            )
        choice = EncoderChoice(made_by["model"], made_by["pretrained"], made_by["precision"])
        if choice not in self._encoders:
            self._encoders = {choice: load_encoder(choice, self.settings.device)}
        encoder = self._encoders[choice]
        for key in SAME_ENCODER:
            if encoder.identity[key] != made_by.get(key):
                raise SettingsError(
                    f"{path} was made by another encoder than {choice.slug} is now ({key}: "
                    f"{made_by.get(key)}, now {encoder.identity[key]}): extract the set again."
                )
        return encoder

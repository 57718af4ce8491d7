"""Runs of live methods: the encoder and the images they need, progress, Ctrl-C.

Besides the decisions a run records the gradient norms (Sec. 3) and the machine.
"""

import hashlib
import time
from collections.abc import Mapping
from contextlib import closing
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.identity import check_same
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.drawn.builtin import noise_images
from zsntta_cli.datasets.images import AS_SHOWN, UNREADABLE, ImageSet, limited, pick_rows
from zsntta_cli.datasets.names import BESIDE, SKIPPED, SetName
from zsntta_cli.datasets.names import NOISE as NOISE_POOL
from zsntta_cli.encoders.batches import unreadable
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.errors import DatasetError, StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, StreamData, check_decisions
from zsntta_cli.methods.live.base import LiveData, norm_layers
from zsntta_cli.methods.live.tuned import TunedStream
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, LiveSettings
from zsntta_cli.simulation.replay import GRADIENTS, ZERO_SHOT, Made
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, Stream
from zsntta_cli.simulation.tuned import truly_clean

_SCALE = 2.0**10  # of the entropies, against underflow in half precision; divided out again


class GradientNorms:
    """Norms of the gradients that clean and noisy samples give the last adapted norm layer.

    They are for the figures of the gradient analysis: the gradients of the mean entropy over a
    step's truly clean samples, and over its truly noisy ones. The method does not see them.
    """

    def __init__(self, stream: Stream, tower: torch.nn.Module) -> None:
        self._is_id, self._tower = stream.kind == ID, tower
        self.clean, self.noisy = (np.full(len(stream), np.nan) for _ in range(2))
        self.item = 0  # the first one of the batch that the next step follows: the step's row

    def __call__(self, entropies: torch.Tensor, items: NDArray[np.int64]) -> None:
        """Record a step on the entropies (B,) of some items (B,)."""
        layers = [x for x in norm_layers(self._tower).values() if x.weight.requires_grad]
        parameters = list(layers[-1].parameters())
        is_id = self._is_id[items]
        for column, mask in ((self.clean, is_id), (self.noisy, ~is_id)):
            if mask.any():
                loss = entropies[mask].mean() * _SCALE
                gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
                norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
                column[self.item] = float(norm) / _SCALE


class LiveSession:
    """Live runs; the encoder of the last run is kept for the next."""

    def __init__(self, settings: LiveSettings, reporter: Reporter) -> None:
        self._settings, self._reporter = settings, reporter
        self._encoder = lru_cache(maxsize=1)(self._load)

    def run(
        self,
        sources: Sources,
        stream: Stream,
        data: StreamData,
        analyse: bool,
        tuned: TunedStream | None = None,
    ) -> Made:
        """Decisions on all items, or on those before a Ctrl-C, with further columns of these.

        `analyse`: record the gradients of clean and noisy samples, too. `tuned`: the kept answers
        of TPT, to which new ones are added. Loading the encoder and finding the images take no part
        in its seconds.

        Raises:
            StoreError, DatasetError: features were not made here, or images are missing.
            KeyboardInterrupt: nothing was decided yet.
        """
        run, encoder = sources.run, self._encoder_of(sources)
        gradients = GradientNorms(stream, encoder.model.visual)
        sets = {
            kind: _images_of(file, self._settings, encoder.image_size)
            for kind, file in sources.files.items()
        }
        images, seeds = _stream_images(stream, sets)
        live = LiveData(
            data, encoder, images, sources.id_set.class_names, run.prompt, self._settings.workers,
            truly_clean(sources, stream), view_seeds=seeds, tuned=tuned,
            **({"watch": gradients} if analyse else {}),
        )  # fmt: skip
        if encoder.gpu:
            torch.cuda.reset_peak_memory_stats(encoder.device)
        started, parts = time.perf_counter(), list[Decisions]()
        chosen: Any = METHODS[run.method]  # a live one
        method = chosen(live, run.options, run.threshold)
        name = f"{run.method}: {run.ood_set or run.id_set}"
        with self._reporter.track(name, len(live)) as advance, closing(method.run()) as steps:
            try:
                for part in steps:
                    items = len(part.class_index)
                    check_decisions(part, run.method, items, len(live.class_names))
                    parts.append(part)
                    gradients.item += items
                    advance(items)
            except KeyboardInterrupt:
                if not parts:
                    raise
        seconds, decisions = time.perf_counter() - started, Decisions.joined(parts)
        done = slice(len(decisions.class_index))
        columns = {ZERO_SHOT: 1 - data.noise_score[done]}
        if analyse:
            columns |= zip(GRADIENTS, (gradients.clean[done], gradients.noisy[done]), strict=True)
        peak = torch.cuda.max_memory_allocated(encoder.device) if encoder.gpu else 0
        device = encoder.gpu or encoder.device.type
        return Made(decisions, seconds, columns, device, peak, {"torch": torch.__version__})

    def _encoder_of(self, sources: Sources) -> Encoder:
        """The encoder that made the features of a stream, unless it has changed since."""
        for file in sources.files.values():
            if "imported" in file.source:
                raise StoreError(
                    f"{file.path} was imported: a live method needs the encoder and the images, so "
                    f"extract the set here."
                )
        made_by = sources.id_set.identity
        weights = self._settings.weights or made_by["pretrained"]
        encoder = self._encoder(EncoderChoice(made_by["model"], weights, made_by["precision"]))
        then = "extract the set again"
        check_same(sources.id_set.path, made_by, encoder.identity, then=then)
        return encoder

    def _load(self, choice: EncoderChoice) -> Encoder:
        encoder = load_encoder(choice, self._settings.device)
        encoder.tell(self._reporter.note)
        return encoder


def _stream_images(stream: Stream, sets: Mapping[int, ImageSet]) -> tuple[ImageSet, list[int]]:
    """The images of a stream as one set, whose image t is item t, and the seeds of their views.

    The set has no labels, and its names do not tell which set an image is from. A seed (T,) depends
    on the names of the image and its set.
    """
    places = [(sets[k], row) for k, row in zip(stream.kind, stream.row.tolist(), strict=True)]

    def read(t: int) -> Image.Image:
        images, row = places[t]
        try:
            return images.read(row)
        except UNREADABLE as error:
            raise unreadable(images, row, error) from error

    names = (f"{images.name}\0{images.sample_ids[row]}" for images, row in places)
    digests = (hashlib.sha256(name.encode(errors="surrogateescape")).digest() for name in names)
    seeds = [int.from_bytes(digest[:16]) for digest in digests]
    labels, ids = np.full(len(places), -1, np.int32), [*map(str, range(len(places)))]
    return ImageSet("stream", read, labels, ids), seeds


def _images_of(features: Features, settings: LiveSettings, image_size: int) -> ImageSet:
    """The images behind features, in the order of the features."""
    source = features.source
    if features.kind == NOISE_POOL:
        count = source.get("images") or len(features)
        images = noise_images(SetName.parse(features.name).bare, count, image_size)
    else:
        name = source["split"]["of"] if "split" in source else features.name
        specs = [spec for spec in settings.datasets if str(SetName.parse(spec)) == name]
        if not specs and SetName.parse(name).base not in datasets.CATALOGUE:
            raise StoreError(
                f"a live method needs the images of '{name}', whose location is unknown: add "
                "--dataset NAME=PATH"
            )
        is_as_shown = source.get(AS_SHOWN) is True
        images = datasets.load_images((*specs, name)[0], settings.data_root, is_as_shown)
        images = limited(images, source.get("limit"))
    partly = {SKIPPED, "split"}  # the set has images that the features do not have
    if images.identity() == {k: v for k, v in source.items() if k not in {*partly, *BESIDE}}:
        if not partly & source.keys():
            return images
        rows = np.isin(images.sample_ids, store.read_sample_ids(features.path)).nonzero()[0]
        if len(rows) == len(features):  # no two have one name
            return pick_rows(images, rows)
    raise DatasetError(
        f"the images of '{features.name}' are not the ones that {features.path} was made from: "
        f"extract them again with --overwrite"
    )

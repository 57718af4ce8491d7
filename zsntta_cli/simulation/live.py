"""Runs of live methods: the encoder and the images they need, progress, Ctrl-C.

Besides the decisions a run records the gradient norms (Sec. 3) and the machine.
"""

import hashlib
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
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
from zsntta_cli.datasets.names import BESIDE, SetName
from zsntta_cli.datasets.names import NOISE as NOISE_POOL
from zsntta_cli.encoders.batches import unreadable
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.errors import DatasetError, StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, StreamData, check_decisions
from zsntta_cli.methods.live.base import LiveData, norm_layers
from zsntta_cli.methods.live.tuned import StreamAnswers
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, LiveSettings
from zsntta_cli.simulation.replay import GRADIENTS, ZERO_SHOT, Made
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, Stream
from zsntta_cli.simulation.tuned import match_bias, truly_clean

_SCALE = 2.0**10  # of the entropies, against underflow in half precision; divided out again


class GradientNorms:
    """Norms of the gradients that clean and noisy samples give the last adapted norm layer.

    They are for the figures of the gradient analysis: the gradients of the mean entropy over a
    step's truly clean samples, and over its truly noisy ones. The method does not see them.
    """

    def __init__(self, stream: Stream) -> None:
        self._is_id = stream.kind == ID
        self.clean, self.noisy = (np.full(len(stream), np.nan) for _ in range(2))
        self.item = 0  # the first one of the batch that the next step follows: the step's row

    def __call__(
        self, entropies: torch.Tensor, items: NDArray[np.int64], tower: torch.nn.Module
    ) -> None:
        """Record a step on the entropies (B,) of some items (B,)."""
        layers = [x for x in norm_layers(tower).values() if x.weight.requires_grad]
        parameters = list(layers[-1].parameters())
        is_id = self._is_id[items]
        for column, mask in ((self.clean, is_id), (self.noisy, ~is_id)):
            if mask.any():
                loss = entropies[mask].mean() * _SCALE
                gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
                norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
                column[self.item] = float(norm) / _SCALE


@dataclass
class LiveSession:
    """Live runs; the encoder of the last run is kept for the next."""

    settings: LiveSettings
    reporter: Reporter
    _encoders: dict[EncoderChoice, Encoder] = field(default_factory=dict)

    def run(
        self,
        settings: RunSettings,
        sources: Sources,
        stream: Stream,
        data: StreamData,
        analyse: bool,
        answers: StreamAnswers | None = None,
    ) -> Made:
        """Decisions on all items, or on those before a Ctrl-C, with further columns of these.

        `analyse`: record the gradients of clean and noisy samples, too. `answers`: those of TPT
        that are known, to which new ones are added. Its seconds are without loading the encoder and
        finding the images.

        Raises:
            StoreError, DatasetError: features were not made here, or images are missing.
            KeyboardInterrupt: nothing was decided yet.
        """
        encoder, gradients = self.encoder(sources.id_set), GradientNorms(stream)
        sets = {
            kind: _images_of(file, self.settings, encoder.image_size)
            for kind, file in sources.files.items()
        }
        images, seeds = _stream_images(stream, sets)
        live = LiveData(
            data, encoder, images, sources.id_set.class_names, settings.prompt,
            self.settings.workers, truly_clean(settings, stream),
            match_bias=match_bias(settings, sources), view_seeds=seeds, answers=answers,
        )  # fmt: skip
        if analyse:
            live = replace(live, watch=gradients)
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        started, parts = time.perf_counter(), list[Decisions]()
        name = f"{settings.method}: {settings.ood_set or settings.id_set}"
        chosen: Any = METHODS[settings.method]  # a live one
        method = chosen(live, settings.options, settings.threshold)
        with self.reporter.track(name, len(live)) as advance, closing(method.run()) as steps:
            try:
                for part in steps:
                    items = len(part.class_index)
                    check_decisions(part, settings.method, items, len(live.class_names))
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
        device, name, peak = encoder.device, encoder.device.type, 0
        if name == "cuda":
            name, peak = torch.cuda.get_device_name(device), torch.cuda.max_memory_allocated(device)
        return Made(decisions, seconds, columns, name, peak, {"torch": torch.__version__})

    def encoder(self, id_set: Features) -> Encoder:
        """The encoder that made an ID set's features, loaded.

        Raises:
            StoreError: the features were not made here, or the encoder has changed since.
        """
        path, made_by = id_set.path, id_set.identity
        if "imported" in id_set.source:
            raise StoreError(
                f"{path} was imported: a live method needs the encoder and the images, so extract "
                f"the set here."
            )
        names = [made_by.get(key) for key in ("model", "pretrained", "precision")]
        if not all(isinstance(name, str) for name in names):
            raise StoreError(f"{path} does not say which encoder made it: extract the set here.")
        model, weights, precision = map(str, names)
        choice = EncoderChoice(model, self.settings.weights or weights, precision)
        if choice not in self._encoders:
            self._encoders = {choice: load_encoder(choice, self.settings.device)}
            self._encoders[choice].tell(self.reporter.note)
        encoder = self._encoders[choice]
        check_same(path, made_by, encoder.identity, then="extract the set again")
        return encoder


def _stream_images(stream: Stream, sets: dict[int, ImageSet]) -> tuple[ImageSet, list[int]]:
    """The images of a stream as one set, whose image t is item t, and the seeds of their views.

    The set has no labels, and its names and ids tell nothing of the sets (by kind) that the images
    are from. A seed (T,) goes by the name of the set and of the image.
    """
    kinds, rows = stream.kind.tolist(), stream.row.tolist()

    def read(t: int) -> Image.Image:
        images, row = sets[kinds[t]], rows[t]
        try:
            return images.read(row)
        except UNREADABLE as error:
            raise unreadable(images, row, error) from error

    seeds = []
    for kind, row in zip(kinds, rows, strict=True):
        name = f"{sets[kind].name}\0{sets[kind].sample_ids[row]}"
        content = name.encode(errors="surrogateescape")
        seeds.append(int.from_bytes(hashlib.sha256(content).digest()[:16]))
    ids = [str(t) for t in range(len(stream))]
    return ImageSet("stream", read, np.full(len(stream), -1, np.int32), ids), seeds


def _images_of(source: Features, settings: LiveSettings, image_size: int) -> ImageSet:
    """The images behind features, in the order of the features.

    Raises:
        DatasetError: the images cannot be found, or are not those of the features.
    """
    of = source.source
    if source.kind == NOISE_POOL:
        noise = SetName.parse(source.name).bare
        images = noise_images(noise, of.get("images") or len(source), image_size)
    elif "imported" in of:
        raise StoreError(
            f"{source.path} was imported: a live method needs the images, so extract them here."
        )
    else:
        name = of["split"]["of"] if "split" in of else source.name
        given = [spec for spec in settings.datasets if str(SetName.parse(spec)) == name]
        if not given and SetName.parse(name).base not in datasets.CATALOGUE:
            raise StoreError(
                f"a live method needs the images of '{name}', whose location is unknown: add "
                "--dataset NAME=PATH"
            )
        spec, as_shown = (*given, name)[0], of.get(AS_SHOWN) is True
        whole = datasets.load_images(spec, settings.data_root, as_shown)
        images = limited(whole, of.get("limit"))
    beside = {"skipped", "split", *BESIDE}
    wrong = "are not the ones that"
    if images.identity() == {k: v for k, v in of.items() if k not in beside}:
        if not {"skipped", "split"} & of.keys():
            return images
        encoded_ids = set(store.read_sample_ids(source.path))
        rows = [i for i, name in enumerate(images.sample_ids) if name in encoded_ids]
        if len(rows) == len(source):
            return pick_rows(images, np.array(rows))
        wrong = (
            "cannot be identified by name as the ones that"  # two of one name, one with features
        )
    raise DatasetError(
        f"the images of '{source.name}' {wrong} {source.path} was made from: extract them again "
        f"with --overwrite"
    )

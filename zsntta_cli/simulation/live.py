"""Runs of live methods: the encoder and the images they need, progress, Ctrl-C.

Besides the decisions a run records the gradient norms (Sec. 3) and the machine.
"""

import hashlib
import time
from collections.abc import Sequence
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
from zsntta_cli.simulation.curves import GRADIENTS, ZERO_SHOT
from zsntta_cli.simulation.metrics import harmonic_mean
from zsntta_cli.simulation.record import Columns, Machine, true_labels
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream
from zsntta_cli.simulation.tuned import match_bias, truly_clean

_SCALE = 2.0**10  # of the entropies, against underflow in half precision; divided out again


class Running:
    """Accuracies of the decisions so far; injected items do not count."""

    def __init__(self, stream: Stream, labels: NDArray[np.int32]) -> None:
        """`labels` (T,) are -1 for items that belong to no class."""
        self._kind, self._labels, self.items = stream.kind, labels, 0
        self._counts = np.zeros((2, 2))  # right and seen, of ID and of OOD samples

    def add(self, part: Decisions) -> str:
        """Count the next items: Acc_S, Acc_N and Acc_H in percent, a dash without samples."""
        items = slice(self.items, self.items + len(part.class_index))
        self.items, kind = items.stop, self._kind[items]
        assert part.is_noise is not None
        is_named = ~part.is_noise & (part.class_index == self._labels[items])
        for counts, of, right in zip(
            self._counts, (ID, OOD), (is_named, part.is_noise), strict=True
        ):
            counts += right[kind == of].sum(), (kind == of).sum()
        with np.errstate(invalid="ignore"):
            acc_s, acc_n = (100 * self._counts[:, 0] / self._counts[:, 1]).tolist()
        values = (acc_s, acc_n, harmonic_mean(acc_s, acc_n))
        return "S/N/H " + "/".join("-" if value != value else f"{value:.1f}" for value in values)


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
    seconds: float = 0.0  # of the last run, without loading its encoder and finding its images
    _encoders: dict[EncoderChoice, Encoder] = field(default_factory=dict)

    def run(
        self,
        settings: RunSettings,
        sources: Sources,
        stream: Stream,
        data: StreamData,
        analyse: bool,
        answers: StreamAnswers | None = None,
    ) -> tuple[Decisions, Columns]:
        """Decisions on all items, or on those before a Ctrl-C, with further columns of these.

        `analyse`: record the gradients of clean and noisy samples, too. `answers`: those of TPT
        that are known, to which new ones are added.

        Raises:
            StoreError, DatasetError: features were not made here, or images are missing.
            KeyboardInterrupt: nothing was decided yet.
        """
        encoder, gradients = self.encoder(sources.id_set), GradientNorms(stream)
        sets = _sets(sources, self.settings, encoder.image_size)
        live = LiveData(
            data, encoder, stream_images(stream, sets), sources.id_set.class_names,
            settings.prompt, self.settings.workers, truly_clean(settings, stream),
            match_bias=match_bias(settings, sources), view_seeds=_view_seeds(stream, sets),
            answers=answers,
        )  # fmt: skip
        if analyse:
            live = replace(live, watch=gradients)
        running = Running(stream, true_labels(sources, stream))
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
                    accuracies = running.add(part)
                    gradients.item = running.items
                    advance(items, accuracies)
            except KeyboardInterrupt:
                if not parts:
                    raise
        self.seconds = time.perf_counter() - started
        decisions = Decisions.joined(parts)
        done = slice(len(decisions.class_index))
        columns = {ZERO_SHOT: 1 - data.noise_score[done]}
        if analyse:
            noted = gradients.clean[done], gradients.noisy[done]
            columns |= zip(GRADIENTS, noted, strict=True)
        return decisions, columns

    @property
    def machine(self) -> Machine:
        """The machine on which the encoder of the last run ran, with a GPU's peak memory in it."""
        [encoder] = self._encoders.values()
        device, versions = encoder.device, {"torch": torch.__version__}
        if device.type != "cuda":
            return Machine(device.type, 0, versions)
        peak = torch.cuda.max_memory_allocated(device)
        return Machine(torch.cuda.get_device_name(device), peak, versions)

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


@dataclass(frozen=True)
class _Items:
    """Read item t of a stream."""

    stream: Stream
    sets: dict[int, ImageSet]  # by kind

    def __call__(self, t: int) -> Image.Image:
        images, row = self.sets[int(self.stream.kind[t])], int(self.stream.row[t])
        try:
            return images.read(row)
        except UNREADABLE as error:
            raise unreadable(images, row, error) from error


def _sets(sources: Sources, settings: LiveSettings, image_size: int) -> dict[int, ImageSet]:
    """The images of a stream's sets, by kind.

    Raises:
        DatasetError: images that cannot be found, or are not those of the features.
    """
    present = {ID: sources.id_set, OOD: sources.ood_set, NOISE: sources.noise}
    return {
        kind: _images_of(source, settings, image_size)
        for kind, source in present.items()
        if source is not None
    }


def stream_images(stream: Stream, sets: dict[int, ImageSet]) -> ImageSet:
    """The images of a stream as one set; image t is item t of the stream.

    It has no labels, and its names and ids tell nothing of the sets that the images are from.
    """
    labels, ids = np.full(len(stream), -1, np.int32), [str(t) for t in range(len(stream))]
    return ImageSet("stream", _Items(stream, sets), labels, ids)


def _view_seeds(stream: Stream, sets: dict[int, ImageSet]) -> list[int]:
    """The seeds (T,) of the images' random views, by the name of the set and of the image."""
    names = (
        f"{sets[kind].name}\0{sets[kind].sample_ids[row]}"
        for kind, row in zip(stream.kind.tolist(), stream.row.tolist(), strict=True)
    )
    content = (name.encode(errors="surrogateescape") for name in names)
    return [int.from_bytes(hashlib.sha256(name).digest()[:16]) for name in content]


def _images_of(source: Features, settings: LiveSettings, image_size: int) -> ImageSet:
    """The images behind features, in the order of the features.

    Raises:
        DatasetError: the images cannot be found, or are not those of the features.
    """
    images = _load_images(source, settings, image_size)
    beside = {"skipped", "split", *BESIDE}
    made_from = {k: v for k, v in source.source.items() if k not in beside}
    if images.identity() != made_from:
        raise DatasetError(
            f"the images of '{source.name}' are not those that {source.path} was made from: "
            "extract them again with --overwrite"
        )
    if not {"skipped", "split"} & source.source.keys():
        return images
    encoded_ids = set(store.read_sample_ids(source.path))
    rows = np.array([i for i, name in enumerate(images.sample_ids) if name in encoded_ids])
    if len(rows) != len(source):  # two images of one name, of which one has features
        raise DatasetError(
            f"the images of '{source.name}' that {source.path} was made from cannot be told by "
            f"their names: "
            "extract them again with --overwrite"
        )
    return pick_rows(images, rows)


def _load_images(source: Features, settings: LiveSettings, image_size: int) -> ImageSet:
    if source.kind == NOISE_POOL:
        noise = SetName.parse(source.name).bare
        return noise_images(noise, source.source.get("images") or len(source), image_size)
    if "imported" in source.source:
        raise StoreError(
            f"{source.path} was imported: a live method needs the images, so extract them here."
        )
    name = source.source["split"]["of"] if "split" in source.source else source.name
    spec = _spec(name, settings.datasets)
    as_shown = source.source.get(AS_SHOWN) is True
    images = datasets.load_images(spec, settings.data_root, as_shown)
    return limited(images, source.source.get("limit"))


def _spec(name: str, specs: Sequence[str]) -> str:
    """The specification of a set's images: as it was given, or the known set's name."""
    for spec in specs:
        if str(SetName.parse(spec)) == name:
            return spec
    if SetName.parse(name).base not in datasets.CATALOGUE:
        raise StoreError(
            f"a live method needs the images of '{name}', and it is not known where they are: "
            "add --dataset NAME=PATH"
        )
    return name

"""A detector on images as a program has them: paths, files, PIL images, arrays, tensors.

torch is not imported here: the encoder is loaded when it is first needed.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.cache.features import difference
from zsntta_cli.datasets.decoding import as_shown
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.detection import inputs
from zsntta_cli.detection.classes.examples import ClassFeatures, class_features
from zsntta_cli.detection.classes.photos import photo_items
from zsntta_cli.detection.detector import OnlineDetector, Sources
from zsntta_cli.detection.knowledge import FrozenModel
from zsntta_cli.detection.sources.item import ADDRESS, refuse
from zsntta_cli.encoders.ensembles import prompt_features
from zsntta_cli.errors import SettingsError, StoreError, short
from zsntta_cli.methods.scores import scale_under
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, prompt_template

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder

_BATCH, _WORKERS = 64, 4  # images at a time, threads that read them
_BYTES = bytes | bytearray | memoryview
_MODES = (1, 3, 4)  # channels: grey, RGB, RGBA
_WANTED = (
    "must be a path, a file's bytes, an open file, a PIL image, uint8 pixels (H, W, 3), or a "
    "tensor of the encoder's input (3, S, S)"
)


class NoiseDetector(OnlineDetector):
    """Decide which images belong to none of the named classes, and learn from those seen.

    Images are paths, bytes of files, open files, PIL images, uint8 pixels (H, W, 3), tensors of
    such pixels or of the encoder's input; one or many. They are read as `zsntta detect` reads them:
    as a viewer shows them. Raw features of the same encoder are given as `features=(N, D)`. The
    encoder is loaded when it is first needed.
    """

    _encoder: "Encoder | None" = None  # no pickle has it: it is loaded again, and must be the same

    def __init__(
        self,
        class_names: Sequence[str] | None = None,
        model: str = "ViT-B-16",
        pretrained: str = "openai",
        *,
        class_photos: "str | Path | Mapping[str, Any] | None" = None,
        prompt: str | None = None,
        method: str = "ridge",
        encoder: "Encoder | None" = None,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        """A detector that has seen nothing; nothing is loaded yet.

        Args:
            class_names: one or more, each once; or else
            class_photos: examples of the classes, 2 to 8 photos of each: a folder with a subfolder
                for each class, or images by class names.
            model: open_clip's name, or "tiny": the embedded encoder, for trials.
            pretrained: open_clip's tag, or a checkpoint's path.
            prompt: a template with one {} for the class name, or its name: "code" if None.
            method: one that decides online: zs-clip, adand or ridge.
            encoder: an encoder that `load_encoder` loaded, instead of a model.
            device: where the encoder runs.
            settings: those of the method and its threshold, named as for `simulate`; `seed` as for
                an OnlineDetector, and `precision` of the encoder.

        Raises:
            SettingsError: one of the arguments is invalid.
        """
        if (class_names is None) == (class_photos is None):
            raise SettingsError("give either class_names or class_photos.")
        check(
            prompt is None or class_photos is None, "a prompt is for class names, not for photos."
        )
        self._photos = None if class_photos is None else photos_of(class_photos)
        names = inputs.checked_names(class_names if self._photos is None else list(self._photos))
        self.prompt = prompt_template(DEFAULT_PROMPT if prompt is None else prompt)
        self._device, self._encoder, self._process = device, encoder, os.getpid()
        precision = settings.pop("precision", "fp32")
        if encoder is not None:  # by whose names it can be loaded again
            model, pretrained, precision = map(
                encoder.identity.__getitem__, ("model", "pretrained", "precision")
            )
        self._choice = EncoderChoice(model, pretrained, precision)
        check("normalized" not in settings, "normalized is no setting here: features are raw.")
        self._configure(names, method, settings)
        self.identity: Mapping[str, Any] = {}  # of the encoder, once it was loaded

    def _prepare(self) -> None:
        with self._lock:
            if self._model is None:
                self.identity = self.encoder.identity
                self._begin(self._frozen_model())

    def _frozen_model(self) -> FrozenModel:
        """The classes as the encoder sees their names or their photos."""
        if self._photos is not None:
            classes = encoded_photos(self.encoder, self._photos)
            return FrozenModel(classes.features, self._under(classes.scale), None)
        texts = prompt_features(self.encoder.encode_texts, self.prompt, self.class_names)
        scale, bias = self.identity["logit_scale"], self.identity.get("logit_bias")
        return FrozenModel.checked(texts, self._under(scale), bias)

    def _under(self, scale: float) -> float:
        """A logit scale for logits in the encoder's precision."""
        return scale_under(self.identity.get("precision"), scale)

    @property
    def online(self) -> OnlineDetector:
        """This detector on features alone; both share what they learn.

        Raises:
            EncoderError: no such model, or weights that cannot be had.
        """
        self._begun()
        same = object.__new__(OnlineDetector)
        same.__dict__ = self.__dict__
        return same

    @property
    def encoder(self) -> "Encoder":
        """The encoder, loaded at the first use.

        Raises:
            EncoderError: no such model, or weights that cannot be had.
            StoreError: it is not the encoder that the detector had when it was pickled.
            SettingsError: it was loaded in another process, from which this one was forked.
        """
        if self._encoder is None:
            with self._lock:
                self._encoder = self._encoder or self._loaded_encoder()
                self._process = os.getpid()
        check(
            self._process == os.getpid(),
            "this detector's encoder was used before a fork, which its threads did not survive: "
            "make the detector in the child, or start processes by spawn.",
        )
        return self._encoder

    def _loaded_encoder(self) -> "Encoder":
        from zsntta_cli.encoders.clip import load_encoder

        encoder = load_encoder(self._choice, self._device)
        if self.identity and (other := difference(self.identity, encoder.identity)):
            raise StoreError(
                f"the detector is of another encoder than {self._choice.slug} is now "
                f"({other.key}: {other.one}, now {other.other})."
            )
        return encoder

    def _label(self) -> str:
        return f"{self._choice.slug}, "

    def encode(self, images: Any) -> NDArray[np.float32]:
        """Raw image features (N, D) of one image or many.

        Raises:
            DatasetError: a file that cannot be read as an image.
            SettingsError: something that is no image.
        """
        return encoded(self.encoder, as_list(images))

    def _features_of(self, images: Any, sources: Sources) -> tuple[Any, Sources]:
        listed = as_list(images)
        return encoded(self.encoder, listed), sources or sources_of(listed)


def as_list(images: Any) -> list[Any]:
    """One image or many as a list: an array of four dims or another sequence is many."""
    if isinstance(images, str | _BYTES | Path | Image.Image):
        return [images]
    if _is_file(images):
        return [_Content.of(images)]
    if hasattr(images, "ndim"):
        if images.ndim not in (2, 3, 4):
            raise SettingsError(f"an image has the shape {tuple(images.shape)}, {_WANTED}.")
        return list(images) if images.ndim == 4 else [images]
    if not isinstance(images, Iterable):
        raise SettingsError(f"an image is of the type {type(images).__name__}, {_WANTED}.")
    return [_Content.of(image) if _is_file(image) else image for image in images]


class _Content(NamedTuple):
    """An open file's content, and its name if that is a text."""

    data: bytes
    name: str | Path | None

    @classmethod
    def of(cls, file: Any) -> "_Content":
        """The whole content of a file, whatever its position; threads could not share it."""
        if getattr(file, "seekable", bool)():
            file.seek(0)
        data, name = file.read(), getattr(file, "name", None)
        if not isinstance(data, _BYTES):
            raise SettingsError(
                f"an image is an open file of {type(data).__name__}, not of bytes: open it with "
                f"mode 'rb'."
            )
        return cls(bytes(data), name if isinstance(name, str | Path) else None)


def _is_file(image: Any) -> bool:
    """Whether a value is an open file; paths, PIL images and arrays have no `read`."""
    return callable(getattr(image, "read", None))


def photos_of(given: "str | Path | Mapping[str, Any]") -> dict[str, list[Any]]:
    """Example images by class names, from a folder or from a mapping to one image or many.

    Raises:
        DatasetError: a folder is not of classes. SettingsError: a class has no image.
    """
    if isinstance(given, str | Path):
        items = photo_items(Path(given).expanduser())
        return {name: [item.source for item in of_class] for name, of_class in items.items()}
    if not isinstance(given, Mapping):
        wrong = f"class_photos are of the type {type(given).__name__}"
        raise SettingsError(f"{wrong}, must be a folder or images by class names.")
    images = {name: as_list(of_class) for name, of_class in given.items()}
    for name, of_class in images.items():
        check(bool(of_class), f"class_photos have no image of '{short(str(name))}'.")
    return images


def encoded_photos(encoder: "Encoder", photos: Mapping[str, Sequence[Any]]) -> ClassFeatures:
    """Classes from example images by their names; DatasetError if one cannot be read."""
    features = [encoded(encoder, images) for images in photos.values()]
    labels = np.repeat(np.arange(len(features)), [len(rows) for rows in features])
    return class_features(np.concatenate(features), labels)


def sources_of(images: Sequence[Any]) -> list[str | None]:
    """The paths of images, and the names of open files; None for an image without one."""
    named = (image.name if isinstance(image, _Content) else image for image in images)
    return [str(name) if isinstance(name, str | Path) else None for name in named]


def encoded(encoder: "Encoder", images: Sequence[Any]) -> NDArray[np.float32]:
    """Raw image features (N, D), computed as in an extraction.

    Raises:
        DatasetError: a file that cannot be read as an image.
        SettingsError: something that is no image.
    """
    parts = [np.empty((0, encoder.embed_dim), np.float32)]
    for start in range(0, len(images), _BATCH):
        batch = images[start : start + _BATCH]
        are_inputs = {_is_input(image) for image in batch}
        if len(are_inputs) > 1:
            raise SettingsError("images and tensors of the encoder's input are mixed.")
        if are_inputs == {True}:
            parts.append(encoder.encode_images(_stacked(encoder, batch)))
        else:
            parts += map(encoder.encode_pixels, _pixels(encoder, batch))
    return np.concatenate(parts)


def _is_input(image: Any) -> bool:
    """Whether a value is a tensor of floats, as the encoder's own preprocessing returns."""
    return hasattr(image, "is_floating_point") and bool(image.is_floating_point())


def _stacked(encoder: "Encoder", tensors: Sequence[Any]) -> Any:
    import torch

    shape = (3, encoder.image_size, encoder.image_size)
    for other in {tuple(tensor.shape) for tensor in tensors} - {shape}:
        raise SettingsError(
            f"a tensor of floats has the shape {other}, the encoder's input {shape}."
        )
    return torch.stack(list(tensors))


def _pixels(encoder: "Encoder", images: Sequence[Any]) -> Iterator[NDArray[np.uint8]]:
    """The pixels (B, H, W, 3) for the encoder, read by threads."""
    from zsntta_cli.encoders.batches import load_batches

    names = [name or f"images[{i}]" for i, name in enumerate(sources_of(images))]
    labels = np.full(len(images), -1, np.int32)
    image_set = ImageSet("", lambda i: open_image(images[i]), labels, names)
    read = load_batches(image_set, [range(len(images))], encoder.resize, _WORKERS, False)
    return (pixels for pixels, _ in read)


def open_image(image: Any) -> Image.Image:
    """An image as a viewer shows it, in RGB, as `zsntta detect` reads it.

    Raises:
        OSError: a file that is missing or no image.
        SettingsError: something that is no image.
    """
    if isinstance(image, _Content):
        image = image.data
    if isinstance(image, str):
        image = refuse(ADDRESS) if "://" in image else Path(image)
    elif isinstance(image, _BYTES):
        image = bytes(image)
    elif not isinstance(image, Path | Image.Image):
        image = Image.fromarray(_array(image))
    return as_shown(image).image


def _array(image: Any) -> NDArray[np.uint8]:
    """Pixels (H, W, 3), or with other channels; a tensor may have the channels first."""
    is_tensor = hasattr(image, "detach")
    array = image.detach().cpu().numpy() if is_tensor else image
    if not isinstance(array, np.ndarray):
        raise SettingsError(f"an image is of the type {type(image).__name__}, {_WANTED}.")
    if is_tensor and array.ndim == 3 and array.shape[0] in _MODES:
        array = array.transpose(1, 2, 0)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    fits = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in _MODES)
    if array.dtype != np.uint8 or not fits or 0 in array.shape:
        raise SettingsError(f"an image is {array.dtype} {array.shape}, {_WANTED}.")
    return np.ascontiguousarray(array)

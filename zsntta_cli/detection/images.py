"""A detector on images as a program has them: paths and PIL images.

torch is not imported here: the encoder is loaded when it is first needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.cache.identity import difference, is_level_known
from zsntta_cli.datasets.decoding import as_shown
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.detection import inputs
from zsntta_cli.detection.classes.examples import ClassFeatures, class_features
from zsntta_cli.detection.classes.photos import photo_items
from zsntta_cli.detection.detector import OnlineDetector, Sources
from zsntta_cli.detection.knowledge import FrozenModel
from zsntta_cli.detection.sources.item import ADDRESS, check_not_raw, refuse
from zsntta_cli.encoders.text import generic_text, prompt_features
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, prompt_template

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder

_BATCH, _WORKERS = 64, 4  # images at a time, threads that read them


class NoiseDetector(OnlineDetector):
    """Decide which images belong to none of the named classes, and learn from those seen.

    Images are paths and PIL images, one or a list of them. They are read as `zsntta detect` reads
    them: as a viewer shows them. Raw features of the same encoder are given as `features=(N, D)`.
    The encoder is loaded when it is first needed.
    """

    _encoder: "Encoder | None" = None  # no pickle has it: it is loaded again, and must be the same

    def __init__(
        self,
        class_names: Sequence[str] | None = None,
        model: str = "ViT-B-16",
        pretrained: str = "openai",
        *,
        class_photos: str | Path | None = None,
        prompt: str | None = None,
        method: str = "cull",
        encoder: "Encoder | None" = None,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        """A detector that has seen nothing; nothing is loaded yet.

        Args:
            class_names: one or more, each once; or else
            class_photos: a folder of examples of the classes, with a subfolder of 2 to 8 photos for
                each.
            model: open_clip's name, or "tiny": the embedded encoder, for trials.
            pretrained: open_clip's tag, or a checkpoint's path.
            prompt: a template with one {} for the class name, or its name: "code" if None.
            method: one that decides online: zs-clip, adand or cull.
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
        self._photos: dict[str, list[str]] | None = None
        if class_photos is not None:
            folders = photo_items(Path(class_photos).expanduser())
            self._photos = {name: [item.source for item in of] for name, of in folders.items()}
        names = inputs.checked_names(class_names if self._photos is None else list(self._photos))
        self.prompt = prompt_template(DEFAULT_PROMPT if prompt is None else prompt)
        self._device, self._encoder = device, encoder
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
            return FrozenModel(classes.features, classes.scale, None)
        texts = prompt_features(self.encoder.encode_texts, self.prompt, self.class_names)
        scale, bias = self.identity["logit_scale"], self.identity.get("logit_bias")
        is_known = is_level_known(self.identity)
        is_set = self.settings.get("cull_low") is not None
        generic = generic_text(self.encoder.encode_texts) if is_known or is_set else None
        return FrozenModel.checked(texts, scale, bias, generic, is_known)

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
        """
        if self._encoder is None:
            with self._lock:
                self._encoder = self._encoder or self._loaded_encoder()
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
            TypeError: something is neither a path nor a PIL image.
        """
        return encoded(self.encoder, as_list(images))

    def _features_of(self, images: Any, sources: Sources) -> tuple[Any, Sources]:
        listed = as_list(images)
        return encoded(self.encoder, listed), sources or sources_of(listed)


def as_list(images: Any) -> list[Any]:
    """One image or several as a list.

    Raises:
        TypeError: one of them is neither a path nor a PIL image.
    """
    listed = list(images) if isinstance(images, list | tuple | Iterator) else [images]
    for image in listed:
        if not isinstance(image, str | Path | Image.Image):
            raise TypeError(
                f"an image is of the type {type(image).__name__}, must be a path or a PIL image, "
                f"as of PIL.Image.open(file) or PIL.Image.fromarray(pixels)."
            )
    return listed


def encoded_photos(encoder: "Encoder", photos: Mapping[str, Sequence[Any]]) -> ClassFeatures:
    """Classes from example images by their names; DatasetError if one cannot be read."""
    features = [encoded(encoder, images) for images in photos.values()]
    labels = np.repeat(np.arange(len(features)), [len(rows) for rows in features])
    return class_features(np.concatenate(features), labels)


def sources_of(images: Sequence[Any]) -> list[str | None]:
    """The paths of images; None for a PIL image."""
    return [None if isinstance(image, Image.Image) else str(image) for image in images]


def encoded(encoder: "Encoder", images: Sequence[Any]) -> NDArray[np.float32]:
    """Raw image features (N, D), computed as in an extraction; the images are read by threads.

    Raises:
        DatasetError: a file that cannot be read as an image.
    """
    from zsntta_cli.encoders.batches import load_batches

    names = [name or f"images[{i}]" for i, name in enumerate(sources_of(images))]
    labels = np.full(len(images), -1, np.int32)
    image_set = ImageSet("", lambda i: open_image(images[i]), labels, names)
    batches = [range(i, min(i + _BATCH, len(images))) for i in range(0, len(images), _BATCH)]
    read = load_batches(image_set, batches, encoder.resize, _WORKERS, False)
    parts = [encoder.encode_pixels(pixels) for pixels, _ in read]
    return np.concatenate([np.empty((0, encoder.embed_dim), np.float32), *parts])


def open_image(image: Any) -> Image.Image:
    """An image as a viewer shows it, in RGB, as `zsntta detect` reads it.

    Raises:
        OSError: a file that is missing or no image.
    """
    if isinstance(image, str):
        image = refuse(ADDRESS) if "://" in image else Path(image)
    if isinstance(image, Path):
        check_not_raw(image.name)
    return as_shown(image).image

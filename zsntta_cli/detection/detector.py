"""A detector on images: it brings its encoder, which is loaded when it is first needed."""

import copy
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zsntta_cli.cache.features import difference
from zsntta_cli.detection import images as image_inputs
from zsntta_cli.detection import inputs, kept
from zsntta_cli.detection.online import OnlineDetector
from zsntta_cli.detection.verdicts import WARM_UP, Stage, Verdicts
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, class_prompts, prompt_template

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder


class NoiseDetector:
    """Decides which images are of none of the named classes, and learns from what it sees.

    Images are paths, PIL images, uint8 pixels (H, W, 3), tensors of such pixels or of the encoder's
    input; one or many. Or give `features=(N, D)`, raw, of the same encoder. `update` decides, then
    learns, in order; `predict` and `score` change nothing. Threads may call all of it.
    """

    def __init__(
        self,
        class_names: Sequence[str],
        model: str = "ViT-B-16",
        pretrained: str = "openai",
        *,
        prompt: str = DEFAULT_PROMPT,
        method: str = "ridge",
        encoder: "Encoder | None" = None,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        """A detector that has seen nothing; nothing is loaded yet.

        Args:
            class_names: one or more, each once.
            model: open_clip's name, or "tiny": the embedded encoder, for trials.
            pretrained: open_clip's tag, or a checkpoint's path.
            prompt: a template with one {} for the class name, or its name.
            method: one that decides online: zs-clip, adand or ridge.
            encoder: one that was loaded by `load_encoder`, instead of a model.
            device: where the encoder runs.
            settings: of the method and its threshold, named as for `simulate`; `seed` as for an
                OnlineDetector, and `precision` of the encoder.

        Raises:
            SettingsError: one of them will not do.
        """
        if isinstance(class_names, str):
            raise SettingsError(f"class names are the text '{class_names:.60}', not a list.")
        self.class_names = tuple(class_names)
        inputs.check_class_names(self.class_names)
        self.prompt, self._device = prompt_template(prompt), device
        self._choice = EncoderChoice(model, pretrained, settings.pop("precision", "fp32"))
        check("normalized" not in settings, "normalized is no setting here: features are raw.")
        self.method, self._settings = method, settings
        self._encoder = encoder
        self._online: OnlineDetector | None = None
        self._loading = threading.RLock()
        one = np.ones((len(self.class_names), 1), np.float32)
        OnlineDetector(one, 1.0, method, class_names=self.class_names, **settings)  # or it raises

    @property
    def online(self) -> OnlineDetector:
        """The detector behind it, on features; the encoder is loaded where it was not.

        Raises:
            EncoderError: no such model, or weights that cannot be had.
        """
        with self._loading:
            if self._online is None:
                encoder = self.encoder
                text = encoder.encode_texts(class_prompts(self.prompt, self.class_names))
                self._online = OnlineDetector(
                    text, encoder.identity["logit_scale"], self.method,
                    class_names=self.class_names,
                    logit_bias=encoder.identity.get("logit_bias"), **self._settings,
                )  # fmt: skip
                self._online.identity = encoder.identity
            return self._online

    @property
    def encoder(self) -> "Encoder":
        """The encoder, loaded at the first use.

        Raises:
            EncoderError: no such model, or weights that cannot be had.
            StoreError: it is another than that of the state that was loaded.
        """
        with self._loading:
            if self._encoder is None:
                from zsntta_cli.encoders.clip import load_encoder

                encoder = load_encoder(self._choice, self._device)
                known = self._online.identity if self._online else {}
                if known and (found := difference(known, encoder.identity)):
                    raise StoreError(
                        f"the state is of another encoder than {self._choice.slug} is now "
                        f"({found.key}: {found.one}, now {found.other})."
                    )
                self._encoder = encoder
            return self._encoder

    def encode(self, images: Any) -> NDArray[np.float32]:
        """Raw image features (N, D) of one image or many.

        Raises:
            DatasetError: a file that cannot be read as an image.
            SettingsError: something that is no image.
        """
        return image_inputs.encoded(self.encoder, image_inputs.as_list(images))

    def update(self, images: Any = None, *, features: ArrayLike | None = None) -> Verdicts:
        """Decide on the next images, or features (N, D) of such, in order, and learn from them.

        Raises:
            DatasetError: a file that cannot be read as an image; nothing is learned then.
            SettingsError: something that is no image, or features that will not do, likewise.
        """
        return self.online.update(*self._seen_as(images, features))

    def predict(self, images: Any = None, *, features: ArrayLike | None = None) -> Verdicts:
        """Judge images by what was learned, each by itself; nothing is learned."""
        return self.online.predict(*self._seen_as(images, features))

    def score(
        self, images: Any = None, *, features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Noise scores (N,), higher = more noise; nothing is learned."""
        return self.predict(images, features=features).score

    def decide_all(
        self,
        images: Any = None,
        *,
        features: ArrayLike | None = None,
        passes: int | None = None,
        seed: int = 0,
    ) -> Verdicts:
        """Decide on a whole folder's images in hindsight, as `OnlineDetector.decide_all` does."""
        rows, sources = self._seen_as(images, features)
        return self.online.decide_all(rows, passes, seed, sources)

    def _seen_as(
        self, images: Any, features: ArrayLike | None
    ) -> tuple[ArrayLike, Sequence[str | None]]:
        """Features, and the sources of what they are of."""
        if (images is None) == (features is None):
            raise SettingsError("give either images or features.")
        if features is not None:
            return features, ()
        given = image_inputs.as_list(images)
        return image_inputs.encoded(self.encoder, given), image_inputs.sources_of(given)

    @property
    def seen(self) -> int:
        """How many images it has learned from."""
        return self._online.seen if self._online else 0

    @property
    def stage(self) -> Stage:
        """The stage of the next image: "warm-up" as long as ZS-CLIP decides, then "adapted"."""
        return self._online.stage if self._online else WARM_UP

    @property
    def ready(self) -> bool:
        """Whether the method's own rule decides on the next image, and no more ZS-CLIP's."""
        return bool(self._online and self._online.ready)

    def reset(self) -> None:
        """Forget all that was learned."""
        if self._online:
            self._online.reset()

    def copy(self) -> "NoiseDetector":
        """Another detector with the same encoder that knows the same, and learns by itself."""
        other = copy.copy(self)
        other._loading = threading.RLock()
        other._online = self._online.copy() if self._online else None
        return other

    def save(self, path: str | Path) -> None:
        """Write all that was learned, the classes and whose features they are to an HDF5 file.

        Raises:
            StoreError: it cannot be written; what was there before still is.
        """
        choice = self._choice
        more = {
            "model": choice.model, "pretrained": choice.pretrained, "precision": choice.precision,
            "prompt": self.prompt,
        }  # fmt: skip
        kept.write(Path(path), self.online, more)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "NoiseDetector":
        """The detector that a file keeps; its encoder is loaded at the first image.

        Raises:
            StoreError: there is none, it is broken, of a newer version, or of features alone.
        """
        online, more = kept.read(Path(path))
        names = [more.get(key) for key in ("model", "pretrained", "prompt", "precision")]
        if not all(isinstance(name, str) for name in names):
            raise StoreError(f"{path} is of a detector on features: OnlineDetector.load reads it.")
        model, pretrained, prompt, precision = map(str, names)
        try:
            detector = cls(
                online.class_names, model, pretrained, prompt=prompt, method=online.method,
                device=device, precision=precision, **online.settings,
            )  # fmt: skip
        except SettingsError as error:
            raise StoreError(f"{path} holds no detector: {error}") from error
        detector._online = online
        return detector

    def resume(self, path: str | Path) -> None:
        """Go on from a file that a detector of the same classes, encoder and settings was saved to.

        Raises:
            StoreError: it is of others, broken, or of a newer version; nothing is changed then.
        """
        self.online.resume(path)

    def __repr__(self) -> str:
        return (
            f"<NoiseDetector {self._choice.slug}, {self.method}, {len(self.class_names):,} "
            f"classes, {self.seen:,} seen, {self.stage}>"
        )

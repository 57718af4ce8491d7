"""CLIP encoders of open_clip. torch is imported when an encoder is loaded."""

import json
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.encoders.text import TextTower, autocast
from zsntta_cli.encoders.weights import Weights, load_weights
from zsntta_cli.errors import EncoderError, first_line
from zsntta_cli.settings import AMP, EncoderChoice

if TYPE_CHECKING:
    import torch

_SLOW = (
    "note: CPUs are slow in float16: with amp, encoding takes 6 to 18 times as long as with fp32, "
    "and a step of a live method 20 to 25 times."
)


class Encoder:
    """A loaded CLIP model, which turns images and prompts into features."""

    def __init__(self, weights: Weights, choice: EncoderChoice, device: "torch.device") -> None:
        import open_clip
        import torch

        self.model = model = weights.model.eval().to(device)
        self.device, self._precision = device, choice.precision
        is_cuda = device.type == "cuda"
        self.gpu = torch.cuda.get_device_name(device) if is_cuda else None  # its name
        self.text = TextTower(model, weights.tokenize, device, choice.precision)
        self._dtype = open_clip.get_input_dtype(choice.precision) or torch.float32
        # A ViT has one convolution, which cuts an image into patches. With more, the CPU is 1.4
        # times (RN50) to 1.6 times (tiny) as fast.
        convolutions = [m for m in model.visual.modules() if isinstance(m, torch.nn.Conv2d)]
        is_fast = device.type == "cpu" and len(convolutions) > 1
        self.layout = torch.channels_last if is_fast else torch.contiguous_format
        model.visual.to(memory_format=self.layout)
        config = open_clip.transform.PreprocessCfg(**model.visual.preprocess_cfg)
        steps = open_clip.transform.image_transform_v2(config, is_train=False).transforms
        self._resize: list[Callable[[Image.Image], Image.Image]] = steps[:-2]  # then normalised
        self._mean = torch.tensor(config.mean, device=device).view(-1, 1, 1)
        self._std = torch.tensor(config.std, device=device).view(-1, 1, 1)
        height, width = np.broadcast_to(config.size, 2).tolist()
        self.image_size = max(height, width)
        self._final = width, height  # the size, in PIL's order, of images that need no resizing
        self.embed_dim = self.encode_texts([""]).shape[1]
        self.identity = _identity(choice, self, weights)
        slow = [_SLOW] if choice.precision == AMP and device.type == "cpu" else []
        self.notes = (*weights.notes, *slow)  # for who loads it

    def tell(self, note: Callable[[str], object]) -> None:
        """Pass its notes to `note`, now and whenever it truncates texts later."""
        for text in self.notes:
            note(text)
        self.text.tell = note

    def resize(self, image: Image.Image) -> NDArray[np.uint8]:
        """Resize and crop an image with PIL to the pixels (H, W, 3) that the encoder gets."""
        if image.size != self._final or image.mode != "RGB":
            for step in self._resize:
                image = step(image)
        return np.asarray(image)

    def encode_pixels(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Encode pixels (B, H, W, 3), which are normalised as one batch, to raw features (B, D)."""
        return self.encode_images(self.normalize(pixels))

    def normalize(self, pixels: NDArray[np.uint8] | NDArray[np.float32]) -> "torch.Tensor":
        """Turn pixels (B, H, W, 3) in 0 … 255 into encoder input (B, 3, H, W), as torchvision does.

        The result is float32. Pixels in float32 may be overwritten.
        """
        import torch

        host = torch.from_numpy(pixels)
        if self.device.type == "cuda":
            host = host.pin_memory()
        batch = host.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
        batch = batch.to(torch.float32).div_(255).sub_(self._mean).div_(self._std)
        return batch.contiguous(memory_format=self.layout)

    def encode_images(self, batch: "torch.Tensor") -> NDArray[np.float32]:
        """Encode preprocessed images (B, 3, H, W) to raw image features (B, D)."""
        import torch

        with torch.inference_mode():
            features: NDArray[np.float32] = self.image_features(batch).cpu().numpy()
        return features

    def image_features(self, batch: "torch.Tensor") -> "torch.Tensor":
        """Encode images (B, 3, H, W) to raw features (B, D) in float32 with gradients."""
        images = batch.to(self.device, self._dtype, non_blocking=True)
        with self.autocast():
            features = self.model.encode_image(images, normalize=False)  # CoCa's default is True
        return features.float()

    def autocast(self) -> AbstractContextManager[Any]:
        """The context in which encoding runs; logits must be computed in it, too."""
        return autocast(self.device, self._precision)

    def encode_texts(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        """Encode prompts to unit-norm text features (C, D)."""
        return self.text.encode(prompts)


def _identity(choice: EncoderChoice, encoder: Encoder, weights: Weights) -> dict[str, Any]:
    """The identity of an encoder: all that its features can depend on, as read from a file."""
    import open_clip
    import torch

    model, device = encoder.model, encoder.device.type
    versions = {"torch": torch.__version__, "open_clip": open_clip.__version__, **weights.versions}
    identity = {
        "model": choice.model,
        "pretrained": choice.pretrained,
        "weights_sha256": weights.sha256,
        "quick_gelu": "QuickGELU" in repr(model),  # of open_clip, timm or transformers
        "precision": choice.precision,
        "device": device,
        "threads": torch.get_num_threads() if device == "cpu" else None,  # they change last bits
        "memory_format": str(encoder.layout).removeprefix("torch."),
        "image_size": encoder.image_size,
        "preprocessing": {**model.visual.preprocess_cfg, "resizer": "PIL"},
        "logit_scale": float(model.logit_scale.detach().float().exp()),
        "versions": versions,
    }
    if model.logit_bias is not None:  # SigLIP's; other identities do not mention the loss
        identity |= {"loss": "sigmoid", "logit_bias": float(model.logit_bias.detach().float())}
    read: dict[str, Any] = json.loads(json.dumps(identity))
    return read


def wait_passively() -> None:
    """Keep torch's idle threads from spinning; call this before torch is imported.

    Spinning threads starve those that read images, and encoding on the CPU gets up to 19 times
    slower. OpenMP reads the variable once, when torch loads it.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def load_encoder(choice: EncoderChoice, device: str = "auto") -> Encoder:
    """Load an encoder; the weights of a tag are downloaded if they are not in the cache.

    Raises:
        EncoderError: the model, the weights or the device are not available; the message says which
            file to download.
    """
    wait_passively()
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise EncoderError(
            f"device '{device}' is not available ({first_line(error)}): try --device cpu"
        ) from error
    logging.disable(logging.ERROR)  # open_clip's, all of which is forced, recorded or raised
    try:
        with warnings.catch_warnings(action="ignore"):
            return Encoder(load_weights(choice), choice, torch.device(device))
    finally:
        logging.disable(logging.NOTSET)

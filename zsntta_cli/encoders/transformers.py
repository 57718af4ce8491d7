"""Checkpoints of the library transformers: `--model hf:ORG/NAME`, or hf:/FOLDER as it saves them.

CLIP, SigLIP and SigLIP 2 of a fixed resolution can be loaded. Weights are only read from
safetensors, and no code of a repository is ever run. Images are prepared as the checkpoint's
preprocessor_config.json says, with PIL, as for all encoders here.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli.errors import EncoderError, first_line
from zsntta_cli.files import read_input, sha256
from zsntta_cli.settings import EncoderChoice, hub_folder

if TYPE_CHECKING:
    import torch

Loaded = tuple["torch.nn.Module", Callable[[list[str]], "torch.Tensor"], str]

_IMAGES = "preprocessor_config.json"
_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")  # configurations, weights, tokenizers
_KINDS = {"clip": "CLIPModel", "siglip": "SiglipModel"}  # by config.json's model_type
_RESAMPLE = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # PIL's numbers
_TIMEOUT = 10  # seconds until the hub counts as out of reach
_LARGEST_JSON = 2**24


def load_checkpoint(choice: EncoderChoice) -> Loaded:
    """Load a checkpoint as a model with open_clip's methods, its tokenizer and its weights' sha256.

    Raises:
        EncoderError: the checkpoint cannot be loaded, or transformers is not installed.
    """
    import open_clip
    import torch

    try:
        transformers = import_module("transformers")
    except ImportError as error:
        raise EncoderError(
            f"{choice.model} is a checkpoint of transformers", remedy="install-transformers"
        ) from error
    transformers.utils.logging.disable_progress_bar()
    folder = hub_folder(choice.model) or _fetched(choice.model)
    config, images = (_json(folder / name) for name in ("config.json", _IMAGES))
    kind = _KINDS.get(str(config.get("model_type")))
    if kind is None:
        raise EncoderError(
            f"{choice.model} is of the kind '{config.get('model_type')}', must be one of "
            f"{', '.join(_KINDS)}: SigLIP 2 of variable resolution (NaFlex) is not read."
        )
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise EncoderError(f"{choice.model} has no weights in safetensors: others are not read.")
    try:
        model = getattr(transformers, kind).from_pretrained(
            folder, use_safetensors=True, local_files_only=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # transformers raises errors of many kinds
        raise EncoderError(f"cannot load {choice.model} ({first_line(error)}).") from error
    length = int(model.config.text_config.max_position_embeddings)

    def tokenize(prompts: list[str]) -> "torch.Tensor":
        tokens: torch.Tensor = tokenizer(
            prompts, padding="max_length", truncation=True, max_length=length, return_tensors="pt"
        )["input_ids"]
        return tokens

    model.to(open_clip.get_cast_dtype(choice.precision) or torch.float32)
    return (
        _adapted(model, _preprocessing(images), transformers.__version__),
        tokenize,
        _digest(weights),
    )


def _digest(weights: Sequence[Path]) -> str:
    """The sha256 of a file of weights; for several files, the sha256 of their digests."""
    digests = [sha256(path) for path in weights]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _fetched(model: str) -> Path:
    """Fetch the missing files of a repository, and give their folder in the hub's cache.

    Raises:
        EncoderError: the hub cannot be reached, or has no such repository.
    """
    import huggingface_hub

    name = model.partition(":")[2]
    try:
        if not isinstance(huggingface_hub.try_to_load_from_cache(name, _IMAGES), str):
            huggingface_hub.model_info(name, timeout=_TIMEOUT)  # fails at once, without retries
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(_FILES)))
    except Exception as error:  # errors of the hub, of HTTP or of the network
        raise EncoderError(
            f"cannot get {model}: download the files of https://huggingface.co/{name} and take "
            f"hf:/FOLDER as the model ({type(error).__name__}: {first_line(error)})."
        ) from error


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_input(path, _LARGEST_JSON))
    except (OSError, ValueError) as error:
        raise EncoderError(
            f"cannot read {path.name} of the model ({first_line(error)})."
        ) from error
    if not isinstance(value, dict):
        raise EncoderError(f"{path.name} of the model is no JSON object.")
    return value


def _preprocessing(config: dict[str, Any]) -> dict[str, Any]:
    """Translate an image processor's configuration into open_clip's preprocessing.

    Raises:
        EncoderError: it has steps beside a resize, a crop of the same size and a normalisation.
    """
    size, crop = config.get("size"), config.get("crop_size")
    if isinstance(size, dict) and "shortest_edge" in size:
        shortest, cut = int(size["shortest_edge"]), _side(crop or size["shortest_edge"])
        is_crop = config.get("do_center_crop", True) and cut == shortest
        sides, mode = cut, "shortest" if is_crop else None
    else:
        sides, mode = _side(size), "squash"
    resample = _RESAMPLE.get(config.get("resample", 3))
    if mode is None or sides is None or resample not in ("bilinear", "bicubic"):
        raise EncoderError(
            f"the model's images are prepared in a way that is not known here (size {size}, crop "
            f"{crop}, resample {config.get('resample')})."
        )
    return {
        "size": (sides, sides), "mode": "RGB", "mean": tuple(config["image_mean"]),
        "std": tuple(config["image_std"]), "interpolation": resample, "resize_mode": mode,
        "fill_color": 0,
    }  # fmt: skip


def _side(size: Any) -> int | None:
    """The side of square images; None if images are not square."""
    if isinstance(size, int):
        return size
    if not isinstance(size, dict) or size.get("height") != size.get("width"):
        return None
    side = size.get("height")
    return side if isinstance(side, int) else None


def _adapted(model: Any, preprocessing: dict[str, Any], version: str) -> "torch.nn.Module":
    """Wrap a checkpoint in a module with the names that open_clip's models have."""
    import torch

    class Checkpoint(torch.nn.Module):
        """The towers of a checkpoint of transformers."""

        def __init__(self) -> None:
            super().__init__()
            self.model, self.versions = model, {"transformers": version}
            self.visual = model.vision_model
            self.visual.preprocess_cfg = preprocessing
            self.logit_scale = model.logit_scale
            self.logit_bias = getattr(model, "logit_bias", None)

        def encode_image(self, images: torch.Tensor, normalize: bool = False) -> torch.Tensor:
            """Encode pixels (B, 3, H, W) to image features (B, D)."""
            assert not normalize
            return _features(self.model.get_image_features(pixel_values=images))

        def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
            """Encode tokens (P, L) to text features (P, D)."""
            return _features(self.model.get_text_features(input_ids=tokens))

    return Checkpoint()


def _features(output: Any) -> "torch.Tensor":
    """The projected features, which transformers wraps in an output since version 5."""
    features: torch.Tensor = getattr(output, "pooler_output", output)
    return features

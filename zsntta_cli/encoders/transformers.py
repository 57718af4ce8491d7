"""Checkpoints of the library transformers: `--model hf:ORG/NAME`, or hf:/FOLDER as it saves them.

CLIP, SigLIP and SigLIP 2 of a fixed resolution are read, from safetensors; no code is ever run.
"""

import hashlib
import re
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import huggingface_hub
import open_clip
import torch

from zsntta_cli.encoders.weights import ADAPTER, Weights, in_cache
from zsntta_cli.errors import EncoderError, first_line
from zsntta_cli.files import sha256
from zsntta_cli.settings import CHECKPOINT, EncoderChoice, hub_folder

_IMAGES = "preprocessor_config.json"
_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]  # configurations, weights, tokenizers
_KINDS = {"clip": "CLIPModel", "siglip": "SiglipModel"}  # by config.json's model_type
_RESAMPLE = {2: "bilinear", 3: "bicubic"}  # PIL's numbers


class Checkpoint(torch.nn.Module):
    """A checkpoint of transformers, with the names that open_clip's models have."""

    def __init__(self, model: Any, preprocessing: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.visual = model, model.vision_model
        self.visual.preprocess_cfg = preprocessing
        self.logit_scale, self.logit_bias = model.logit_scale, getattr(model, "logit_bias", None)

    def encode_image(self, images: torch.Tensor, **_: bool) -> Any:
        """Encode pixels (B, 3, H, W) to raw image features (B, D)."""
        return self.model.get_image_features(pixel_values=images).pooler_output

    def encode_text(self, tokens: torch.Tensor) -> Any:
        """Encode tokens (P, L) to text features (P, D)."""
        return self.model.get_text_features(input_ids=tokens).pooler_output


def load_checkpoint(choice: EncoderChoice) -> Weights:
    """Load a checkpoint: its weights and its tokenizer.

    Raises:
        EncoderError: the checkpoint cannot be loaded, or transformers is not installed.
    """
    folder, name = hub_folder(choice.model), choice.model.removeprefix(CHECKPOINT)
    download = f": download https://huggingface.co/{name} and type --model hf:/FOLDER"
    by_hand = "" if folder else download
    try:
        library = import_module("transformers")
        library.utils.logging.disable_progress_bar()
        library.utils.logging.set_verbosity_error()  # _load_model names the first missing key
        if folder is None:
            in_cache(name, _IMAGES)
            folder = Path(huggingface_hub.snapshot_download(name, allow_patterns=_FILES))
        kind = _kind(library, folder)
        images = library.ImageProcessingMixin.get_image_processor_dict(folder)[0]
        preprocessing = _preprocessing(images, kind)
        model, prefix = _load_model(getattr(library, _KINDS[kind]), folder)
        tokenizer = library.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # transformers, the hub and the network raise errors of many kinds
        if isinstance(error, ImportError):
            by_hand = ": type pip install 'zsntta[transformers]'"
        raise EncoderError(f"cannot load {choice.model} ({first_line(error)}){by_hand}.") from error
    notes = [f"note: {choice.model}: the weights under {prefix}* are used."] * bool(prefix)
    way = {"padding": "max_length", "truncation": True, "return_tensors": "pt"}
    longest = int(model.config.text_config.max_position_embeddings)

    def tokenize(prompts: list[str], length: int = longest) -> Any:
        return tokenizer(prompts, max_length=length, **way)["input_ids"]

    digests = [sha256(path) for path in sorted(folder.glob("*.safetensors"))]
    digest = hashlib.sha256("".join(digests).encode()).hexdigest() if digests[1:] else digests[0]
    model.to(open_clip.get_cast_dtype(choice.precision) or torch.float32)
    versions = {"transformers": str(library.__version__)}
    return Weights(Checkpoint(model, preprocessing), tokenize, digest, tuple(notes), versions)


def _kind(library: Any, folder: Path) -> str:
    """The model type of a folder with a complete checkpoint that can be read, or an error."""
    if not folder.is_dir():  # the library would ask the hub for it
        raise EncoderError("the folder does not exist")
    if (folder / "adapter_config.json").exists() and not (folder / "config.json").exists():
        raise EncoderError(f"it {ADAPTER}")
    kind: str = library.PretrainedConfig.get_config_dict(folder)[0].get("model_type")
    if kind not in _KINDS:
        raise EncoderError(f"its model type is '{kind}', must be one of {', '.join(_KINDS)}")
    return kind


def _load_model(kind: Any, folder: Path) -> tuple[Any, str]:
    """Load a model with all of its weights, and return the prefix of their names, if any."""
    load = partial(
        kind.from_pretrained, folder, use_safetensors=True, output_loading_info=True,
        ignore_mismatched_sizes=True,
    )  # fmt: skip
    (model, keys), prefix = load(), ""
    scales = [key for key in keys["unexpected_keys"] if key.endswith(".logit_scale")]
    if scales and "logit_scale" in keys["missing_keys"]:  # as training scripts save them
        prefix = scales[0].removesuffix("logit_scale")
        model, keys = load(key_mapping={f"^{re.escape(prefix)}": ""})
    if lacking := sorted([*keys["missing_keys"], *(key[0] for key in keys["mismatched_keys"])]):
        reason = f"{lacking[0]} is missing or has a different size"
        raise EncoderError(f"its weights do not fit its config.json: {reason}")
    return model, prefix


def _preprocessing(images: dict[str, Any], kind: str) -> dict[str, Any]:
    """Translate a resize, a crop of the same size and a normalisation for open_clip, or refuse."""
    size, crop = images.get("size"), images.get("crop_size")
    edges = size if isinstance(size, dict) else {"shortest_edge": size if kind == "clip" else None}
    shortest = edges.get("shortest_edge")  # as a plain number in OpenAI's own
    final = crop or shortest if shortest else size
    sides = {final.get("height"), final.get("width")} if isinstance(final, dict) else {final}
    is_whole = not shortest or (images.get("do_center_crop", True) and sides == {shortest})
    resample = _RESAMPLE.get(images.get("resample", 3))
    if len(sides) != 1 or None in sides or not is_whole or resample is None:
        raise EncoderError(f"its {_IMAGES} has unsupported steps")
    return {
        "size": (*sides, *sides), "mode": "RGB", "mean": tuple(images["image_mean"]),
        "std": tuple(images["image_std"]), "interpolation": resample, "fill_color": 0,
        "resize_mode": "shortest" if shortest else "squash",
    }  # fmt: skip

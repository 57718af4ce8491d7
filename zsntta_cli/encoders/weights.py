"""The sources of an encoder's weights: the package, the hub, a checkpoint, or random numbers.

OpenAI's weights were trained with QuickGELU. With plain GELU they load and give wrong features, so
the activation that the weights need is forced. A file with nothing but tensors does not say which
one that is: then the model's name decides, and `activation_note` says so.
"""

import hashlib
import pickle
import sys
import textwrap
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli.errors import EncoderError, first_line, near
from zsntta_cli.files import sha256
from zsntta_cli.settings import AMP, FP32, RANDOM_WEIGHTS, TINY, EncoderChoice, is_tiny

if TYPE_CHECKING:
    import open_clip
from dataclasses import dataclass

_ASSETS = Path(__file__).parent / "assets"
_TINY_WEIGHTS = _ASSETS / "tiny.safetensors"
_WEIGHTS, _CONFIG = "open_clip_model.safetensors", "open_clip_config.json"
_PREPROCESSING = ("mean", "std", "interpolation", "resize_mode")  # keys that a tag may have
_REPOSITORIES = {  # of the paper's encoders with OpenAI's weights, as open_clip names them
    "RN50": "timm/resnet50_clip.openai",
    "ViT-B-16": "timm/vit_base_patch16_clip_224.openai",
    "ViT-L-14": "timm/vit_large_patch14_clip_224.openai",
}
_QUICK_GELU, _HUB = "-quickgelu", "hf-hub:"  # in open_clip's names of models
_NO_CHECKPOINT = "the file is no checkpoint"
_HAS_OBJECTS = (
    "the file has objects beside weights, which are not unpickled: save only the "
    "model's state_dict()"
)
_TIMEOUT = 10  # seconds until the hub counts as out of reach
_RANDOM_SEED = 0  # of `--pretrained none`: the same random weights on every machine


def _load_tiny(precision: str) -> tuple["open_clip.CLIP", str]:
    """Load the embedded encoder; rows of its word table that training never saw are zero."""
    import open_clip
    import torch
    from safetensors.torch import load

    open_clip.add_model_config(_ASSETS / "tiny.json")
    content = _TINY_WEIGHTS.read_bytes()
    state = load(content)
    ids, rows = state.pop("token_embedding.ids"), state.pop("token_embedding.rows")
    model = open_clip.create_model(TINY, precision=precision)
    state["token_embedding.weight"] = torch.zeros(model.token_embedding.weight.shape)
    state["token_embedding.weight"][ids] = rows.float()
    model.load_state_dict(state)
    return model, hashlib.sha256(content).hexdigest()


def misspelt(model: str) -> str:
    """A clause that says that a model does not exist and asks for a similar name; else empty."""
    models = [] if ":" in model else _models()
    meant = "" if model.replace("/", "-") in models else near(model, models)
    return f"open_clip has no model '{model}'{meant}" if meant else ""


def _models() -> list[str]:
    """The names of models, read from the package's files, as importing open_clip takes seconds."""
    if open_clip := sys.modules.get("open_clip"):
        return [TINY, *open_clip.list_models()]
    package = find_spec("open_clip")
    places = (package and package.submodule_search_locations) or ()
    files = (file for place in places for file in Path(place, "model_configs").glob("*.json"))
    return [TINY, *sorted(file.stem for file in files)]


def load_weights(choice: EncoderChoice) -> tuple["open_clip.CLIP", str]:
    """Load a model, and the sha256 of its weights' file, or of its tensors if there is no file.

    Raises:
        EncoderError: there is no such model, or its weights cannot be loaded or do not fit.
    """
    try:
        return _load_tiny(choice.precision) if choice.model == TINY else _load_open_clip(choice)
    except EncoderError:
        raise
    except Exception as error:  # open_clip raises whatever its many sources raise
        raise EncoderError(_unavailable(choice, error)) from error


def _load_open_clip(choice: EncoderChoice) -> tuple["open_clip.CLIP", str]:
    import open_clip

    if ":" not in choice.model and open_clip.get_model_config(choice.model) is None:
        raise EncoderError(
            f"open_clip has no model '{choice.model}'{near(choice.model, _models())}: see "
            f"open_clip.list_models()."
        )
    if choice.pretrained != RANDOM_WEIGHTS and ":" not in choice.model:
        return _from_file(choice)
    model = _random(choice) if choice.pretrained == RANDOM_WEIGHTS else _from_folder(choice)
    return model, _state_sha256(model)


def _random(choice: EncoderChoice) -> "open_clip.CLIP":
    import open_clip
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(_RANDOM_SEED)
        return open_clip.create_model(choice.model, precision=choice.precision)


def _from_folder(choice: EncoderChoice) -> "open_clip.CLIP":
    """Load a model by hf-hub:… or local-dir:…, which are open_clip's forms of names."""
    import open_clip

    if choice.model.startswith(_HUB):
        check_reachable(choice.model.removeprefix(_HUB), _CONFIG)
    return open_clip.create_model(choice.model, precision=choice.precision, require_pretrained=True)


def _from_file(choice: EncoderChoice) -> tuple["open_clip.CLIP", str]:
    """Load a model with the weights of a tag or a checkpoint, and the digest of their file."""
    import open_clip
    import torch

    tag, path = _weights_file(choice)
    if not path.is_file():
        tags = open_clip.list_pretrained_tags_by_model(choice.model)
        raise EncoderError(
            f"'{choice.pretrained}' is no file and no weights of {choice.model}"
            f"{near(choice.pretrained, tags)} (known: {', '.join(tags) or 'none'})."
        )
    archive = _is_torchscript(path)  # only OpenAI's own files are TorchScript
    model = open_clip.create_model(
        choice.model,
        pretrained=None if archive else str(path),
        precision=choice.precision,
        force_quick_gelu=archive or bool(tag.get("quick_gelu")),
        force_preprocess_cfg=_preprocessing(choice.model, tag),
    )
    if archive:
        state = torch.jit.load(path, map_location="cpu").state_dict()  # type: ignore[no-untyped-call]
        names = ("input_resolution", "context_length", "vocab_size")
        model.load_state_dict({k: v for k, v in state.items() if k not in names})
    return model, sha256(path)


def _weights_file(choice: EncoderChoice) -> tuple[dict[str, Any], Path]:
    """Find open_clip's entry of a tag (empty for a file), and the file of the weights."""
    import open_clip

    tag = open_clip.get_pretrained_cfg(choice.model, choice.pretrained)
    return tag, _download(tag) if tag else Path(choice.pretrained)


def load_text_weights(choice: EncoderChoice) -> tuple["open_clip.CLIP", str] | None:
    """Load a CLIP model with only its text tower, and the sha256 of its weights' file.

    Only the tensors of the text tower are read, and no image tower is made, so ViT-B-16 takes a
    third of the memory and a twentieth of the time. None means that the whole model is needed: the
    weights are no safetensors, in another precision, or of a text tower that is not CLIP's own.

    Raises:
        EncoderError: there is no such model, or its weights cannot be loaded.
    """
    is_apart = choice.model != TINY and ":" not in choice.model and choice.precision in (FP32, AMP)
    if not is_apart or choice.pretrained == RANDOM_WEIGHTS:
        return None
    try:
        tag, path = _weights_file(choice)
        if path.suffix != ".safetensors" or not path.is_file():
            return None
        model = _without_images(choice, bool(tag.get("quick_gelu")))
        return (model, sha256(path)) if _fill(model, path) else None
    except Exception as error:  # open_clip raises whatever its many sources raise
        raise EncoderError(_unavailable(choice, error)) from error


def _without_images(choice: EncoderChoice, quick_gelu: bool) -> "open_clip.CLIP":
    """Make a model without an image tower, whose text tower has shapes and no weights yet."""
    import open_clip
    import torch

    with torch.device("meta"):
        model = open_clip.create_model(
            choice.model, device="meta", precision=choice.precision, force_quick_gelu=quick_gelu
        )
    model.visual = None
    return model


def _fill(model: "open_clip.CLIP", path: Path) -> bool:
    """Read the weights of a model's text tower: False if the file does not have all of them."""
    import open_clip
    import torch
    from safetensors import safe_open

    if type(model) is not open_clip.CLIP:
        return False
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    with safe_open(path, "pt") as file:
        if not shapes.keys() <= set(file.keys()):
            return False
        state = {name: file.get_tensor(name).float() for name in shapes}
    if any(state[name].shape != shape for name, shape in shapes.items()):
        return False
    model.load_state_dict(state, assign=True)
    if model.attn_mask is not None:  # no file has the mask: a token attends to those before it
        length = len(model.attn_mask)
        model.attn_mask = torch.full((length, length), -torch.inf).triu_(1)
    return not any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers()))


def _preprocessing(model: str, tag: dict[str, Any]) -> dict[str, Any]:
    """A tag's preprocessing; for a file, the values that all tags of its model share (SigLIP's)."""
    import open_clip

    names = open_clip.list_pretrained_tags_by_model(model)
    configs = [tag] if tag else [open_clip.get_pretrained_cfg(model, name) for name in names]
    values = {key: [config.get(key) for config in configs] for key in _PREPROCESSING}
    return {key: of[0] for key, of in values.items() if of.count(None) == 0 and len({*of}) == 1}


def _download(tag: dict[str, Any]) -> Path:
    """Get the weights file of a tag, from the local cache or the hub."""
    import open_clip

    repository = "/".join(tag["hf_hub"].split("/")[:2])
    return check_reachable(repository, _WEIGHTS) or Path(open_clip.download_pretrained(tag))


def check_reachable(repository: str, file: str) -> Path | None:
    """Find a file of the hub in the local cache; if it is not there, ask whether the hub answers.

    Without a network this fails at once, where a download would try again and again.
    """
    import huggingface_hub

    cached = huggingface_hub.try_to_load_from_cache(repository, file)
    if isinstance(cached, str):
        return Path(cached)
    huggingface_hub.model_info(repository, timeout=_TIMEOUT)
    return None


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("constants.pkl") for name in archive.namelist())


def _state_sha256(model: "open_clip.CLIP") -> str:
    """The digest of a model's tensors, for weights that do not lie in a single file."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        flat = tensor.detach().cpu().contiguous().view(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _unavailable(choice: EncoderChoice, error: Exception) -> str:
    """Say why weights cannot be loaded, and where to get the file."""
    import open_clip

    reason = _reason(error)
    if choice.model.startswith(_HUB):
        return (
            f"cannot load {choice.model}: download the files of "
            f"https://huggingface.co/{choice.model.removeprefix(_HUB)} and take local-dir:PATH of "
            f"their folder as the model ({reason})."
        )
    tag = open_clip.get_pretrained_cfg(choice.model, choice.pretrained)
    if not tag:
        failure = f"cannot load {choice.model} with weights '{choice.pretrained}'"
        fault = _fault(Path(choice.pretrained))
        return f"{failure}: {fault}." if fault else f"{failure} ({reason})."
    suffix = _QUICK_GELU if tag.get("quick_gelu") else ""
    hub = str(tag.get("hf_hub", "")).rstrip("/")
    url = str(tag.get("url", ""))
    openai = f", or get {url} and take its path as those of {choice.model}" * ("openai" in url)
    return (
        f"cannot download the weights '{choice.pretrained}' of {choice.model}: get "
        f"{_WEIGHTS} from https://huggingface.co/{hub} and take its path as the weights of "
        f"{choice.model.removesuffix(suffix)}{suffix}{openai} ({reason})."
    )


def _has_weights(content: Any) -> bool:
    """Whether the content of a file is a mapping of names, or has one as its `state_dict`."""
    within = content.get("state_dict", content) if isinstance(content, Mapping) else None
    return isinstance(within, Mapping) and bool(within) and all(isinstance(n, str) for n in within)


def _fault(path: Path) -> str:
    """Why a file cannot be read as weights; empty if it can, or if there is no file."""
    if not path.is_file():
        return ""
    try:
        return "" if _has_weights(_content(path)) else _NO_CHECKPOINT
    except (OSError, MemoryError) as error:
        return f"the file cannot be read ({first_line(error)})"
    except pickle.UnpicklingError as error:
        has_objects = "Unsupported global" in str(error)
        return _HAS_OBJECTS if has_objects else _NO_CHECKPOINT
    except Exception:  # torch raises nearly anything for a file that is no checkpoint
        return _NO_CHECKPOINT


def _content(path: Path) -> object:
    """Read the content of a file of weights as open_clip does."""
    import torch
    from safetensors.torch import load_file

    if path.suffix == ".safetensors":
        return load_file(path)
    if _is_torchscript(path):
        return torch.jit.load(path, map_location="cpu").state_dict()  # type: ignore[no-untyped-call]
    return torch.load(path, map_location="cpu", weights_only=True)


def _reason(error: Exception) -> str:
    """One line of an error; if weights do not fit, torch's first line that says which."""
    first, _, rest = str(error).partition("\n")
    if "loading state_dict" in first and rest:
        return f"they do not fit: {textwrap.shorten(rest.splitlines()[0], 200, placeholder=' …')}"
    return f"{type(error).__name__}: {first_line(error)}"


def activation_note(choice: EncoderChoice) -> str | None:
    """A note on a file of weights if the model's known weights differ in their activation."""
    import open_clip

    path, name = Path(choice.pretrained), choice.model.removesuffix(_QUICK_GELU)
    quick = choice.model.endswith(_QUICK_GELU)
    twin = name if quick else name + _QUICK_GELU
    if not choice.is_file or twin not in open_clip.list_models() or _is_torchscript(path):
        return None
    tags = open_clip.list_pretrained_tags_by_model(name)
    other_tags = [
        tag for tag in tags
        if bool(open_clip.get_pretrained_cfg(name, tag).get("quick_gelu")) != quick
    ]  # fmt: skip
    if not other_tags:
        return None
    used, other = ("QuickGELU", "GELU") if quick else ("GELU", "QuickGELU")
    examples = ", ".join(other_tags[:3]) + (" …" if len(other_tags) > 3 else "")
    return (
        f"{path} does not tell which activation it was trained with: {choice.model} runs it with "
        f"{used}, but the weights {examples} want {other}; for these use the model {twin}."
    )


def weights_request(choice: EncoderChoice) -> dict[str, Any]:
    """The part of an encoder's identity that is known without loading it."""
    request: dict[str, Any] = {"model": choice.model, "precision": choice.precision}
    if choice.is_file:  # its digest identifies it, wherever it lies
        return {**request, "weights_sha256": sha256(Path(choice.pretrained))}
    digest = {"weights_sha256": sha256(_TINY_WEIGHTS)} if choice.model == TINY else {}
    return {**request, "pretrained": choice.pretrained, **digest}


def whereabouts(choice: EncoderChoice) -> str:
    """Say where the weights are, for the embedded encoder and the paper's encoders."""
    if choice.folder:
        return "not known"
    if choice.model == TINY:
        return "embedded"
    import huggingface_hub

    cached = huggingface_hub.try_to_load_from_cache(_REPOSITORIES[choice.model], _WEIGHTS)
    return "on disk" if isinstance(cached, str) else "to be downloaded"


@dataclass(frozen=True)
class Family:
    """A family of open_clip's models, with one of them as an example."""

    example: EncoderChoice
    lacks: tuple[str, ...] = ()  # live methods that refuse it
    sigmoid: bool = False  # trained as SigLIP: `--score match` uses its logit bias
    installs: str = ""  # the library that its tokenizer needs
    cites: tuple[str, ...] = ()  # keys of report/references.bib
    sign: str = "none"  # letters in the names of its models or of their weights


_TRANSFORMERS = "transformers"
# Families of open_clip's models that were tried with random weights, and what they lack.
FAMILIES: dict[str, Family] = {
    "MetaCLIP": Family(
        EncoderChoice("ViT-B-16-quickgelu", "metaclip_400m"), cites=("xu2024demystifying",),
        sign="metaclip",
    ),
    "DFN": Family(
        EncoderChoice("ViT-B-16-quickgelu", "dfn2b"), cites=("fang2024data",), sign="dfn"
    ),
    "EVA-CLIP": Family(
        EncoderChoice("EVA02-B-16", "merged2b_s8b_b131k"), cites=("sun2023eva",), sign="eva0"
    ),
    "MobileCLIP": Family(
        EncoderChoice("MobileCLIP-S1", "datacompdr"), cites=("vasu2024mobileclip",),
        sign="mobileclip",
    ),
    "MobileCLIP2": Family(
        EncoderChoice("MobileCLIP2-S0", "dfndr2b"), cites=("faghri2025mobileclip",),
        sign="mobileclip2",
    ),
    "Perception Encoder": Family(
        EncoderChoice("PE-Core-B-16", "meta"), cites=("bolya2025perception",), sign="pe-core"
    ),
    "ConvNeXt": Family(
        EncoderChoice("convnext_base_w", "laion2b_s13b_b82k"),
        cites=("cherti2023reproducible", "liu2022convnet"), sign="convnext",
    ),
    "CoCa": Family(
        EncoderChoice("coca_ViT-B-32", "laion2b_s13b_b90k"), cites=("yu2022coca",), sign="coca"
    ),
    "CLIPA": Family(
        EncoderChoice("ViT-L-14-CLIPA", "datacomp1b"), ("tpt",), installs=_TRANSFORMERS,
        cites=("li2023inverse",), sign="clipa",
    ),
    "SigLIP": Family(
        EncoderChoice("ViT-B-16-SigLIP", "webli"), ("tpt",), True, _TRANSFORMERS,
        cites=("zhai2023sigmoid",), sign="siglip",
    ),
    "SigLIP 2": Family(
        EncoderChoice("ViT-B-16-SigLIP2", "webli"), ("tpt",), True, _TRANSFORMERS,
        cites=("tschannen2025siglip",), sign="siglip2",
    ),
}  # fmt: skip


def family_of(name: str) -> str:
    """The family of an encoder, by its model's name or its features' folder; empty for CLIP."""
    signs = {
        family.sign: known for known, family in FAMILIES.items() if family.sign in name.lower()
    }
    return signs[max(signs, key=len)] if signs else ""


def encoder_cites(name: str) -> tuple[str, ...]:
    """The works to cite for an encoder, beside CLIP's: keys of report/references.bib."""
    if is_tiny(name):
        return ("zsntta",)
    return FAMILIES[family].cites if (family := family_of(name)) else ()

"""The sources of an encoder's weights: the package, the hub, a checkpoint, or random numbers.

OpenAI's weights were trained with QuickGELU. With plain GELU they load but give wrong features, so
the activation that the weights need is forced. A file that has only tensors does not say which one
that is. Then the model's name decides, and `activation_note` says so.
"""

import hashlib
import pickle
import sys
import zipfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from zsntta_cli.errors import EncoderError, first_line, near, short
from zsntta_cli.files import sha256
from zsntta_cli.settings import CHECKPOINT, RANDOM_WEIGHTS, TINY, EncoderChoice

if TYPE_CHECKING:
    import torch

_ASSETS = Path(__file__).parent / "assets"
_TINY_WEIGHTS = _ASSETS / "tiny.safetensors"
_PREPROCESSING = ("mean", "std", "interpolation", "resize_mode")  # keys that a tag may have
_CHECKPOINTS = (".pt", ".pth", ".bin", ".safetensors")  # endings of files of weights
_QUICK_GELU, _HUB = "-quickgelu", "hf-hub:"  # in open_clip's names of models
_SCALE = "logit_scale"  # the tensor that every CLIP has, whatever its towers
_NO_WEIGHTS = ("input_resolution", "context_length", "vocab_size")  # in OpenAI's archives
_TIMEOUT = 10  # seconds until the hub counts as out of reach
_RANDOM_SEED = 0  # of `--pretrained none`: the same random weights on every machine
ADAPTER = (
    "has a PEFT adapter instead of a complete model: write one with "
    "model.merge_and_unload().save_pretrained(FOLDER)"
)


class Weights(NamedTuple):
    """A model with its weights and tokenizer, and what its identity and its user should know."""

    model: Any  # of open_clip, or one with its names
    tokenize: Callable[..., "torch.Tensor"]  # prompts to tokens (C, L), of a requested length
    sha256: str  # of the weights' file, or of the tensors if there is no single file
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}


def load_weights(choice: EncoderChoice) -> Weights:
    """Load a model of open_clip, the embedded one, or a checkpoint of transformers.

    Raises:
        EncoderError: there is no such model, or its weights cannot be loaded or do not fit.
    """
    if choice.model.startswith(CHECKPOINT):
        from zsntta_cli.encoders.transformers import load_checkpoint

        return load_checkpoint(choice)
    import open_clip
    import torch

    name, precision = choice.model, choice.precision
    open_clip.add_model_config(_ASSETS / "tiny.json")
    if ":" not in name and open_clip.get_model_config(name) is None:
        clause = misspelt(name) or f"open_clip has no model '{name}'"
        raise EncoderError(f"{clause}: see open_clip.list_models().")
    try:
        if name.startswith(_HUB):
            in_cache(name.removeprefix(_HUB), "open_clip_config.json")
        tokenize = _tokenizer(name)  # first: weights are large, and useless without it
        if name == TINY:
            model = open_clip.create_model(name, precision=precision)
            _load_tiny(model)
            return Weights(model, tokenize, sha256(_TINY_WEIGHTS))
        if choice.pretrained == RANDOM_WEIGHTS:
            with torch.random.fork_rng():
                torch.manual_seed(_RANDOM_SEED)
                model = open_clip.create_model(name, precision=precision)
            warning = "warning: these are random weights: features are meaningless."
            return Weights(model, tokenize, _state_sha256(model), (warning,))
        if ":" in name:
            model = open_clip.create_model(name, precision=precision, require_pretrained=True)
            return Weights(model, tokenize, _state_sha256(model))
        return _of_file(choice, tokenize)
    except EncoderError:
        raise
    except Exception as error:  # open_clip and its many sources raise errors of any kind
        raise EncoderError(_unavailable(choice, error)) from error


def _tokenizer(model: str) -> Callable[..., "torch.Tensor"]:
    """The tokenizer of a model; SigLIP's comes from the hub and needs transformers."""
    import open_clip

    config = {} if ":" in model else open_clip.get_model_config(model)
    source = config.get("text_cfg", {}).get("hf_tokenizer_name", "")
    try:
        if source:
            import transformers  # noqa: F401 # without it, a request to the hub is in vain

            in_cache(source, "tokenizer_config.json")
        tokenizer: Callable[..., torch.Tensor] = open_clip.get_tokenizer(model)
        return tokenizer
    except Exception as error:  # transformers and the hub raise errors of any kind
        way = f"download https://huggingface.co/{source} and type --model local-dir:FOLDER"
        if isinstance(error, ImportError):
            way = "type pip install 'zsntta[transformers]'"
        elif not source:
            raise
        reason = first_line(error)
        raise EncoderError(f"cannot read the tokenizer of {model} ({reason}): {way}.") from error


def _load_tiny(model: Any) -> None:
    """Load the embedded weights, which lack the embeddings of words that were never trained."""
    import torch
    from safetensors.torch import load_file

    state = load_file(_TINY_WEIGHTS)
    words = torch.zeros(model.token_embedding.weight.shape)
    words[state.pop("token_embedding.ids")] = state.pop("token_embedding.rows").float()
    model.load_state_dict({**state, "token_embedding.weight": words})


def _of_file(choice: EncoderChoice, tokenize: Callable[..., "torch.Tensor"]) -> Weights:
    """Load a model with the weights of a tag or a checkpoint, and the digest of their file."""
    import open_clip
    import torch

    tag = {} if choice.file else _tag(choice)
    path = _download(tag) if tag else Path(choice.pretrained)
    is_archive = False  # TorchScript, which only OpenAI's own files are
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            is_archive = any(Path(name).name == "constants.pkl" for name in archive.namelist())
    # Of a file, the preprocessing that all tags of its model share (SigLIP's).
    names = open_clip.list_pretrained_tags_by_model(choice.model)
    tags = [tag] if tag else [open_clip.get_pretrained_cfg(choice.model, name) for name in names]
    values = {key: {of.get(key) for of in tags} for key in _PREPROCESSING}
    shared = {key: of.pop() for key, of in values.items() if len(of) == 1 and None not in of}
    model = open_clip.create_model(
        choice.model, precision=choice.precision, force_preprocess_cfg=shared,
        force_quick_gelu=is_archive or bool(tag.get("quick_gelu")),
    )  # fmt: skip
    if is_archive:
        script = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
        state = script.state_dict()
        model.load_state_dict({key: state[key] for key in state if key not in _NO_WEIGHTS})
        return Weights(model, tokenize, sha256(path))
    notes = activation_note(choice), _load_into(model, path)
    return Weights(model, tokenize, sha256(path), tuple(filter(None, notes)))


def _load_into(model: Any, path: Path) -> str:
    """Load a file of weights; return a note if they are wrapped as training scripts wrap them."""
    import open_clip
    import torch

    try:
        open_clip.load_checkpoint(model, str(path))
        return ""
    except Exception:  # its ending does not fit, it is wrapped, or it has no weights of this model
        if not (models := _models_in(path)):
            raise
    if len(models) > 1:
        raise EncoderError(f"{path} has several models ({', '.join(models)}): save only one.")
    [(place, state)] = models.items()
    with TemporaryDirectory() as folder:  # open_clip takes a path, and converts older models
        torch.save(state, copy := Path(folder, "state.pt"))
        open_clip.load_checkpoint(model, str(copy))
    return f"note: {path}: the weights under {place} are used." if place != "*" else ""


def _models_in(path: Path) -> "dict[str, dict[str, torch.Tensor]]":
    """The tensors of each CLIP in a file, by wrapper and prefix, whatever the file's ending."""
    import torch
    from safetensors.torch import load_file

    with path.open("rb") as file:
        is_safetensors = file.read(9)[8:] == b"{"  # after the length of a header in JSON
        file.seek(0)
        content = load_file(path) if is_safetensors else torch.load(file, "cpu", weights_only=True)
    states = {"": content} if isinstance(content, dict) else {}
    states |= {
        f"{k}: ": state for k, state in states.get("", {}).items() if isinstance(state, dict)
    }
    models = {}
    for wrapper, state in states.items():
        tensors = {str(key): tensor for key, tensor in state.items()}
        if any(".lora_" in key for key in tensors):
            raise EncoderError(f"{path} {ADAPTER}, and type --model hf:./FOLDER.")
        for prefix in (key.removesuffix(_SCALE) for key in tensors if key.endswith(_SCALE)):
            models[f"{wrapper}{prefix}*"] = {
                key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)
            }
    return models


def _state_sha256(model: Any) -> str:
    """The digest of a model's tensors, for weights that are not in a single file."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        flat = tensor.detach().cpu().contiguous().view(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def activation_note(choice: EncoderChoice) -> str:
    """A note on a file of weights if open_clip has its model with either activation."""
    import open_clip

    name = choice.model.removesuffix(_QUICK_GELU)
    is_quick = choice.model != name
    twin = name if is_quick else name + _QUICK_GELU
    if not choice.file or twin not in open_clip.list_models():
        return ""
    used, other = ("QuickGELU", "GELU") if is_quick else ("GELU", "QuickGELU, as OpenAI's")
    return (
        f"{choice.pretrained} does not say which activation it was trained with: {choice.model} "
        f"uses {used}. For weights trained with {other}, use the model {twin}."
    )


# --- Tags, whose files are on the hub ---


def _tag(choice: EncoderChoice) -> dict[str, Any]:
    """What open_clip knows of a tag: EncoderError if there is no such model or tag."""
    import open_clip

    model, name = choice.model, choice.pretrained
    tag: dict[str, Any] = open_clip.get_pretrained_cfg(model, name)
    if not tag:
        if clause := misspelt(model):
            raise EncoderError(f"{clause}.")
        tags = open_clip.list_pretrained_tags_by_model(model)
        question = f"'{name}' is neither a file nor weights of {model}{near(name, tags)}"
        raise EncoderError(f"{question}, which has {', '.join(tags) or 'none'}.")
    return tag


def _place(tag: Mapping[str, Any]) -> tuple[str, str]:
    """The repository of the hub that has a tag's weights, and their file."""
    owner, name, *file = tag["hf_hub"].strip("/").split("/")
    return f"{owner}/{name}", (file or ["open_clip_model.safetensors"])[0]


def _download(tag: Mapping[str, Any]) -> Path:
    """Get the weights file of a tag, from the local cache or the hub."""
    import open_clip

    return in_cache(*_place(tag)) or Path(open_clip.download_pretrained(tag))


def in_cache(repository: str, file: str) -> Path | None:
    """Find a file of the hub in the local cache; if it is missing, check that the hub answers.

    Without a network this fails at once, while a download would retry repeatedly.
    """
    import huggingface_hub

    cached = huggingface_hub.try_to_load_from_cache(repository, file)
    if isinstance(cached, str):
        return Path(cached)
    huggingface_hub.model_info(repository, timeout=_TIMEOUT)
    return None


def fetch(choice: EncoderChoice) -> Path:
    """Download the file of a tag's weights to the hub's cache, if it is not there.

    Raises:
        EncoderError: open_clip has no such model or tag, or the file cannot be downloaded.
    """
    check_named(choice)
    tag = _tag(choice)
    try:
        return _download(tag)
    except Exception as error:  # the hub raises errors of any kind
        raise EncoderError(_unavailable(choice, error)) from error


def _unavailable(choice: EncoderChoice, error: Exception) -> str:
    """Say why weights cannot be loaded, and where to get the file."""
    import open_clip

    model, name = choice.model, choice.pretrained
    reason = f"{type(error).__name__}: {first_line(error)}"
    first, _, rest = str(error).partition("\n")
    if "loading state_dict" in first and rest:  # torch names the tensors from its second line on
        reason = f"they do not fit: {short(rest.splitlines()[0].strip(), 200)}"
    elif isinstance(error, pickle.UnpicklingError):  # torch's advice is to run the pickle
        reason = "it has other content than tensors: save only the model's state_dict()"
    if model.startswith(_HUB):
        files = f"the files of https://huggingface.co/{model.removeprefix(_HUB)}"
        way = f"download {files} and type --model local-dir:FOLDER"
        return f"cannot load {model}: {way} ({reason})."
    if tag := open_clip.get_pretrained_cfg(model, name):
        way = _by_hand(model, tag)
        return f"cannot download the weights '{name}' of {model}: {way} ({reason})."
    weights = "" if ":" in model else f" with weights '{name}'"
    return f"cannot load {model}{weights} ({reason})."


def _by_hand(model: str, tag: Mapping[str, Any]) -> str:
    """How to get a tag's weights in a browser, and how to name the file then."""
    (repository, file), url = _place(tag), str(tag.get("url", ""))
    right = model.removesuffix(_QUICK_GELU) + _QUICK_GELU * bool(tag.get("quick_gelu"))
    way = f"download {file} from https://huggingface.co/{repository}"
    openai = f", or {url} and type --model {model} --pretrained PATH" * ("openai" in url)
    return f"{way} and type --model {right} --pretrained PATH{openai}"


def foreseen(choice: EncoderChoice) -> str:
    """One line that says whether a tag's weights are in the hub's cache, without the network.

    It is empty for a model that has its own weights, for a file and for random weights.

    Raises:
        EncoderError: open_clip has no such model or tag.
    """
    is_tag = not choice.has_own_weights and not choice.file and ":" not in choice.model
    if not is_tag or choice.pretrained == RANDOM_WEIGHTS:
        return ""
    import huggingface_hub

    tag, named = _tag(choice), f"weights '{choice.pretrained}' of {choice.model}"
    if isinstance(huggingface_hub.try_to_load_from_cache(*_place(tag)), str):
        return f"{named}: cached"
    by_hand = _by_hand(choice.model, tag)
    return f"{named}: will be downloaded; for a machine without a network, {by_hand}"


# --- Before anything is loaded ---


def misspelt(model: str) -> str:
    """A clause that names a model of a similar name if there is no such model; otherwise empty."""
    if ":" in model:
        return ""
    if open_clip := sys.modules.get("open_clip"):
        models = [TINY, *open_clip.list_models()]
    else:  # names are read from the package's files, as importing it takes seconds
        package = find_spec("open_clip")
        assert package
        assert package.origin
        configs = Path(package.origin).with_name("model_configs").glob("*.json")
        models = [TINY, *sorted(config.stem for config in configs)]
    meant = "" if model.replace("/", "-") in models else near(model, models)
    return f"open_clip has no model '{model}'{meant}" if meant else ""


def check_named(choice: EncoderChoice) -> None:
    """Refuse a misspelt model and a path that is not a file, before anything is read.

    Raises:
        EncoderError: open_clip has only a model of a similar name; or the weights look like a path,
            with a folder or a checkpoint's ending, but are not a file.
    """
    if choice.has_own_weights:
        return
    if clause := misspelt(choice.model):
        raise EncoderError(f"{clause}.")
    path = Path(choice.pretrained)
    is_path = len(path.parts) > 1 or path.suffix in _CHECKPOINTS
    if is_path and not choice.file:
        raise EncoderError(f"pretrained is '{choice.pretrained}', which is not a file.")


def weights_request(choice: EncoderChoice) -> dict[str, Any]:
    """The part of an encoder's identity that is known without loading it."""
    request: dict[str, Any] = {"model": choice.model, "precision": choice.precision}
    if choice.file:  # its digest identifies it, wherever it is
        return {**request, "weights_sha256": sha256(Path(choice.pretrained))}
    digest = {"weights_sha256": sha256(_TINY_WEIGHTS)} if choice.model == TINY else {}
    return {**request, "pretrained": choice.pretrained, **digest}

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
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from zsntta_cli.errors import EncoderError, first_line, near
from zsntta_cli.files import sha256
from zsntta_cli.settings import RANDOM_WEIGHTS, TINY, EncoderChoice

if TYPE_CHECKING:
    import open_clip
    import torch

_ASSETS = Path(__file__).parent / "assets"
_TINY_WEIGHTS = _ASSETS / "tiny.safetensors"
_WEIGHTS, _CONFIG = "open_clip_model.safetensors", "open_clip_config.json"
_PREPROCESSING = ("mean", "std", "interpolation", "resize_mode")  # keys that a tag may have
_CHECKPOINTS = (".pt", ".pth", ".bin", ".safetensors")  # endings of files of weights
_QUICK_GELU, _HUB = "-quickgelu", "hf-hub:"  # in open_clip's names of models
_SCALE = "logit_scale"  # the one tensor by which each CLIP is known, whatever its towers
_TIMEOUT = 10  # seconds until the hub counts as out of reach
_RANDOM_SEED = 0  # of `--pretrained none`: the same random weights on every machine


class Weights(NamedTuple):
    """A model with its weights, and what its identity and its user should know of them."""

    model: Any  # of open_clip, or one with its names
    sha256: str  # of the weights' file, or of the tensors if there is no single file
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}


def _load_tiny(precision: str) -> Weights:
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
    return Weights(model, hashlib.sha256(content).hexdigest())


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
    if package is None or not package.origin:
        return [TINY]
    files = Path(package.origin).with_name("model_configs").glob("*.json")
    return [TINY, *sorted(file.stem for file in files)]


def load_weights(choice: EncoderChoice) -> Weights:
    """Load a model of open_clip, or the embedded one.

    Raises:
        EncoderError: there is no such model, or its weights cannot be loaded or do not fit.
    """
    try:
        return _load_tiny(choice.precision) if choice.model == TINY else _load_open_clip(choice)
    except EncoderError:
        raise
    except Exception as error:  # open_clip raises whatever its many sources raise
        raise EncoderError(_unavailable(choice, error)) from error


def _load_open_clip(choice: EncoderChoice) -> Weights:
    """Load hf-hub:… or local-dir:…, which are open_clip's forms of names, or a known model."""
    import open_clip
    import torch

    name = choice.model
    if ":" not in name and open_clip.get_model_config(name) is None:
        raise EncoderError(
            f"open_clip has no model '{name}'{near(name, _models())}: see open_clip.list_models()."
        )
    if choice.pretrained == RANDOM_WEIGHTS:
        with torch.random.fork_rng():
            torch.manual_seed(_RANDOM_SEED)
            model = open_clip.create_model(name, precision=choice.precision)
        warning = "warning: these are random weights: features mean nothing."
        return Weights(model, _state_sha256(model), (warning,))
    if ":" in name:
        if name.startswith(_HUB):
            check_reachable(name.removeprefix(_HUB), _CONFIG)
        model = open_clip.create_model(name, precision=choice.precision, require_pretrained=True)
        return Weights(model, _state_sha256(model))
    return _from_file(choice)


def _from_file(choice: EncoderChoice) -> Weights:
    """Load a model with the weights of a tag or a checkpoint, and the digest of their file."""
    import open_clip
    import torch

    tag = open_clip.get_pretrained_cfg(choice.model, choice.pretrained)  # of a file it is empty
    path = _download(tag) if tag else Path(choice.pretrained)
    if not path.is_file():
        tags = open_clip.list_pretrained_tags_by_model(choice.model)
        raise EncoderError(
            f"'{choice.pretrained}' is no file and no weights of {choice.model}"
            f"{near(choice.pretrained, tags)} (known: {', '.join(tags) or 'none'})."
        )
    archive = _is_torchscript(path)  # only OpenAI's own files are TorchScript
    model = open_clip.create_model(
        choice.model,
        precision=choice.precision,
        force_quick_gelu=archive or bool(tag.get("quick_gelu")),
        force_preprocess_cfg=_preprocessing(choice.model, tag),
    )
    notes = [activation_note(choice)]
    if archive:
        state = torch.jit.load(path, map_location="cpu").state_dict()  # type: ignore[no-untyped-call]
        names = ("input_resolution", "context_length", "vocab_size")
        model.load_state_dict({k: v for k, v in state.items() if k not in names})
    else:
        notes.append(_load_into(model, path))
    return Weights(model, sha256(path), tuple(filter(None, notes)))


# PEFT keeps what was trained apart from the model that it changes.
ADAPTER = (
    "has an adapter of PEFT and no whole model: write one by "
    "model.merge_and_unload().save_pretrained(FOLDER)"
)


def _load_into(model: "open_clip.CLIP", path: Path) -> str:
    """Load a file of weights; return a note if they are wrapped as training scripts wrap them."""
    import open_clip
    import torch

    try:
        open_clip.load_checkpoint(model, str(path))
        return ""
    except Exception:  # it is of another form than its name says, is wrapped, or is no checkpoint
        found = _models_in(path)
        if not found:
            raise
    if len(found) > 1:
        raise EncoderError(f"{path} has several models ({', '.join(found)}): save one alone.")
    [(place, state)] = found.items()
    with TemporaryDirectory() as folder:  # open_clip takes a path, and knows its models' old forms
        torch.save(state, copy := Path(folder, "state.pt"))
        open_clip.load_checkpoint(model, str(copy))
    return f"note: {path}: the weights that it has as {place} are read." if place != "*" else ""


def _models_in(path: Path) -> "dict[str, dict[str, torch.Tensor]]":
    """The tensors of each CLIP in a checkpoint, by the wrapper and the prefix of their names."""
    import torch
    from safetensors.torch import load_file

    with path.open("rb") as file:  # torch looks at a path's ending, too
        is_safetensors = file.read(9)[8:] == b"{"  # after the length of a header in JSON
        file.seek(0)
        content = load_file(path) if is_safetensors else torch.load(file, "cpu", weights_only=True)
    states = {"": content} if isinstance(content, dict) else {}
    states |= {f"{key}: ": state for key, state in content.items() if isinstance(state, dict)}
    if any(".lora_" in str(key) for state in states.values() for key in state):
        raise EncoderError(f"{path} {ADAPTER}, then name that folder as --model hf:./FOLDER.")
    return {
        f"{wrapper}{key[: -len(_SCALE)]}*": {
            other.removeprefix(key[: -len(_SCALE)]): tensor
            for other, tensor in state.items()
            if other.startswith(key[: -len(_SCALE)])
        }
        for wrapper, state in states.items()
        for key in map(str, state)
        if key.endswith(_SCALE)
    }


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

    return check_reachable(_repository(tag), _WEIGHTS) or Path(open_clip.download_pretrained(tag))


def _repository(tag: dict[str, Any]) -> str:
    """The repository of the hub that has a tag's weights."""
    return "/".join(tag["hf_hub"].split("/")[:2])


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

    first, _, rest = str(error).partition("\n")
    reason = f"{type(error).__name__}: {first_line(error)}"
    if "loading state_dict" in first and rest:  # torch's first line that says which
        which = textwrap.shorten(rest.splitlines()[0], 200, placeholder=" …")
        reason = f"they do not fit: {which}"
    elif isinstance(error, pickle.UnpicklingError):  # torch advises to unpickle what it holds
        reason = "it holds more than tensors, or none: save the model's state_dict() alone"
    if choice.model.startswith(_HUB):
        return (
            f"cannot load {choice.model}: download the files of "
            f"https://huggingface.co/{choice.model.removeprefix(_HUB)} and take local-dir:PATH of "
            f"their folder as the model ({reason})."
        )
    tag = open_clip.get_pretrained_cfg(choice.model, choice.pretrained)
    if not tag:
        weights = "" if ":" in choice.model else f" with weights '{choice.pretrained}'"
        return f"cannot load {choice.model}{weights} ({reason})."
    return (
        f"cannot download the weights '{choice.pretrained}' of {choice.model}: "
        f"{_by_hand(choice, tag)} ({reason})."
    )


def _by_hand(choice: EncoderChoice, tag: dict[str, Any]) -> str:
    """Where a tag's file is to be had, and the options that name it."""
    suffix = _QUICK_GELU if tag.get("quick_gelu") else ""
    hub = str(tag.get("hf_hub", "")).rstrip("/")
    model = f"{choice.model.removesuffix(suffix)}{suffix}"
    url = str(tag.get("url", ""))
    openai = f", or {url} and type --model {choice.model} --pretrained PATH" * ("openai" in url)
    return (
        f"get {_WEIGHTS} from https://huggingface.co/{hub} and type --model {model} "
        f"--pretrained PATH{openai}"
    )


def fetch(choice: EncoderChoice) -> Path:
    """Fetch the file of a tag's weights into the hub's cache, if it is not there.

    Raises:
        EncoderError: open_clip has no such model or tag, or the file cannot be had.
    """
    import open_clip

    tag = open_clip.get_pretrained_cfg(choice.model, choice.pretrained)
    if not tag:
        tags = open_clip.list_pretrained_tags_by_model(choice.model)
        clause = misspelt(choice.model) or (
            f"{choice.model} has no weights '{choice.pretrained}'{near(choice.pretrained, tags)}: "
            f"there {'is' if len(tags) == 1 else 'are'} {', '.join(tags) or 'none'}"
        )
        raise EncoderError(f"{clause}.")
    try:
        return _download(tag)
    except Exception as error:  # the hub raises whatever its many layers raise
        raise EncoderError(_unavailable(choice, error)) from error


def check_named(choice: EncoderChoice) -> None:
    """Refuse a misspelt model and a path that is no file, before anything is fetched or read.

    Raises:
        EncoderError: open_clip has no such model but a similar one; or the weights look like a
            path, have a folder or a checkpoint's ending, and are no file.
    """
    if choice.has_own_weights:
        return
    if clause := misspelt(choice.model):
        raise EncoderError(f"{clause}.")
    path = Path(choice.pretrained)
    is_path = len(path.parts) > 1 or path.suffix in _CHECKPOINTS
    if is_path and not choice.is_file:
        raise EncoderError(f"pretrained is '{choice.pretrained}', which is no file.")


def foreseen(choice: EncoderChoice) -> str:
    """One line on where an encoder's weights are; nothing is fetched, and no network is asked.

    It is empty of a model that brings its weights, and of random ones.

    Raises:
        EncoderError: a path that is no file.
    """
    check_named(choice)
    if choice.has_own_weights or choice.pretrained == RANDOM_WEIGHTS or ":" in choice.model:
        return ""
    named = f"weights '{choice.pretrained}' of {choice.model}"
    if choice.is_file:
        return f"{named}: there"
    import huggingface_hub
    import open_clip

    tag = open_clip.get_pretrained_cfg(choice.model, choice.pretrained)
    if not tag:
        return f"{named}: open_clip has none of this name"
    cached = huggingface_hub.try_to_load_from_cache(_repository(tag), _WEIGHTS)
    if isinstance(cached, str):
        return f"{named}: there"
    return f"{named}: to be fetched; for a machine without a network {_by_hand(choice, tag)}"


def activation_note(choice: EncoderChoice) -> str | None:
    """A note on a file of weights, where open_clip has its model with either activation."""
    import open_clip

    name, path = choice.model.removesuffix(_QUICK_GELU), Path(choice.pretrained)
    is_quick = choice.model != name
    twin = name if is_quick else name + _QUICK_GELU
    if not choice.is_file or twin not in open_clip.list_models() or _is_torchscript(path):
        return None
    used, other = ("QuickGELU", "GELU") if is_quick else ("GELU", "QuickGELU, as OpenAI's")
    return (
        f"{path} does not tell which activation it was trained with: {choice.model} runs it with "
        f"{used}. For weights that were trained with {other}, use the model {twin}."
    )


def weights_request(choice: EncoderChoice) -> dict[str, Any]:
    """The part of an encoder's identity that is known without loading it."""
    request: dict[str, Any] = {"model": choice.model, "precision": choice.precision}
    if choice.is_file:  # its digest identifies it, wherever it lies
        return {**request, "weights_sha256": sha256(Path(choice.pretrained))}
    digest = {"weights_sha256": sha256(_TINY_WEIGHTS)} if choice.model == TINY else {}
    return {**request, "pretrained": choice.pretrained, **digest}

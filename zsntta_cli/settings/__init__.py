"""Settings of the encoder, the stream and the threshold, and the only place for their defaults.

options.py has the declaration of a setting, and prompts.py has prompts and word lists.
"""

import dataclasses
import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from zsntta_cli.errors import SettingsError, short, unknown
from zsntta_cli.settings.options import Range, Settings, amount, choice, count, option, option_name

TINY, OPENAI = "tiny", "openai"
IMPORTED = "imported"  # replaces the weights' tag of an encoder that is only known by its name
RANDOM_WEIGHTS = "none"
FP32, AMP = "fp32", "amp"  # the latter: float32 weights under autocast to float16
PRECISIONS = (FP32, "fp16", "bf16", AMP)
LOCAL, RAY = ENGINES = ("local", "ray")
FLOAT16 = "float16"
STORES = (FLOAT16, "float32")  # types of image features in files
FEATURES, DATA = Path("features"), Path("data")  # where feature files and data sets are
_EMBEDDED, _CHECKPOINT = "embedded", "transformers"  # the source of weights without a tag
CHECKPOINT = "hf:"  # a model of transformers: hf:ORG/NAME, or hf:/FOLDER, hf:./FOLDER, hf:~/FOLDER


def hub_folder(model: str) -> Path | None:
    """The folder of a model of transformers, if its name is the path of one."""
    name = model.removeprefix(CHECKPOINT)
    is_path = name != model and name.startswith(("/", ".", "~"))
    return Path(name).expanduser() if is_path else None


@dataclass(frozen=True)
class EncoderChoice(Settings):
    """An encoder, by open_clip's names; the default is the paper's main one (Sec. 5.1)."""

    panel = "Features"

    model: str = option("ViT-B-16", "open_clip model name; 'tiny' is the embedded encoder.")
    pretrained: str = option(
        OPENAI, "Weights: open_clip tag, path to a checkpoint, or 'none' (random)."
    )
    precision: str = choice(
        "Precision of the encoder. amp is the released code's autocast.", *PRECISIONS
    )
    folder: str | None = option(  # of features that an unknown encoder made elsewhere
        None, "Folder name of the encoder's features.", name="encoder", shown="the model's, or all"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        source = _CHECKPOINT * self.model.startswith(CHECKPOINT) or _EMBEDDED * (self.model == TINY)
        if source and self.pretrained not in (OPENAI, source):
            raise SettingsError(
                f"pretrained is '{self.pretrained}', but {self.model} has its own weights: omit it."
            )
        object.__setattr__(self, "pretrained", source or self.pretrained)

    @property
    def has_own_weights(self) -> bool:
        """Whether the model has its own weights, so that `pretrained` has no effect."""
        return self.pretrained in (_EMBEDDED, _CHECKPOINT)

    @property
    def slug(self) -> str:
        """The folder name of this encoder's features, without the digits of a file's digest."""
        if self.folder:
            return self.folder
        weights = Path(self.pretrained).stem if self.file else self.pretrained
        complete = self.has_own_weights or ":" in self.model  # names its weights already
        folder = hub_folder(self.model)
        model = f"{CHECKPOINT}{folder.name}" if folder else self.model
        parts = [model] if complete else [model, weights]
        parts += [self.precision] if self.precision != FP32 else []
        return re.sub(r"[^\w.-]+", "-", "-".join(parts))

    @property
    def options(self) -> str:
        """The command-line options that select it; empty for the default encoder."""
        words = []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if value != f.default and not (f.name == "pretrained" and self.has_own_weights):
                words.append(f"--{option_name(f)} {quote(value)}")
        return " ".join(words)

    @property
    def file(self) -> str:
        """The path in `pretrained` if it is a file; empty for a tag."""
        return self.pretrained if Path(self.pretrained).is_file() else ""


# Sec. 5.1 and the table of backbones.
PAPER_ENCODERS = (EncoderChoice(), EncoderChoice("RN50"), EncoderChoice("ViT-L-14"))


@functools.cache
def known_folders() -> Mapping[str, EncoderChoice]:
    """The paper's encoders and the embedded one, in any precision, by their features' folders."""
    folders = dict[str, EncoderChoice]()
    for encoder, precision in product((EncoderChoice(TINY), *PAPER_ENCODERS), PRECISIONS):
        choice = replace(encoder, precision=precision)
        folders[choice.slug] = choice
    return folders


def is_tiny(folder: str) -> bool:
    """Whether a folder has the embedded encoder's features, in any precision."""
    return folder == TINY or folder in [f"{TINY}-{precision}" for precision in PRECISIONS]


@dataclass(frozen=True, kw_only=True)
class MachineSettings(Settings):
    """The device that runs an encoder, and the threads that read images for it."""

    panel = "How it runs"

    device: str = option("auto", "Device: auto, cpu, cuda, cuda:1 …")
    workers: int = count(  # for each device
        min(os.cpu_count() or 1, 16), "Number of threads that read images."
    )


@dataclass(frozen=True)
class ExtractSettings(MachineSettings):
    """How and where images are encoded; only `batch_size` and `store` can change features."""

    batch_size: int = count(128, "Images per encoder pass; it affects the last bits of features.")
    skip_broken: bool = option(False, "Skip unreadable images.")
    overwrite: bool = option(False, "Replace files made from other images.")
    store: str = choice(
        "Data type of features in the file. float32 takes twice the space.", *STORES
    )
    features_dir: Path = option(FEATURES, "Folder of the feature files.")  # noqa: RUF009


@dataclass(frozen=True, kw_only=True)
class ImportSettings(Settings):
    """The files of features made elsewhere, and what is known of their encoder."""

    panel = "What to import"

    features: Path = option(..., "File of features: .npz, .npy, .pt or .safetensors.")  # noqa: RUF009
    labels: Path | None = option(None, "File of labels, in one of these formats.")  # noqa: RUF009
    class_names: Path | None = option(None, "File of class names: .npz or .npy with strings.")  # noqa: RUF009
    text: Path | None = option(None, "File of the text features of the classes.")  # noqa: RUF009
    encoder: str = option(
        IMPORTED, "Name for the encoder. All sets under one name must come from one encoder."
    )
    logit_scale: float | None = option(
        None, "Logit scale of the encoder, exponentiated.", shown="the file's, or 100"
    )
    logit_bias: float | None = option(None, "Logit bias of a sigmoid model (SigLIP), about -13.")
    normalized: bool | None = option(None, "Whether features have norm 1.", shown="detected")
    prompt: str | None = option(None, "Template of the text features.", shown="the set's")
    overwrite: bool = option(False, "Overwrite an existing file.")


@dataclass(frozen=True)
class LiveSettings(MachineSettings):
    """Where live methods find images and the encoder; these settings change no decision."""

    panel = "Live methods"

    data_root: Path = option(DATA, "Folder of the data sets.")  # noqa: RUF009
    datasets: tuple[str, ...] = option((), "Path to the images of a set.", name="dataset")
    weights: str = ""  # the path of the file of weights, if it has moved

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_root", Path(self.data_root))
        object.__setattr__(self, "datasets", tuple(self.datasets or ()))
        super().__post_init__()


# Pillow warns of an image above the first size, as it may fill the memory; above the second one it
# refuses the image.
MOST_MEGAPIXELS = 179
NOISE_TYPES = ("gaussian", "uniform", "salt-and-pepper", "poisson")
NO_NOISE = "none"
LARGEST_QUEUE = 1 << 20
MCM, MATCH = SCORES = ("mcm", "match")


# The OOD share of a stream, or `natural`, which takes every image of both sets once.
Ratio = float | str
NATURAL = "natural"
_SHARE = r"\d+(\.\d*)?(e-?\d+)?|\.\d+(e-?\d+)?"


def parse_ratio(text: str) -> Ratio:
    """Parse a ratio.

    Raises:
        SettingsError: the text is not a ratio.
    """
    if text != NATURAL and not re.fullmatch(_SHARE, text):
        raise SettingsError(
            f"ratio is {short(ascii(text))}, must be a number in [0, 1) or {NATURAL}."
        )
    return text if text == NATURAL else float(text)


def ood_share(ratio: Ratio) -> float:
    """The OOD share of a ratio; nan if it depends on the sets, as for `natural`."""
    return float("nan") if isinstance(ratio, str) else ratio


def ratio_text(ratio: Ratio) -> str:
    """A ratio as messages show it and as it can be typed."""
    return ratio if isinstance(ratio, str) else f"{ratio:.4g}"


# The orders of a stream by their names; some have a number after a colon, such as the example.
PLAIN = ("shuffled", "class", "burst", "late", "first")
DIRICHLET, PARTS = "dirichlet", "parts"
_NUMBERS = {
    DIRICHLET: (r"(\d+(\.\d*)?|\.\d+)(e-?\d+)?|inf", "0.1"), PARTS: (r"[1-9]\d{0,5}", "15"),
}  # fmt: skip
_LARGEST_NUMBER = 1e6  # beside `inf`
ORDERS = (*PLAIN, f"{DIRICHLET}:G", f"{PARTS}:N")  # the names in help texts


def parse_order(text: str) -> tuple[str, tuple[float, ...]]:
    """Parse the name of an order: the name, and its concentration or number of parts, if any.

    Raises:
        SettingsError: there is no such order.
        SettingsError: the order does not take this number.
    """
    name, colon, number = text.partition(":")
    if name in PLAIN and not colon:
        return name, ()
    if name not in _NUMBERS:
        raise unknown("order", text, ORDERS)
    form, example = _NUMBERS[name]
    if re.fullmatch(form, number) and (number == "inf" or 0 < float(number) <= _LARGEST_NUMBER):
        return name, (float(number),)
    raise SettingsError(f"order is {short(ascii(text))}, must look like {name}:{example}.")


class StreamSizes(NamedTuple):
    """The numbers of samples in a stream."""

    wanted: int  # OOD samples that give the noise ratio, or that a list names
    ood: int  # those that take part: fewer where a small set caps the ratio
    tests: int  # ID and OOD samples, to the limit
    injected: int  # noise images beside them


@dataclass(frozen=True)
class StreamSettings(Settings):
    """The items of a stream and their order (see simulation/stream.py)."""

    panel = "Stream"

    # The paper: 0, 0.25, 0.5, 0.75; seeds 0 … 4; M = 8 (Sec. 5.1); noise images of Sec. 4.2.
    ratio: float | str = option(
        0.5, "OOD share of the stream, in [0, 1), or 'natural' for all images of both sets.",
        within=Range(least=0, below=1), checked_by=parse_ratio,
    )  # fmt: skip
    seed: int = amount(0, "Seed of the stream's order and of a random detector.")
    order: str = option(  # the paper's is shuffled; real ones may be sorted, bursty, clean at first
        "shuffled", "Order of the stream (docs/streams.md).", choices=ORDERS,
        checked_by=parse_order,
    )  # fmt: skip
    noise: str = option(
        NO_NOISE, "Type of the injected noise images.", choices=(*NOISE_TYPES, NO_NOISE),
        shown="gaussian for adand, none for others",
    )  # fmt: skip
    noise_every: int = count(8, "M: one injected noise image after every M samples.")
    placement: str = choice(
        "Where injected noise goes: after every M-th sample, or anywhere.", "periodic", "shuffled"
    )
    ood_fill: str = choice(
        "If there are too few OOD images, repeat them or cap the ratio.", "repeat", "cap"
    )
    ood_items: str = option(
        "", "Folder with lists of the OOD images to use: ODDS/ID_OOD.txt (docs/streams.md)."
    )
    rounded_odds: bool = option(False, "Round the OOD:ID odds to two decimals: 0.33, not 1/3.")
    swapped_names: bool = option(  # as in the released code; it concerns no other set
        False,
        "Swap the names of Food-101's cheesecake and cheese plate, as the released code does.",
    )
    limit: int | None = count(None, "Use only this many samples, from the start of the stream.")

    def __post_init__(self) -> None:
        if isinstance(self.ratio, str):
            object.__setattr__(self, "ratio", parse_ratio(self.ratio))
        super().__post_init__()

    def sizes(self, n_id: int, n_ood: int, listed: int | None = None) -> StreamSizes:
        """The sizes of the stream over n_id ID and n_ood OOD images.

        `listed` is the number of OOD images, where they are not drawn.
        """
        if listed is not None:
            wanted = ood = listed
        else:
            share = ood_share(self.ratio)
            odds = round(share / (1 - share), 2) if self.rounded_odds else share / (1 - share)
            wanted = n_ood if self.ratio == NATURAL else round(n_id * odds)
            ood = min(wanted, n_ood) if self.ood_fill == "cap" else wanted
        tests = n_id + ood if self.limit is None else min(n_id + ood, self.limit)
        injected = 0 if self.noise == NO_NOISE else tests // self.noise_every
        return StreamSizes(wanted, ood, tests, injected)


@dataclass(frozen=True)
class ThresholdSettings(Settings):
    """The noise score, and how its threshold is found (see methods/threshold.py)."""

    panel = "Threshold"

    # Eq. 1, or only the best class's logit (methods/match.py).
    score: str = choice("Noise score of the frozen model.", *SCORES)
    fixed: float | None = option(
        None, "Fixed threshold on the ID score, or 'adaptive'.",
        within=Range(least=0, most=1), name="threshold", shown="adaptive",
    )  # fmt: skip
    # Eq. 1: clean iff the ID score is λ or more; the released code: noise iff u is above λ.
    fixed_on: str = choice("Score to which a fixed threshold applies.", "id-score", "noise-score")
    queue: int = option(  # Sec. 5.1
        512, "N_q: number of scores that determine the threshold.",
        within=Range(least=1, most=LARGEST_QUEUE),
    )  # fmt: skip
    criterion: str = choice(
        "Threshold criterion: weighted by size, or literally Eq. 3.", "otsu", "unweighted"
    )
    degenerate: str = choice(
        "If no split is valid, hold the last threshold or use zero.", "hold", "zero"
    )

"""Which encoder, and how images are fed to it."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from zsntta_cli.settings.options import check, check_choice

TINY = "tiny"
RANDOM_WEIGHTS = "none"
LOCAL, RAY = "local", "ray"
FEATURES, DATA = Path("features"), Path("data")  # where feature files and data sets lie
_OPENAI, _EMBEDDED = "openai", "embedded"


@dataclass(frozen=True)
class EncoderChoice:
    """Which encoder, in open_clip's words; the paper's main one by default (Sec. 5.1)."""

    model: str = "ViT-B-16"
    pretrained: str = _OPENAI  # a tag, a checkpoint's path, or "none": random weights
    precision: str = "fp32"
    folder: str | None = None  # of features made elsewhere, by an encoder that is not known here

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, ("fp32", "fp16", "bf16"))
        if self.model == TINY:
            message = (
                f"pretrained is '{self.pretrained}', but the model tiny brings its own weights."
            )
            check(self.pretrained in (_OPENAI, _EMBEDDED), message)
            object.__setattr__(self, "pretrained", _EMBEDDED)

    @property
    def slug(self) -> str:
        """The folder name of this encoder's features; a file's lacks the digits of its content."""
        if self.folder:
            return self.folder
        weights = Path(self.pretrained).stem if self.is_file else self.pretrained
        complete = self.model == TINY or ":" in self.model  # names its weights already
        parts = [self.model] if complete else [self.model, weights]
        parts += [self.precision] if self.precision != "fp32" else []
        return re.sub(r"[^\w.-]+", "-", "-".join(parts))

    @property
    def is_file(self) -> bool:
        """Whether `pretrained` is a checkpoint's path and no tag."""
        return Path(self.pretrained).is_file()


# Sec. 5.1 and the table of backbones.
PAPER_ENCODERS = (EncoderChoice(), EncoderChoice("RN50"), EncoderChoice("ViT-L-14"))


@dataclass(frozen=True)
class ExtractSettings:
    """How images are encoded; none of it but the batch size can change a feature's bits."""

    batch_size: int = 128
    workers: int = field(default_factory=lambda: min(os.cpu_count() or 1, 16))  # reading, a device
    skip_broken: bool = False  # leave unreadable images out instead of stopping
    overwrite: bool = False  # replace a file that holds something else
    engine: str = LOCAL  # this machine's devices, or a Ray cluster

    def __post_init__(self) -> None:
        check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")
        check(self.workers >= 1, f"workers is {self.workers}, must be 1 or more.")
        check_choice("engine", self.engine, (LOCAL, RAY))


@dataclass(frozen=True)
class LiveSettings:
    """How live methods get at images and the encoder; no decision depends on it."""

    data_root: str = "data"
    datasets: tuple[str, ...] = ()  # NAME=PATH of folders and archives of images
    device: str = "auto"
    workers: int = field(default_factory=lambda: min(os.cpu_count() or 1, 16))  # threads
    pretrained: str | None = None  # where the file of weights lies now, should it have moved

    def __post_init__(self) -> None:
        check(self.workers >= 1, f"workers is {self.workers}, must be 1 or more.")

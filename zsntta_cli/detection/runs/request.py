"""What `zsntta detect` is asked for: values that were looked at before anything is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from zsntta_cli.datasets import default_prompt
from zsntta_cli.detection.inputs import check_class_names, check_method, checked_seed
from zsntta_cli.detection.runs.flags import Flag
from zsntta_cli.detection.sources import check_sources, is_stream
from zsntta_cli.errors import SettingsError, first_line, short
from zsntta_cli.files import read_input
from zsntta_cli.settings import MCM, SCORES
from zsntta_cli.settings.options import check, check_choice
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, prompt_template

HINDSIGHT, ARRIVAL = "hindsight", "arrival"
_LARGEST = 2**26  # bytes of a file of class names


@dataclass(frozen=True)
class Watch:
    """How a folder is watched."""

    interval: float = 1.0  # seconds between two looks
    looks: int | None = None  # it ends after so many


@dataclass(frozen=True)
class Request:
    """Which images, which classes, how to decide."""

    sources: tuple[str, ...] = ()
    set_name: str | None = None  # of features that are cached, in place of sources
    classes: tuple[str, ...] = ()  # none: those of the set
    prompt: str | None = None
    method: str = "ridge"
    seed: int = 0  # of the orders that a folder is shown in
    decide: Literal["hindsight", "arrival"] | None = None
    flag: Flag = field(default_factory=Flag)
    clean: Path | None = None  # images known to be clean, for Flag.fpr
    fps: float = 1.0  # of videos
    watch: Watch | None = None
    score: str = MCM  # noise score of the frozen model

    def __post_init__(self) -> None:
        check(bool(self.sources) != bool(self.set_name), _which(self))
        check_method(self.method)
        check_choice("score", self.score, SCORES)
        checked_seed(self.seed)
        prompt_template(self.template)
        if self.classes or not self.set_name:
            check_class_names(self.classes)
            _check_prompts(self.classes)
        check(0 < self.fps <= 1000, f"fps is {self.fps}, must be above 0 and at most 1000.")
        self._check_flag()
        if self.watch:
            self._check_watch(self.watch)

    @property
    def template(self) -> str:
        """The prompt template."""
        if self.prompt is not None:
            return prompt_template(self.prompt)
        return default_prompt(self.set_name) if self.set_name else DEFAULT_PROMPT

    @property
    def on_arrival(self) -> bool:
        """Whether images are decided as they come, in their order, and not in hindsight."""
        if self.decide or self.watch:
            return bool(self.watch) or self.decide == ARRIVAL
        return any(map(is_stream, self.sources))

    def check_sources(self) -> None:
        """Look at what is named: DatasetError where it is not there."""
        check_sources(self.sources)
        for source in self.sources if self.watch else ():
            check(Path(source).expanduser().is_dir(), f"{short(source)} is no folder to watch.")

    def _check_flag(self) -> None:
        has_rate, has_clean = self.flag.fpr is not None, self.clean is not None
        if has_rate != has_clean:
            raise SettingsError(
                "flag fpr and clean go together: the rate is one of images known to be clean."
            )
        whole = self.flag.count is not None or has_rate
        check(
            not (whole and self.on_arrival),
            "on arrival nobody knows how many images there will be: flag a share, as 5%, or "
            "decide in hindsight.",
        )

    def _check_watch(self, watch: Watch) -> None:
        check(self.decide != HINDSIGHT, "a watched folder is decided on arrival.")
        check(not self.set_name, "features that are cached do not grow: there is nothing to watch.")
        seconds = f"interval is {watch.interval}, must be above 0 and at most 86400 seconds."
        check(0 < watch.interval <= 86_400, seconds)
        check(
            watch.looks is None or watch.looks >= 1, f"looks is {watch.looks}, must be 1 or more."
        )


def _which(request: Request) -> str:
    if request.sources:
        return "images are named and a cached set too: one of them."
    return "say which images: files, folders, archives, lists, videos, '-', or a cached set."


def _check_prompts(names: Sequence[str]) -> None:
    """Names that the encoder cannot tell apart."""
    said: dict[str, str] = {}
    for name in names:
        other = said.setdefault(" ".join(name.replace("_", " ").split()), name)
        if other != name:
            raise SettingsError(
                f"the class names '{short(other)}' and '{short(name)}' are one to the encoder."
            )


def read_classes(path: Path) -> tuple[str, ...]:
    """Class names of a file, a name a line.

    Raises:
        SettingsError: it cannot be read, is no text, or has none.
    """
    try:
        lines = read_input(path, _LARGEST).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the class names {path} ({first_line(error)}).") from error
    names = tuple(line.strip() for line in lines if line.strip())
    check(bool(names), f"{path} has no class names: must have a name a line.")
    return names


def split_classes(text: str) -> tuple[str, ...]:
    """Class names that are typed, with commas between."""
    return tuple(name.strip() for name in text.split(","))

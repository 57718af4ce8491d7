"""The request of `zsntta detect`: values that are checked before anything is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zsntta_cli.datasets import default_prompt
from zsntta_cli.detection.flags import Flag
from zsntta_cli.detection.inputs import check_class_names, check_method
from zsntta_cli.detection.sources import Scan, check_sources
from zsntta_cli.detection.sources.item import PIPE
from zsntta_cli.errors import SettingsError, short
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, prompt_template


@dataclass(frozen=True, kw_only=True)
class Images:
    """The images: sources, or a cached set of features."""

    sources: tuple[str, ...] = ()
    set_name: str | None = None
    all_folders: bool = False  # hidden ones, and those of systems and tools, too

    @property
    def scan(self) -> Scan:
        """How the sources are searched for images."""
        return Scan(all_folders=self.all_folders)

    def __post_init__(self) -> None:
        check(
            not (self.sources and self.set_name),
            "both images and a cached set are named: name one of the two.",
        )
        check(
            bool(self.sources or self.set_name),
            "say which images: files, folders, archives, lists, '-', or a cached set.",
        )


@dataclass(frozen=True, kw_only=True)
class DecisionRule:
    """How images are decided."""

    method: str = "ridge"
    flag: Flag = field(default_factory=Flag)

    def __post_init__(self) -> None:
        check_method(self.method)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request: which images, which classes, how to decide."""

    images: Images
    classes: tuple[str, ...] = ()  # none: those of the set, or of the photos
    class_photos: Path | None = None  # examples of the classes: a folder a class
    prompt: str | None = None
    rule: DecisionRule = field(default_factory=DecisionRule)

    def __post_init__(self) -> None:
        prompt_template(self.template)
        if self.class_photos:
            check(
                not self.classes, "classes are given by names and by photos: give one of the two."
            )
            check(self.prompt is None, "a prompt is for class names, but these classes are photos.")
        elif self.classes or not self.images.set_name:
            check_class_names(self.classes)
            _check_prompts(self.classes)
        if self.on_arrival:
            self.rule.flag.check_on_arrival()

    @property
    def template(self) -> str:
        """The prompt template."""
        if self.prompt is not None:
            return prompt_template(self.prompt)
        name = self.images.set_name
        return default_prompt(name) if name else DEFAULT_PROMPT

    @property
    def on_arrival(self) -> bool:
        """Whether images are decided as they come, in order, and not in hindsight."""
        return PIPE in self.images.sources

    def check_sources(self) -> None:
        """Check the named sources; DatasetError if one does not exist."""
        check_sources(self.images.sources)


def _check_prompts(names: Sequence[str]) -> None:
    """Refuse names that the encoder cannot distinguish."""
    names_by_words: dict[str, str] = {}
    for name in names:
        other = names_by_words.setdefault(" ".join(name.replace("_", " ").split()), name)
        if other != name:
            raise SettingsError(
                f"the class names '{short(other)}' and '{short(name)}' are one to the encoder."
            )

"""The request of `zsntta detect`: values that are checked before anything is read."""

from dataclasses import dataclass, field
from pathlib import Path

from zsntta_cli.datasets import default_prompt
from zsntta_cli.detection.flags import Flag
from zsntta_cli.detection.inputs import check_class_names, check_method
from zsntta_cli.detection.sources.item import PIPE
from zsntta_cli.errors import SettingsError, short
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, prompt_template


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request: which images, which classes, how to decide."""

    sources: tuple[str, ...] = ()
    set_name: str | None = None  # a cached set in place of images
    all_folders: bool = False  # hidden ones, and those of systems and tools, too
    classes: tuple[str, ...] = ()  # none: those of the set, or of the photos
    class_photos: Path | None = None  # examples of the classes: a folder a class
    prompt: str | None = None
    method: str = "cull"
    flag: Flag = field(default_factory=Flag)

    def __post_init__(self) -> None:
        check(
            not (self.sources and self.set_name),
            "both images and a cached set are named: name one of the two.",
        )
        check(
            bool(self.sources or self.set_name),
            "say which images: files, folders, archives, lists, '-', or a cached set.",
        )
        check_method(self.method)
        prompt_template(self.template)
        if self.class_photos:
            check(
                not self.classes, "classes are given by names and by photos: give one of the two."
            )
            check(self.prompt is None, "a prompt is for class names, but these classes are photos.")
        elif self.classes or not self.set_name:
            check_class_names(self.classes)
            self._check_prompts()
        check(
            not self.on_arrival or self.flag == Flag(),
            "on arrival nobody knows how many images there will be: leave --flag out, or name a "
            "folder.",
        )

    @property
    def template(self) -> str:
        """The prompt template."""
        if self.prompt is not None:
            return prompt_template(self.prompt)
        return default_prompt(self.set_name) if self.set_name else DEFAULT_PROMPT

    @property
    def on_arrival(self) -> bool:
        """Whether images are decided as they come, in order, and not in hindsight."""
        return PIPE in self.sources

    def _check_prompts(self) -> None:
        """Refuse names that the encoder cannot distinguish."""
        names_by_words: dict[str, str] = {}
        for name in self.classes:
            other = names_by_words.setdefault(" ".join(name.replace("_", " ").split()), name)
            if other != name:
                raise SettingsError(
                    f"the class names '{short(other)}' and '{short(name)}' are one to the encoder."
                )

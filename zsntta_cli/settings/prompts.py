"""Prompt templates: each has one `{}` for the class name."""

from collections.abc import Sequence

from zsntta_cli.errors import SettingsError, short

# The paper's text has "this is a photo of a {}"; its numbers come from the code's template.
PROMPTS = {"code": "a photo of a {}.", "paper": "this is a photo of a {}"}
DEFAULT_PROMPT = PROMPTS["code"]


def prompt_template(prompt: str) -> str:
    """A template by its name in PROMPTS, or given in full.

    Raises:
        SettingsError: neither a name nor a text with one `{}`.
    """
    template = PROMPTS.get(prompt, prompt)
    if template.count("{}") != 1 or template.count("{") != 1 or template.count("}") != 1:
        raise SettingsError(
            f"prompt '{short(prompt)}' is neither one of {', '.join(PROMPTS)} nor a text with one "
            f"{{}} for the class name."
        )
    return template


def class_prompts(template: str, class_names: Sequence[str]) -> list[str]:
    """The prompts of all classes; underscores in names become spaces."""
    return [template.format(name.replace("_", " ")) for name in class_names]

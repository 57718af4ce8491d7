"""Prompt templates: each has one `{}` for the class name."""

from collections.abc import Sequence

from zsntta_cli.errors import SettingsError, short

# The paper's text has "this is a photo of a {}"; its numbers come from the code's template.
PROMPTS = {"code": "a photo of a {}.", "paper": "this is a photo of a {}"}
DEFAULT_PROMPT = PROMPTS["code"]

# NegLabel's released code: class names have the nouns' prompt, and so have lists of other names.
NOUN_PROMPT = "the nice {}"
SPEECH_PROMPTS = {"nouns": NOUN_PROMPT, "adjectives": "This is a {} photo"}


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


def speech_prompt(words: str) -> str | None:
    """The prompt of a word list's part of speech, if its name ends with one: "wordnet-nouns"."""
    return next((p for speech, p in SPEECH_PROMPTS.items() if words.endswith(speech)), None)


_AND = " | "  # between templates whose features are averaged; none can be typed with two {}


def joined(*templates: str) -> str:
    """Several templates as one name: a class's feature is the mean of theirs."""
    return _AND.join(templates)


def templates_of(name: str) -> list[str]:
    """The templates that a name of text features stands for: itself, or those joined to it."""
    parts = name.split(_AND)
    return parts if all("{}" in part for part in parts) else [name]


def class_prompts(template: str, class_names: Sequence[str]) -> list[str]:
    """The prompts of all classes; underscores in names become spaces."""
    return [template.format(name.replace("_", " ")) for name in class_names]

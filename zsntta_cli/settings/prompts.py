"""Prompt templates, each with one `{}` for the class name, and the built-in word lists.

Each word list has a prompt, and so have the class names that its words are compared with. Nouns and
adjectives are two lists of one set, and a method mines a share of each.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from zsntta_cli.errors import SettingsError, short

# The paper's text has "this is a photo of a {}"; its numbers come from the code's template.
PROMPTS = {"code": "a photo of a {}.", "paper": "this is a photo of a {}"}
DEFAULT_PROMPT = PROMPTS["code"]
# The class name's place as other tools write it: {c} of CLIP_benchmark, {classname}, {0}, %s.
_OTHER_MARK = r"(?s)([^{}%]*)(\{\w+\}|%s)([^{}%]*)"
ENSEMBLE = "clip-"  # the beginning of an ensemble's name
PHOTOS = "photos"  # in place of a prompt: class features were made of example photos

# Between templates whose features are averaged, in one key; none can be typed with two {}.
_AND = " | "
_LONGEST_LABEL = 60

# NegLabel's released code: class names have the nouns' prompt, and so have lists of other names.
NOUN_PROMPT = "the nice {}"
SPEECH_PROMPTS = {"nouns": NOUN_PROMPT, "adjectives": "This is a {} photo"}


@lru_cache(maxsize=1)
def ensembles() -> dict[str, list[str]]:
    """The templates whose features are averaged, by the name of the ensemble.

    The ensembles are CLIP's (Radford et al., 2021; data/prompts.md and the notebook "Prompt
    Engineering for ImageNet" of its repository): 80 templates and the 7 best ones for ImageNet, 18
    for CIFAR, 8 for cars and 2 for aircraft.
    """
    named: dict[str, list[str]] = json.loads(Path(__file__).with_name("ensembles.json").read_text())
    return named


def prompt_template(prompt: str) -> str:
    """The key under which a feature file keeps the class features of a prompt.

    A name in PROMPTS becomes its template. A template, joined templates and the name of an ensemble
    stay as they are.

    Raises:
        SettingsError: the prompt is none of these, or a text without exactly one `{}`.
    """
    if prompt.startswith(ENSEMBLE) and prompt in ensembles():
        return prompt
    parts = prompt.split(_AND)
    if len(parts) > 1 and all("{}" in part for part in parts):
        return _AND.join(map(prompt_template, parts))
    template = PROMPTS.get(prompt, prompt)
    if template.count("{}") != 1 or template.count("{") != 1 or template.count("}") != 1:
        if other := re.fullmatch(_OTHER_MARK, template):
            meant = f"{other[1]}{{}}{other[3]}"
            raise SettingsError(
                f"prompt '{short(prompt)}' has {other[2]} instead of {{}}: write '{short(meant)}'."
            )
        raise SettingsError(
            f"prompt '{short(prompt)}' is neither one of {', '.join([*PROMPTS, *ensembles()])} nor "
            f"a text with one {{}} for the class name."
        )
    return template


def cached_prompt(prompt: str) -> str:
    """The key of the class features of a prompt, or of PHOTOS, in a feature file.

    Raises:
        SettingsError: the text is not a prompt.
    """
    return PHOTOS if prompt == PHOTOS else prompt_template(prompt)


def speech_prompt(words: str) -> str | None:
    """The prompt of a part of speech, if the name of a word list ends with one: "wordnet-nouns"."""
    return next((p for speech, p in SPEECH_PROMPTS.items() if words.endswith(speech)), None)


def ensemble_name(templates: Sequence[str]) -> str:
    """The key of averaged templates: the name of their ensemble, or all of them joined."""
    wanted = sorted(templates)
    names = (name for name, of_name in ensembles().items() if sorted(of_name) == wanted)
    return next(names, _AND.join(templates))


def templates_of(name: str) -> list[str]:
    """The templates that a key of text features stands for: itself, or those it joins."""
    if name.startswith(ENSEMBLE) and name in ensembles():
        return ensembles()[name]
    parts = name.split(_AND)
    return parts if all("{}" in part for part in parts) else [name]


def prompt_label(prompt: str) -> str:
    """A prompt as tables show it: many templates by their beginning and a digest of all."""
    if len(prompt) <= _LONGEST_LABEL or len(templates_of(prompt)) == 1:
        return prompt
    digest = hashlib.sha256(prompt.encode()).hexdigest()[:8]
    return f"{short(prompt, _LONGEST_LABEL - 11)} ({digest})"


def class_prompts(template: str, class_names: Sequence[str]) -> list[str]:
    """Make the prompts of all classes; underscores in names become spaces.

    Raises:
        SettingsError: `template` is the name of an ensemble.
    """
    if "{}" not in template:
        raise SettingsError(
            f"prompt '{short(template)}' stands for several templates: specify one text with {{}}."
        )
    return [template.format(name.replace("_", " ")) for name in class_names]


# CSP's released code, arXiv 2410.08611: the same eight prompts for class names and nouns, whose
# features are averaged, and four for the phrases that adjectives become.
CSP_NOUN_PROMPT = (
    "{} | the {} | the good {} | the nice {} | a photo of the nice {}. | a photo with the nice {}. "
    "| a good photo with the nice {}. | a close-up photo of the nice {}."
)
CSP_PHRASE_PROMPT = "{} | a nice photo of {} | a good photo of {} | a close-up photo of {}"


@dataclass(frozen=True)
class WordSet:
    """A set of word lists, and the prompts under which their words are encoded."""

    prompts: dict[str, str]  # by the list's name
    class_prompt: str | None  # of the class names that words are compared with; None: the run's
    of_method: bool = False  # for one method only: never the default of the others


WORD_SETS = {
    "wordnet": WordSet(
        {"wordnet-nouns": NOUN_PROMPT, "wordnet-adjectives": SPEECH_PROMPTS["adjectives"]},
        NOUN_PROMPT,
    ),
    "csp": WordSet(
        {"csp-nouns": CSP_NOUN_PROMPT, "csp-adjectives": CSP_PHRASE_PROMPT}, CSP_NOUN_PROMPT, True
    ),
    "cma": WordSet({"cma": "{}"}, None, True),
    "drawn": WordSet({"drawn": DEFAULT_PROMPT}, None),  # for the embedded encoder
}


def set_of(words: str) -> str | None:
    """The name of the built-in set that a word list belongs to; None for a user's list."""
    return next((name for name, word_set in WORD_SETS.items() if words in word_set.prompts), None)


def lists_of(words: str) -> dict[str, str]:
    """The built-in lists that a name stands for, those of a set or only one, with their prompts.

    A user's list gives none.
    """
    if words in WORD_SETS:
        return WORD_SETS[words].prompts
    name = set_of(words)
    return {words: WORD_SETS[name].prompts[words]} if name else {}


def class_prompts_beside(lists: Iterable[str]) -> list[str]:
    """The prompts that class names need for use with word lists, each once."""
    sets = (WORD_SETS[name] for words in lists if (name := set_of(words)))
    return list(dict.fromkeys(word_set.class_prompt for word_set in sets if word_set.class_prompt))

"""Prompt templates, each with one `{}` for the class name, and the built-in word lists.

A list has one prompt of its own, and so have the class names that its words are held against. Nouns
and adjectives are two lists of one set: a share is mined of each.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from zsntta_cli.errors import SettingsError, short
from zsntta_cli.settings.sentences import is_filed

# The paper's text has "this is a photo of a {}"; its numbers come from the code's template.
PROMPTS = {"code": "a photo of a {}.", "paper": "this is a photo of a {}"}
DEFAULT_PROMPT = PROMPTS["code"]
ENSEMBLE = "clip-"  # what names of ensembles begin with
_ENSEMBLES = Path(__file__).with_name("ensembles.json")
PHOTOS = "photos"  # stands for no words: class features that were made of example photos

# NegLabel's released code: class names have the nouns' prompt, and so have lists of other names.
NOUN_PROMPT = "the nice {}"
SPEECH_PROMPTS = {"nouns": NOUN_PROMPT, "adjectives": "This is a {} photo"}


@lru_cache(maxsize=1)
def ensembles() -> dict[str, list[str]]:
    """Templates whose features are averaged, by the name of the ensemble.

    CLIP's own (Radford et al., 2021; data/prompts.md and the notebook "Prompt Engineering for
    ImageNet" of its repository): 80 and the 7 best for ImageNet, 18 for CIFAR, 8 for cars, 2 for
    aircraft.
    """
    named: dict[str, list[str]] = json.loads(_ENSEMBLES.read_text())
    return named


def prompt_template(prompt: str) -> str:
    """What class features are filed under that are made by a prompt.

    For a name in PROMPTS that is the template in full. A template, joined ones, the name of an
    ensemble and that of a file's sentences stay as they are.

    Raises:
        SettingsError: none of these, or a text without one `{}`.
    """
    if is_filed(prompt) or (prompt.startswith(ENSEMBLE) and prompt in ensembles()):
        return prompt
    parts = prompt.split(_AND)
    if len(parts) > 1 and all("{}" in part for part in parts):
        return join_templates(*map(prompt_template, parts))
    template = PROMPTS.get(prompt, prompt)
    if template.count("{}") != 1 or template.count("{") != 1 or template.count("}") != 1:
        raise SettingsError(
            f"prompt '{short(prompt)}' is neither one of {', '.join([*PROMPTS, *ensembles()])} nor "
            f"a text with one {{}} for the class name."
        )
    return template


def is_built_in(prompt: str) -> bool:
    """Whether a prompt is a name that means the same with every set: no file's sentences."""
    return prompt in (PHOTOS, *PROMPTS, *ensembles())


def cached_prompt(prompt: str) -> str:
    """What class features are filed under: of a prompt, or the name for example photos.

    Raises:
        SettingsError: none of these.
    """
    if prompt == PHOTOS:
        return PHOTOS
    try:
        return prompt_template(prompt)
    except SettingsError as error:
        raise SettingsError(f"{error}", remedy="cache-sentences") from None


def averaged_prompt(templates: Sequence[str]) -> str:
    """What templates are filed under that are averaged; those of an ensemble, by its name.

    Each may be given by a name, and counts once however often it is there.

    Raises:
        SettingsError: one that is no template, as the sentences of a file.
    """
    resolved = [part for t in templates for part in templates_of(prompt_template(t))]
    for part in resolved:
        if is_filed(part):
            raise SettingsError(f"'{part}' are sentences of a file: no template to be averaged.")
    return ensemble_name(list(dict.fromkeys(resolved)))


def speech_prompt(words: str) -> str | None:
    """The prompt of a word list's part of speech, if its name ends with one: "wordnet-nouns"."""
    return next((p for speech, p in SPEECH_PROMPTS.items() if words.endswith(speech)), None)


_LONGEST_LABEL = 60
_AND = " | "  # between templates whose features are averaged; none can be typed with two {}


def join_templates(*templates: str) -> str:
    """Several templates as one name: a class's feature is the mean of theirs."""
    return _AND.join(templates)


def ensemble_name(templates: Sequence[str]) -> str:
    """What templates whose features are averaged are filed under: a known name, or all of them."""
    named = (name for name, known in ensembles().items() if sorted(known) == sorted(templates))
    return next(named, join_templates(*templates))


def templates_of(name: str) -> list[str]:
    """The templates that a name of text features stands for: itself, or those joined to it."""
    if name.startswith(ENSEMBLE) and name in ensembles():
        return ensembles()[name]
    parts = name.split(_AND)
    return parts if all("{}" in part for part in parts) else [name]


def prompt_label(prompt: str) -> str:
    """A prompt as a table has it: of many templates the first, how many more, and a digest."""
    if len(prompt) <= _LONGEST_LABEL or len(templates_of(prompt)) == 1:
        return prompt
    first, *others = templates_of(prompt)
    digest = hashlib.sha256(prompt.encode()).hexdigest()[:8]
    return f"{short(first, _LONGEST_LABEL // 2)} | {len(others)} more ({digest})"


def class_prompts(template: str, class_names: Sequence[str]) -> list[str]:
    """The prompts of all classes; underscores in names become spaces.

    Raises:
        SettingsError: an ensemble's name, or a file's: no template.
    """
    if "{}" not in template:
        raise SettingsError(
            f"prompt '{short(template)}' stands for several templates: give one text with {{}}."
        )
    return [template.format(name.replace("_", " ")) for name in class_names]


# CSP's released code, arXiv 2410.08611: the same eight prompts for class names and nouns, whose
# features are averaged, and four for the phrases that adjectives become.
CSP_NOUN_PROMPT = join_templates(
    "{}", "the {}", "the good {}", "the nice {}", "a photo of the nice {}.",
    "a photo with the nice {}.", "a good photo with the nice {}.",
    "a close-up photo of the nice {}.",
)  # fmt: skip
CSP_PHRASE_PROMPT = join_templates(
    "{}", "a nice photo of {}", "a good photo of {}", "a close-up photo of {}"
)


@dataclass(frozen=True)
class WordSet:
    """A name for word lists, and the prompts that they are embedded under."""

    prompts: dict[str, str]  # by the list's name
    class_prompt: str | None  # of the class names beside them; None: the run's
    of_method: bool = False  # one method's own, no choice for the others where none is named


WORD_SETS: dict[str, WordSet] = {
    "wordnet": WordSet(
        {f"wordnet-{speech}": prompt for speech, prompt in SPEECH_PROMPTS.items()},
        NOUN_PROMPT,
    ),
    "csp": WordSet(
        {"csp-nouns": CSP_NOUN_PROMPT, "csp-adjectives": CSP_PHRASE_PROMPT},
        CSP_NOUN_PROMPT,
        of_method=True,
    ),
    "cma": WordSet({"cma": "{}"}, None, of_method=True),
    "drawn": WordSet({"drawn": DEFAULT_PROMPT}, None),  # for the embedded encoder
}


def set_of(words: str) -> str | None:
    """The name of the built-in set that a list belongs to; None for a list of one's own."""
    return next((name for name, word_set in WORD_SETS.items() if words in word_set.prompts), None)


def lists_of(words: str) -> dict[str, str]:
    """The built-in lists that a name stands for, with their prompts: a set's, or the one.

    Of a list of one's own there are none.
    """
    if words in WORD_SETS:
        return WORD_SETS[words].prompts
    name = set_of(words)
    return {words: WORD_SETS[name].prompts[words]} if name else {}


def class_prompts_beside(lists: Iterable[str]) -> list[str]:
    """The prompts that class names need beside word lists, each once."""
    sets = (WORD_SETS[name] for words in lists if (name := set_of(words)))
    return list(dict.fromkeys(word_set.class_prompt for word_set in sets if word_set.class_prompt))

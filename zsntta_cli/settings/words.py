"""The word lists that come with the package, by the name that `--words` takes.

A list has one prompt of its own, and so have the class names that its words are held against. Nouns
and adjectives are two lists of one set: a share is mined of each.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from zsntta_cli.settings.prompts import DEFAULT_PROMPT, NOUN_PROMPT, SPEECH_PROMPTS, joined

# CSP's released code, arXiv 2410.08611: the same eight prompts for class names and nouns, whose
# features are averaged, and four for the phrases that adjectives become.
CSP_NOUN_PROMPT = joined(
    "{}", "the {}", "the good {}", "the nice {}", "a photo of the nice {}.",
    "a photo with the nice {}.", "a good photo with the nice {}.",
    "a close-up photo of the nice {}.",
)  # fmt: skip
CSP_PHRASE_PROMPT = joined(
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
    return next((name for name, one in WORD_SETS.items() if words in one.prompts), None)


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
    return list(dict.fromkeys(one.class_prompt for one in sets if one.class_prompt))

"""Captions for training the embedded encoder, and the pictures of which they are true."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from open_clip.tokenizer import SimpleTokenizer
from tiny_drawing import Drawing

from zsntta_cli.datasets.drawn.drawing import (
    LETTERS,
    NUMERALS,
    OTHER_SHAPES,
    PALETTE,
    SHAPES,
    STATIC,
    STYLES,
    SURFACES,
    Concept,
)
from zsntta_cli.datasets.drawn.textures import BACKGROUNDS

CONTEXT = 32  # tokens a caption may have

# All trained concepts, and each group's share of the pictures.
GROUPS: tuple[tuple[tuple[Concept, ...], float], ...] = (
    (SHAPES, 0.34),
    (OTHER_SHAPES, 0.20),
    (LETTERS, 0.19),
    (NUMERALS, 0.14),
    (SURFACES, 0.10),
    ((STATIC,), 0.03),
)
CONCEPTS = tuple(concept for group, _ in GROUPS for concept in group)

_FORMS = (
    ("a photo of {}.", 0.4),
    ("a picture of {}.", 0.1),
    ("a drawing of {}.", 0.1),
    ("an image of {}.", 0.1),
    ("this is a photo of {}", 0.1),
    ("there is {} in the picture", 0.05),
    ("a close-up of {}", 0.05),
    ("{}", 0.1),
)
_FORM_BOUNDS = np.cumsum([weight for _, weight in _FORMS])
_SIZES = ("small", "large")
_FIELDS = ("colour", "size", "background", "style")
_MENTIONED = (0.3, 0.12, 0.12, 0.25)  # how often a caption mentions each field
_FAMILIES = ("shape", "object", "letter", "digit", "texture", "noise")
_OBJECTS = ("hourglass", "lightning bolt", "raindrop", "house", "flower", "fish", "tree", "flag")
_VAGUE = 0.1  # how often a caption names only the family: "a photo of a blue letter."
_WORDS: tuple[tuple[str, ...], ...] = (tuple(PALETTE), _SIZES, tuple(BACKGROUNDS), STYLES[1:])


@dataclass(frozen=True)
class Caption:
    """A caption's tokens, and the facts that it states; -1 if it does not state one."""

    tokens: NDArray[np.int32]  # (CONTEXT,)
    claims: NDArray[np.int16]  # (6,)


def _family(concept: Concept) -> str:
    """Return what people call it who do not look closely."""
    if concept.kind == "static":
        return "noise"
    return "object" if concept.name in _OBJECTS else concept.kind


def facts(drawing: Drawing) -> NDArray[np.int16]:
    """Number what a picture shows; -1 if there is nothing to say.

    In this order: concept, family, colour, size, background, style.
    """
    concept = drawing.concept
    seen = [CONCEPTS.index(concept), _FAMILIES.index(_family(concept))]
    for field, words in zip(_FIELDS, _WORDS, strict=True):
        word = getattr(drawing, field)
        seen.append(words.index(word) if word in words else -1)
    return np.array(seen, dtype=np.int16)


def true_of(claims: NDArray[np.int16], shown: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Return whether each caption is true of each picture (captions, pictures)."""
    silent = claims[:, None, :] < 0
    same: NDArray[np.bool_] = (silent | (claims[:, None, :] == shown[None])).all(axis=2)
    return same


@cache
def _tokenizer() -> SimpleTokenizer:
    return SimpleTokenizer()


@cache
def _encode_word(word: str) -> tuple[int, ...]:
    return tuple(_tokenizer().encode(word))


def tokenize(text: str) -> NDArray[np.int32]:
    """Return open_clip's tokens of a text, word by word from a cache."""
    inner = [token for word in text.lower().split() for token in _encode_word(word)]
    row = np.zeros(CONTEXT, dtype=np.int32)
    start, end = _tokenizer().sot_token_id, _tokenizer().eot_token_id
    row[: len(inner) + 2] = [start, *inner, end]
    return row


def article_of(concept: Concept) -> str:
    """Return the article that a concept's noun takes in a caption."""
    return {"letter": "the", "digit": "the", "static": ""}.get(concept.kind, "a")


def _noun(concept: Concept, vague: bool, gen: np.random.Generator) -> tuple[str, str]:
    """Return article and noun."""
    if vague:
        family = _family(concept)
        return "" if family == "noise" else "a", family
    if concept.kind == "digit" and gen.random() < 0.3:
        return article_of(concept), f"digit {NUMERALS.index(concept)}"
    return article_of(concept), concept.noun


def _sentence(article: str, noun: str, spoken: list[str], gen: np.random.Generator) -> str:
    """Write one caption that mentions the words in `spoken`, in the order of _FIELDS."""
    colour, size, background, style = spoken
    words = [word for word in (style, size, colour, noun) if word]
    if article == "a" and words[0][0] in "aeiou" and gen.random() < 0.5:
        article = "an"
    phrase = " ".join([article, *words]).strip()
    if background:
        phrase += f" on a {background} background"
    chosen = int(np.searchsorted(_FORM_BOUNDS, gen.random() * _FORM_BOUNDS[-1], side="right"))
    return _FORMS[chosen][0].format(phrase)


def write_caption(drawing: Drawing, gen: np.random.Generator) -> Caption:
    """Write a caption in one of many forms, which tells more or less of what is visible."""
    claims = facts(drawing)
    vague = gen.random() < _VAGUE
    claims[0 if vague else 1] = -1
    claims[2:][gen.random(4) >= _MENTIONED] = -1
    spoken = ["" if k < 0 else _WORDS[j][k] for j, k in enumerate(claims[2:])]
    article, noun = _noun(drawing.concept, vague, gen)
    return Caption(tokenize(_sentence(article, noun, spoken, gen)), claims)


def vocabulary() -> NDArray[np.int32]:
    """Return the sorted ids of all tokens that captions and prompts use."""
    words = {word for form, _ in _FORMS for word in form.replace("{}", " ").split()}
    words |= {word for words in _WORDS for word in words}
    words |= {c.noun for c in CONCEPTS} | set(_FAMILIES) | {str(k) for k in range(10)}
    words |= {"a an the on background photo of digit number letter this is . , handwritten"}
    ids = {int(token) for word in words for token in tokenize(word)}
    return np.array(sorted(ids), dtype=np.int32)

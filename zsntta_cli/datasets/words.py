"""The words of the built-in lists, and of the user's own lists.

WordNet's are made by tools/wordnet_words.py; its licence is beside them.
"""

import gzip
import itertools
from functools import cache
from pathlib import Path

import numpy as np

from zsntta_cli.datasets.drawn import drawing
from zsntta_cli.datasets.images import subset
from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import read_input

_WORDNET = Path(__file__).parent / "wordnet" / "words.tsv.gz"
_LARGEST_LIST = 2**26  # bytes of words: WordNet has two million

# CSP, arXiv 2410.08611: what it leaves out, and the nouns that follow its adjectives.
_CSP_LEFT_OUT = ("noun.person", "noun.quantity", "noun.group", "adj.pert")
_CSP_NOUNS = (
    "environment", "space", "object", "scene", "place", "item", "area", "view", "thing", "pattern",
    "structure", "landscape", "vista", "creature",
)  # fmt: skip
_CSP_SEED = 0  # as in the released code, which has another generator

# CMA, arXiv 2405.16766.
_CMA_PROMPTS = (
    "a photo of a thing.", "a photo of an everyday object.", "a photo of a scene we live in.",
    "a photo highlighting different textures.",
    "a photo of a thing that we can see in nature.",
)  # fmt: skip


@cache
def wordnet() -> dict[str, tuple[str, ...]]:
    """WordNet 3.0's words by lexicographer file, "noun.act" and so on; some are in several."""
    by_file = {}
    for line in gzip.decompress(_WORDNET.read_bytes()).decode().split("\n"):
        name, *words = line.split("\t")
        by_file[name] = tuple(words)
    return by_file


def built_in_words(name: str) -> list[str]:
    """The words of a built-in list, each once, in order.

    Adjectives that are also nouns count as nouns. `drawn` has the things and styles that the
    built-in sets show, except `shapes`, the ID set.
    """
    nouns, adjectives = set[str](), set[str]()
    for file, words in wordnet().items() if name not in ("cma", "drawn") else ():
        if not (name.startswith("csp-") and file in _CSP_LEFT_OUT):
            (nouns if file.startswith("noun.") else adjectives).update(words)
    match name:
        case "wordnet-nouns" | "csp-nouns":
            return sorted(nouns)
        case "wordnet-adjectives":
            return sorted(adjectives - nouns)
        case "csp-adjectives":
            plain = sorted(adjectives - nouns)
            drawn = np.random.default_rng(_CSP_SEED).integers(len(_CSP_NOUNS), size=len(plain))
            return [f"{word} {_CSP_NOUNS[i]}" for word, i in zip(plain, drawn, strict=True)]
        case "cma":
            return list(_CMA_PROMPTS)
    assert name == "drawn"
    things = (drawing.OTHER_SHAPES, drawing.LETTERS, drawing.NUMERALS, drawing.SURFACES)
    nouns_drawn = [concept.noun for concept in (*itertools.chain(*things), drawing.STATIC)]
    return list(dict.fromkeys([*nouns_drawn, *drawing.PALETTE, *drawing.STYLES]))


def limited_words(words: list[str], limit: int | None) -> list[str]:
    """At most `limit` words, always the same."""
    return words if limit is None else [words[row] for row in subset(len(words), limit)]


def read_words(path: Path) -> list[str]:
    """The words of the user's own list, one per line, each once, in order.

    Raises:
        DatasetError: the file cannot be read, is not a text, or has no word.
    """
    try:
        lines = read_input(path, _LARGEST_LIST).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"cannot read the word list {path} ({first_line(error)}).") from error
    words = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not words:
        raise DatasetError(f"the word list {path} is empty: must have one word per line.")
    return words

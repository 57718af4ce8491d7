"""Make the package's word list from the database files of WordNet 3.0.

A word is the first lemma of a synset, as in NegLabel (arXiv 2403.20078), here for all 26
lexicographer files of nouns and the three of adjectives. Debian's package wordnet-base has the
database:

    python tools/wordnet_words.py /usr/share/wordnet zsntta_cli/datasets/wordnet/words.tsv.gz
"""

import gzip
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Numbers of lexicographer files, lexnames(5WN), without verbs and adverbs.
NOUNS = dict(enumerate(
    (
        "Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication",
        "event", "feeling", "food", "group", "location", "motive", "object", "person",
        "phenomenon", "plant", "possession", "process", "quantity", "relation", "shape", "state",
        "substance", "time",
    ),
    start=3,
))  # fmt: skip
ADJECTIVES = {0: "all", 1: "pert", 44: "ppl"}
LEXNAMES = {
    **{number: f"noun.{name}" for number, name in NOUNS.items()},
    **{number: f"adj.{name}" for number, name in ADJECTIVES.items()},
}

_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # the position of an adjective: wndb(5WN)


def first_lemmas(content: str) -> Iterator[tuple[str, str]]:
    """The lexicographer file and the first lemma of each synset of a data file."""
    for line in content.splitlines():
        if line.startswith(" "):  # the licence
            continue
        _offset, number, _kind, _count, lemma, *_ = line.split(" ")
        yield LEXNAMES[int(number)], _MARKER.sub("", lemma).lower().replace("_", " ")


def words_by_file(folder: Path) -> dict[str, list[str]]:
    """The sorted words of each lexicographer file, each once; some are in several files."""
    found: dict[str, set[str]] = {name: set() for name in LEXNAMES.values()}
    for data in ("data.noun", "data.adj"):
        for name, word in first_lemmas((folder / data).read_text(encoding="ascii")):
            found[name].add(word)
    return {name: sorted(found[name]) for name in sorted(found)}


def packed(by_file: dict[str, list[str]]) -> bytes:
    """The list as shipped: one line per file, its name and its words; always the same bytes."""
    lines = ("\t".join([name, *words]) for name, words in by_file.items())
    return gzip.compress("\n".join(lines).encode(), compresslevel=9, mtime=0)


def main(folder: Path, target: Path) -> None:
    """Write the list; its licence is beside it."""
    by_file = words_by_file(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(packed(by_file))
    for name, words in by_file.items():
        print(f"{name}: {len(words):,}")
    distinct = {word for words in by_file.values() for word in words}
    print(f"{len(distinct):,} words, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""References: what methods, data sets and encoders cite, as BibTeX and in short form.

All entries are in references.bib, with one field per line. A method from outside the package may
bring an entry with it: its `cites` then holds the entry instead of a key.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.datasets.names import SetName
from zsntta_cli.errors import printable
from zsntta_cli.methods import find_method
from zsntta_cli.settings import is_tiny

_FILE = Path(__file__).parent / "references.bib"
_ENTRY = re.compile(r"^@\w+\{([^,\s]+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", re.MULTILINE)
PROGRAM, SETTING = "zsntta", "cao2025noisy"
_ALWAYS = {
    PROGRAM: "the program", SETTING: "the setting", "radford2021learning": "the model",
    "ilharco2021openclip": "the model's implementation",
}  # fmt: skip


class Reference(NamedTuple):
    """An entry of BibTeX: its fields and its full text."""

    fields: Mapping[str, str]
    text: str

    @property
    def short(self) -> str:
        """Authors, venue, year and arXiv number: "Jiang et al., ICLR 2024"."""
        of = self.fields.get
        authors = (of("author") or self.fields["note"].partition(";")[0]).split(" and ")
        first, *further = [_plain(author.partition(",")[0]) for author in authors]
        who = f"{first} et al." if len(further) > 1 else " and ".join([first, *further])
        letters = re.search(r"\((\w+)\)$", of("booktitle") or of("journal", ""))
        when = f"{letters[1] if letters else ''} {of('year', '')}".strip()
        number = f"arXiv {self.fields['eprint']}" if "eprint" in self.fields else ""
        return ", ".join(part for part in (who, when, number) if part)

    @property
    def title(self) -> str:
        """The title as plain text."""
        return _plain(self.fields["title"])


def _plain(text: str) -> str:
    """A BibTeX text without braces and commands; accents are left out."""
    return re.sub(r"\\['\"`^~]|[{}]", "", text).replace("--", "–")


@functools.cache
def references(text: str = "") -> Mapping[str, Reference]:
    """All entries of a text, or of the package, by their keys."""
    entries = _ENTRY.finditer(text or _FILE.read_text(encoding="utf-8"))
    return {entry[1]: Reference(dict(_FIELD.findall(entry[2])), entry[0]) for entry in entries}


def find_reference(cited: str) -> Reference | None:
    """The entry of a key, or an entry given instead of a key; None if there is none."""
    if cited.lstrip().startswith("@"):
        return next(iter(references(cited.strip() + "\n").values()), None)
    return references().get(cited)


# By letters in the names of a family's models or weights.
_CITES = {
    "metaclip": ("xu2024demystifying",),
    "dfn": ("fang2024data",),
    "eva0": ("sun2023eva",),
    "mobileclip": ("vasu2024mobileclip",),
    "mobileclip2": ("faghri2025mobileclip",),
    "pe-core": ("bolya2025perception",),
    "convnext": ("cherti2023reproducible", "liu2022convnet"),
    "coca": ("yu2022coca",),
    "clipa": ("li2023inverse",),
    "siglip": ("zhai2023sigmoid",),
    "siglip2": ("tschannen2025siglip",),
}


def encoder_cites(name: str) -> tuple[str, ...]:
    """The works to cite for an encoder besides CLIP's, by its model or its features' folder."""
    if is_tiny(name):
        return (PROGRAM,)
    signs = [sign for sign in _CITES if sign in name.lower()]
    return _CITES[max(signs, key=len)] if signs else ()


def bibtex(
    methods: Iterable[str], sets: Iterable[str] = (), encoders: Iterable[str] = ()
) -> tuple[str, list[str]]:
    """BibTeX entries, each once, below what cites them; and the methods and sets without any.

    The program, its setting and CLIP come first.
    """
    used: dict[str, dict[str, None]] = {key: {what: None} for key, what in _ALWAYS.items()}
    uncited = []
    places: dict[str, Any] = {name: find_method(name) for name in methods}
    places |= {name: CATALOGUE.get(SetName.parse(name).base) for name in sets}
    cites = {name: place.cites if place else () for name, place in places.items()}
    for name, keys in (cites | {name: encoder_cites(name) for name in encoders}).items():
        for key in keys:
            used.setdefault(key, {})[name] = None
        if name in places and not any(map(find_reference, keys)):
            uncited.append(name)
    parts = []
    for key, names in used.items():
        if reference := find_reference(key):
            about = printable(", ".join(names)).replace("@", "(at)")  # it would begin an entry
            parts.append(f"% {about}\n{reference.text}\n")
    return "\n".join(parts), uncited

"""References: what methods, data sets and encoders cite, as BibTeX and in short form.

All entries are in references.bib, with one field per line. A method from outside the package may
bring an entry with it: its `cites` then holds the entry instead of a key.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.datasets.names import SetName
from zsntta_cli.errors import printable
from zsntta_cli.methods import find_method
from zsntta_cli.settings import is_tiny

_FILE = Path(__file__).parent / "references.bib"
_ENTRY = re.compile(r"^@\w+\{([^,\s]+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", re.MULTILINE)
PROGRAM, SETTING, CLIP, OPEN_CLIP = (
    "zsntta", "cao2025noisy", "radford2021learning", "ilharco2021openclip",
)  # fmt: skip
Purposes = dict[str, list[str]]  # by key, what it is cited for


class Reference(NamedTuple):
    """An entry of BibTeX: its fields, and its whole text."""

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
def references() -> Mapping[str, Reference]:
    """All entries of the package, by their keys."""
    return _read(_FILE.read_text(encoding="utf-8"))


def _read(text: str) -> dict[str, Reference]:
    return {
        found[1]: Reference(dict(_FIELD.findall(found[2])), found[0])
        for found in _ENTRY.finditer(text)
    }


def find_reference(cited: str) -> Reference | None:
    """The entry of a key, or an entry given instead of a key; None if there is none."""
    if cited.lstrip().startswith("@"):
        return next(iter(_read(cited.strip() + "\n").values()), None)
    return references().get(cited)


def citations(
    methods: Iterable[str] = (),
    sets: Iterable[str] = (),
    encoders: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> Purposes:
    """The entries to cite, by key, with the uses; the program, its setting and CLIP come first.

    `encoders` have what each cites besides CLIP. `uncited` names methods and sets without a
    reference.
    """
    purposes: Purposes = {PROGRAM: ["the program"], SETTING: ["the setting"]}
    purposes |= {CLIP: ["the model"], OPEN_CLIP: ["the model's implementation"]}
    cites: dict[str, Iterable[str]] = {name: _of_method(name) for name in methods}
    for name, cited in (cites | {name: _of_set(name) for name in sets} | {**encoders}).items():
        for key in cited:
            of_key = purposes.setdefault(key, [])
            of_key += [name] if name not in of_key else []
    return purposes


def uncited(methods: Iterable[str] = (), sets: Iterable[str] = ()) -> list[str]:
    """Methods and sets for which no reference is known."""
    cites = {name: _of_method(name) for name in methods}
    cites |= {name: _of_set(name) for name in sets}
    return [name for name, cited in cites.items() if not any(map(find_reference, cited))]


def _of_method(name: str) -> tuple[str, ...]:
    method = find_method(name)
    return method.cites if method else ()


def _of_set(name: str) -> tuple[str, ...]:
    entry = CATALOGUE.get(SetName.parse(name).base)
    return entry.cites if entry else ()


def bibtex(purposes: Purposes) -> str:
    """Entries, each once, with their uses in the line above."""
    parts = []
    for cited, names in purposes.items():
        if reference := find_reference(cited):
            about = printable(", ".join(names)).replace("@", "(at)")  # it would begin an entry
            parts.append(f"% {about}\n{reference.text}\n")
    return "\n".join(parts)


# By letters in the names of a family's models or weights: keys of report/references.bib.
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
    """The works to cite for an encoder, beside CLIP's, by its model's name or features' folder."""
    if is_tiny(name):
        return ("zsntta",)
    signs = [sign for sign in _CITES if sign in name.lower()]
    return _CITES[max(signs, key=len)] if signs else ()

"""Write the methods' papers into CITATION.cff, from the references that `zsntta cite` prints.

`python tools/citation.py` after a method is added; tests/whole/test_release.py holds it to that.
"""

import json
from pathlib import Path

from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.report.citations import PROGRAM, SETTING, Reference, find_reference

FILE = Path(__file__).parents[1] / "CITATION.cff"


def cited_references() -> list[Reference]:
    """What methods and classifiers cite but for the paper itself, in the order of their titles."""
    lines = [METHODS[name] for name in METHODS], list(CLASSIFIERS.values())
    keys = {key for group in lines for line in group for key in line.cites} - {PROGRAM, SETTING}
    references = [reference for key in keys if (reference := find_reference(key))]
    return sorted(references, key=lambda reference: reference.title)


def as_yaml(reference: Reference) -> str:
    """One entry of `references`, in CITATION.cff's words."""
    fields = reference.fields
    place = fields.get("booktitle") or fields.get("journal")
    lines = [f"  - type: {'article' if 'journal' in fields else 'conference-paper'}"]
    if not place:
        lines = ["  - type: generic"]
    lines += [f"    title: {json.dumps(reference.title, ensure_ascii=False)}", "    authors:"]
    authors = fields.get("author") or fields["note"].partition(";")[0]
    for author in authors.split(" and "):
        family, _, given = (part.strip("{} ") for part in author.partition(","))
        name = f"family-names: {json.dumps(family, ensure_ascii=False)}"
        given_line = [f"        given-names: {json.dumps(given, ensure_ascii=False)}"]
        lines += [f"      - {name}", *(given_line if given else [])]
    if place:
        key = "journal" if "journal" in fields else "collection-title"
        lines.append(f"    {key}: {json.dumps(place, ensure_ascii=False)}")
    if "year" in fields:
        lines.append(f"    year: {fields['year']}")
    url = f"https://arxiv.org/abs/{fields['eprint']}" if "eprint" in fields else fields.get("url")
    return "\n".join(lines + ([f"    url: {json.dumps(url)}"] if url else []))


def main() -> None:
    """Replace everything below `references:`."""
    head, _, _ = FILE.read_text(encoding="utf-8").partition("references:\n")
    entries = "\n".join(map(as_yaml, cited_references()))
    FILE.write_text(f"{head}references:\n{entries}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

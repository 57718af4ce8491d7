"""SVG as matplotlib writes it, made fit to stand within a page.

A page's policy allows no `style` attribute, its style sheet gives the colours of a dark theme, and
dozens of drawings must not share an id. What is left takes a third of the room.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from zsntta_cli.errors import printable

_REFERENCE = re.compile(r"#([\w-]+)")
_LONG_NUMBER = re.compile(r"\d+\.\d\d+")
_OF_STYLE_SHEET = ("font", "stroke-line", "stroke-dashoffset")
_PLACES = ("d", "x", "y", "transform", "width", "height")  # attributes that have coordinates


def embedded(svg: bytes, prefix: str, title: str = "") -> str:
    """A drawing as an element of a page, with all ids behind a prefix.

    With a title it is a picture of that name; without one it is not there for those who listen.
    """
    root = ElementTree.fromstring(svg)
    parts = [part for child in root for part in _plain(child)]
    role = {"role": "img"} if title else {"aria-hidden": "true"}
    view = root.attrib["viewBox"]
    drawing = Element("svg", {"class": "plot", "viewBox": view, **role})
    if title:
        ElementTree.SubElement(drawing, "title").text = printable(title)
    drawing.extend(parts)
    _rename(drawing, prefix)
    return ElementTree.tostring(drawing, "unicode")


def _plain(element: Element) -> Iterator[Element]:
    """An element without what a page does not need; groups that say nothing are their parts."""
    name = _local(element.tag)
    if name in ("metadata", "style"):
        return
    attributes = {_local(key): value for key, value in element.attrib.items()}
    attributes |= _of_style(attributes.pop("style", ""))
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    for key in _PLACES:
        if key in attributes:
            attributes[key] = _short(attributes[key])
    parts = [part for child in element for part in _plain(child)]
    for part in parts if name == "defs" else ():  # those who use it say its colours
        part.attrib.pop("stroke", None)
        part.attrib.pop("fill", None)
    if (name == "g" and not {*attributes} - {"id"}) or (name == "defs" and not parts):
        yield from parts
        return
    if name == "g":
        attributes |= _gathered(parts)
    plain = Element(name, attributes)
    plain.text = element.text if name == "text" else None
    plain.extend(parts)
    yield plain


def _gathered(parts: Sequence[Element]) -> dict[str, str]:
    """The attributes that all parts of a group have and would inherit, taken from them."""
    shared = set.intersection(*({*part.attrib.items()} for part in parts)) if parts else set()
    inherited = {key: value for key, value in sorted(shared) if key.startswith(("fill", "stroke"))}
    for part, key in itertools.product(parts, inherited):
        del part.attrib[key]
    return inherited


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _of_style(style: str) -> dict[str, str]:
    """The declarations of a style as attributes; the page chooses letters and ends of lines."""
    pairs = (part.partition(":") for part in style.split(";") if part.strip())
    attributes = {key.strip(): value.strip() for key, _, value in pairs}
    return {key: value for key, value in attributes.items() if not key.startswith(_OF_STYLE_SHEET)}


def _short(places: str) -> str:
    """Coordinates to a tenth of a point."""
    rounded = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.1f}", places)
    return re.sub(r"\s+", " ", rounded).strip()


def _rename(drawing: Element, prefix: str) -> None:
    """Remove all ids but those that are referred to, and give these a name of the page's own."""
    every = list(drawing.iter())
    values = (value for one in every for key, value in one.attrib.items() if key in _LINKS)
    used = {name: i for i, name in enumerate(dict.fromkeys(_REFERENCE.findall(" ".join(values))))}
    for one in every:
        if (name := one.attrib.pop("id", None)) in used:
            one.set("id", f"{prefix}-{used[name]}")
        for key in {*_LINKS} & {*one.attrib}:
            one.set(key, _REFERENCE.sub(lambda m: f"#{prefix}-{used[m[1]]}", one.attrib[key]))


_LINKS = ("href", "clip-path")

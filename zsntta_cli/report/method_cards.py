"""Lists and cards of methods: what each is, its settings, its paper, its needs and costs.

All of it comes from its class: its facts, the fields of its settings and its docstring.
"""

import ast
import importlib.util
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli import methods
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS, Classifier, Live, Method, Pair
from zsntta_cli.report.citations import Reference, find_reference
from zsntta_cli.report.sheet import Row, Sheet, card, list_sheet
from zsntta_cli.settings.options import option_name, value_type
from zsntta_cli.simulation.runs import PRESETS, preset_values

if TYPE_CHECKING:
    from zsntta_cli.simulation.checks import CheckResult

Chosen = type[Method] | Pair
_JOINED = re.compile(r"(?<!\n)\n(?!\n|\d\. |- )")  # lines of a paragraph
_NEEDS = {
    WORDS: "words: zsntta extract --words",
    NO_TEXT: "the features of its 'no' text encoder: --no-text",
}
_PAIRS = "A classifier also goes behind any cached method that decides: adand+tda, oodd+oga …"
_HEADS = {"method": "Method", "about": "What it is", "runs": "Runs; needs"}
_SETTING_HEADS = {"setting": "Setting", "default": "Default", "range": "Range", "about": "What"}
_CHECK_HEADS = {
    "check": "Check", "outcome": "Result", "evidence": "On what, or what differs first",
}  # fmt: skip


def method_rows(names: Iterable[str]) -> list[Row]:
    """A row for each method: name, what it is, how it runs, what it needs, its paper."""
    return [_row(name, METHODS[name]) for name in names]


def _row(name: str, method: Chosen) -> Row:
    runs = "live" if method.live else "cached", "offline" if method.offline else "online"
    return {
        "method": name,
        "about": _about(method),
        "runs": ", ".join(runs),
        "needs": _needs(method).partition(":")[0],
        "paper": "; ".join(paper.short for paper in _papers(method)),
    }


def _papers(method: Chosen) -> list[Reference]:
    """The articles of a method itself: for a classifier behind ZS-CLIP only the classifier's."""
    is_alone = isinstance(method, Pair) and method.detector is METHODS["zs-clip"]
    cites = method.classifier.cites if isinstance(method, Pair) and is_alone else method.cites
    return [paper for cited in dict.fromkeys(cites) if (paper := find_reference(cited))]


def method_sheet(rows: Sequence[Row]) -> Sheet:
    """The rows of methods as a sheet of texts."""
    lines = [{**row, "runs": "; ".join(filter(None, (row["runs"], row["needs"])))} for row in rows]
    sheet = list_sheet(lines, _HEADS)
    sheet.notes = [_PAIRS]
    return sheet


def _about(method: Chosen) -> str:
    """A method in one sentence: the first line of its class's docstring."""
    if not isinstance(method, Pair):
        return _sentence(method)
    detectors = (name for name, line in METHODS.items() if line is method.detector)
    decides = next(detectors, "a detector")
    return f"{_sentence(method.classifier).removesuffix('.')}; {decides} decides on noise."


def _sentence(line: type[Method] | type[Classifier]) -> str:
    return inspect.cleandoc(line.__doc__ or "").partition("\n")[0]


def _needs(method: Chosen) -> str:
    return "pixels and the encoder" if method.live else _NEEDS.get(method.needs, "")


def _facts(name: str) -> dict[str, str]:
    """All facts about a method, except its settings; those that are none are empty."""
    method = METHODS[name]
    options, row = method.settings(), _row(name, method)
    first, together = options.warm_up, options.at_once
    own = method.fields()
    presets = {p: {n: v for n, v in preset_values(p, name).items() if n in own} for p in PRESETS}
    return {
        "about": row["about"],
        "runs": row["runs"],
        "needs": _needs(method) or "nothing but features and class names",
        "paper": "\n".join(f"{paper.title} ({paper.short})" for paper in _papers(method)),
        "decides": "yes" if method.decides else "no: a score, for --report ood",
        "warm-up": f"{first:,} items, which zs-clip decides ({options.warm_up_by})"
        if first
        else "none: its own rule decides from the first item on",
        "delay": f"up to {together - 1:,} items: {together:,} are decided together"
        if together > 1
        else "none: each item is decided before the next one comes",
        "by default": _values(method.defaults),
        "on ImageNet's family": _values(method.imagenet),
        "presets": "\n".join(f"{preset}: {_values(of)}" for preset, of in presets.items() if of),
        "in pieces": "it decides as items come: zsntta detect, Detector" * method.online,
        "cost": method.cost,
        "how": _how(method),
    }


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', '-')} {_text(value)}" for name, value in values.items())


def _how(method: Chosen) -> str:
    """The docstring of a method's module; of a pair those of both."""
    if isinstance(method, Pair):
        text = f"{_module_text(method.detector)}\n\n{_module_text(method.classifier)}"
    else:
        text = _module_text(method)
    return _JOINED.sub(" ", text)


def _module_text(line: type[Method] | type[Classifier]) -> str:
    if not (issubclass(line, Live) and line.place):
        return inspect.getdoc(sys.modules[line.__module__]) or ""
    place = line.place.partition(":")[0]
    spec = importlib.util.find_spec(f"{methods.__name__}.live.{place}")  # not torch
    assert spec is not None
    assert spec.origin is not None
    return ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""


def _setting_rows(name: str) -> list[Row]:
    """A row for each setting of a method: its default, its range and its help text."""
    method, rows = METHODS[name], []
    for declared in method.fields().values():
        said = declared.metadata
        value = method.defaults.get(declared.name, declared.default)
        rows.append({
            "setting": option_name(declared), "default": said.get("shown") or _text(value),
            "range": _range(declared), "about": said.get("about", ""),
        })  # fmt: skip
    return rows


def _range(declared: "Field[Any]") -> str:
    said, (kind, _) = declared.metadata, value_type(declared)
    if said.get("choices"):
        return ", ".join(said["choices"])
    return str(said.get("within") or {bool: "true, false", str: "a text"}.get(kind, ""))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def card_sheets(name: str) -> list[Sheet]:
    """All facts about a method, then its settings."""
    settings = _setting_rows(name)
    listed = [list_sheet(settings, _SETTING_HEADS, "Settings")] if settings else []
    return [card(name, _facts(name)), *listed]


def card_rows(name: str) -> list[Row]:
    """A row for each setting, for programs; a method without settings has a row with its name."""
    return [{"method": name, **row} for row in _setting_rows(name)] or [{"method": name}]


def check_rows(results: "Mapping[str, Sequence[CheckResult]]") -> list[Row]:
    """A row for each check of a method, for programs."""
    return [{"method": name, **vars(one)} for name, found in results.items() for one in found]


def check_sheet(name: str, results: "Sequence[CheckResult]") -> Sheet:
    """The result of each check of a method, and below it whether all passed."""
    sheet = list_sheet([vars(result) for result in results], _CHECK_HEADS, name)
    counts = Counter(result.outcome for result in results)
    sheet.notes = [f"{name}: {', '.join(f'{n} {outcome}' for outcome, n in counts.items())}."]
    return sheet

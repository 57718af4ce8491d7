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
from zsntta_cli.methods.method import MethodSettings, PairSettings
from zsntta_cli.report.citations import Reference, find_reference
from zsntta_cli.report.sheet import Sheet, SheetRow
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
_HEADS = {
    "method": "Method", "about": "What it is", "runs": "Runs; needs",
}  # fmt: skip
_SETTING_HEADS = {"setting": "Setting", "default": "Default", "range": "Range", "about": "What"}


def method_rows(names: Iterable[str]) -> list[dict[str, Any]]:
    """A row for each method: name, what it is, how it runs, what it needs, its paper."""
    return [_row(name, METHODS[name]) for name in names]


def _row(name: str, method: Chosen) -> dict[str, Any]:
    return {
        "method": name,
        "about": about(method),
        "runs": ", ".join(
            ("live" if method.live else "cached", "offline" if method.offline else "online")
        ),
        "needs": needs(method).partition(":")[0],
        "paper": "; ".join(paper.short for paper in _papers(method)),
    }


def _papers(method: Chosen) -> list[Reference]:
    """The articles of a method itself: for a classifier behind ZS-CLIP only the classifier's."""
    is_alone = isinstance(method, Pair) and method.detector is METHODS["zs-clip"]
    cites = method.classifier.cites if isinstance(method, Pair) and is_alone else method.cites
    return [paper for cited in dict.fromkeys(cites) if (paper := find_reference(cited))]


def method_sheet(rows: Sequence[dict[str, Any]]) -> Sheet:
    """The rows of methods as a sheet of texts."""
    lines = [{**row, "runs": "; ".join(filter(None, (row["runs"], row["needs"])))} for row in rows]
    sheet = _sheet("", _HEADS, lines)
    sheet.notes = [_PAIRS]
    return sheet


def _sheet(title: str, heads: dict[str, str], rows: Sequence[dict[str, Any]]) -> Sheet:
    texts = [SheetRow(tuple(str(row[name]) for name in heads), {}) for row in rows]
    return Sheet(title, tuple(heads.values()), {}, texts)


def about(method: Chosen) -> str:
    """A method in one sentence: the first line of its class's docstring."""
    if not isinstance(method, Pair):
        return _sentence(method)
    detectors = (name for name, line in METHODS.items() if line is method.detector)
    decides = next(detectors, "a detector")
    return f"{_sentence(method.classifier).removesuffix('.')}; {decides} decides on noise."


def _sentence(line: type[Method] | type[Classifier]) -> str:
    return inspect.cleandoc(line.__doc__ or "").partition("\n")[0]


def needs(method: Chosen) -> str:
    """What a method needs besides features and class names."""
    return "pixels and the encoder" if method.live else _NEEDS.get(method.needs, "")


def method_facts(name: str) -> dict[str, Any]:
    """All facts about a method, except its settings."""
    method = METHODS[name]
    options = method.settings()
    return {
        **_row(name, method),
        "needs": needs(method) or "nothing but features and class names",
        "paper": "\n".join(f"{paper.title} ({paper.short})" for paper in _papers(method)),
        "decides": "yes" if method.decides else "no: a score, for --report ood",
        "warm-up": _warm_up(options),
        "delay": _delay(options.at_once - 1),
        "by default": _values(method.defaults),
        "on ImageNet's family": _values(method.imagenet),
        "presets": "\n".join(f"{preset}: {changes}" for preset, changes in _presets(name)),
        "in pieces": "it decides as items come: zsntta detect, OnlineDetector"
        if method.online
        else "",
        "cost": method.cost,
        "how": _how(method),
    }


def _warm_up(options: MethodSettings | PairSettings) -> str:
    first = options.warm_up
    if not first:
        return "none: its own rule decides from the first item on"
    return f"{first:,} items, which zs-clip decides ({options.warm_up_by})"


def _delay(items: int) -> str:
    if not items:
        return "none: each item is decided before the next one comes"
    return f"up to {items:,} items: {items + 1:,} are decided together"


def _values(values: Any) -> str:
    return ", ".join(f"{name.replace('_', '-')} {_text(value)}" for name, value in values.items())


def _presets(name: str) -> list[tuple[str, str]]:
    """How each preset changes the settings of a method."""
    names = METHODS[name].fields()
    changes = {p: {n: v for n, v in preset_values(p, name).items() if n in names} for p in PRESETS}
    return [(preset, _values(values)) for preset, values in changes.items() if values]


def _how(method: Chosen) -> str:
    """The docstring of a method's module."""
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


def setting_rows(name: str) -> list[dict[str, Any]]:
    """A row for each setting of a method: its default, its range and its help text."""
    method = METHODS[name]
    return [_setting(method, declared) for declared in method.fields().values()]


def _setting(method: Chosen, declared: "Field[Any]") -> dict[str, Any]:
    data = declared.metadata
    value = method.defaults.get(declared.name, declared.default)
    return {
        "setting": option_name(declared),
        "default": data.get("shown") or _text(value),
        "range": _range(declared),
        "about": data.get("about", ""),
    }


def _range(declared: "Field[Any]") -> str:
    data, (kind, _) = declared.metadata, value_type(declared)
    if data.get("choices"):
        return ", ".join(data["choices"])
    return str(data.get("within") or {bool: "true, false", str: "a text"}.get(kind, ""))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def card_sheets(name: str) -> list[Sheet]:
    """All facts about a method, then its settings."""
    facts = [{"fact": fact, "text": text} for fact, text in method_facts(name).items() if text]
    settings = setting_rows(name)
    sheets = [_sheet(name, {"fact": "", "text": ""}, facts[1:])]
    return [*sheets, _sheet("Settings", _SETTING_HEADS, settings)] if settings else sheets


def card_rows(name: str) -> list[dict[str, Any]]:
    """A row for each setting, for programs; a method without settings has a row with its name."""
    return [{"method": name, **row} for row in setting_rows(name)] or [{"method": name}]


def check_rows(results: "Mapping[str, Sequence[CheckResult]]") -> list[dict[str, Any]]:
    """A row for each check of a method, for programs."""
    return [{"method": name, **vars(one)} for name, found in results.items() for one in found]


def check_sheet(name: str, results: "Sequence[CheckResult]") -> Sheet:
    """The result of each check of a method, and below it whether all passed."""
    heads = {"check": "Check", "outcome": "Result", "evidence": "On what, or what differs first"}
    sheet = _sheet(name, heads, [vars(result) for result in results])
    counts = Counter(result.outcome for result in results)
    sheet.notes = [f"{name}: {', '.join(f'{n} {outcome}' for outcome, n in counts.items())}."]
    return sheet

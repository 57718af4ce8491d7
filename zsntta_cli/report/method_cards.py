"""Lists and cards of methods: what each is, its settings, its paper, its needs and costs.

All of it comes from its entry in METHODS, the fields of its settings and its docstring.
"""

import ast
import dataclasses
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
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS, Classifier, Method, Pair
from zsntta_cli.report.citations import Reference, find_reference
from zsntta_cli.report.sheet import Sheet, SheetRow
from zsntta_cli.settings.options import option_name, value_type
from zsntta_cli.simulation.runs import PRESETS

if TYPE_CHECKING:
    from zsntta_cli.simulation.checks import CheckResult

_JOINED = re.compile(r"(?<!\n)\n(?!\n|\d\. |- )")  # lines of a paragraph
_NEEDS = {
    WORDS: "words: zsntta extract --words",
    NO_TEXT: "the features of its 'no' text encoder: --no-text",
}
_PAIRS = "A classifier also goes behind any cached method that decides: adand+tda, oodd+oga …"
_HEADS = {
    "method": "Method", "about": "What it is", "runs": "Runs", "needs": "Needs", "paper": "Paper",
}  # fmt: skip
_SETTING_HEADS = {"setting": "Setting", "default": "Default", "range": "Range", "about": "What"}


def method_rows(names: Iterable[str]) -> list[dict[str, Any]]:
    """A row for each method: name, what it is, how it runs, what it needs, its paper."""
    return [_row(name, METHODS[name]) for name in names]


def _row(name: str, method: Method) -> dict[str, Any]:
    return {
        "method": name,
        "about": about(method),
        "runs": ", ".join(
            ("live" if method.live else "cached", "offline" if method.offline else "online")
        ),
        "needs": needs(method).partition(":")[0],
        "paper": "; ".join(paper.short for paper in _papers(method)),
    }


def _papers(method: Method) -> list[Reference]:
    """The articles of a method itself: for a classifier behind ZS-CLIP only the classifier's."""
    is_alone = isinstance(method, Pair) and method.detector is METHODS["zs-clip"]
    cites = method.both[1].cites if isinstance(method, Pair) and is_alone else method.cites
    return [paper for cited in dict.fromkeys(cites) if (paper := find_reference(cited))]


def method_sheet(rows: Sequence[dict[str, Any]]) -> Sheet:
    """The rows of methods as a sheet of texts."""
    sheet = _sheet("", _HEADS, rows)
    sheet.notes = [_PAIRS]
    return sheet


def _sheet(title: str, heads: dict[str, str], rows: Sequence[dict[str, Any]]) -> Sheet:
    texts = [SheetRow(tuple(str(row[name]) for name in heads), {}) for row in rows]
    return Sheet(title, tuple(heads.values()), {}, texts)


def about(method: Method) -> str:
    """A method in one sentence: the first line of its settings' docstring, or of its function's."""
    if not isinstance(method, Pair):
        return _sentence(method)
    detector, classifier = method.both
    decides = next((name for name, line in METHODS.items() if line is detector), "a detector")
    return f"{_sentence(classifier).removesuffix('.')}; {decides} decides on noise."


def _sentence(line: Method | Classifier) -> str:
    for owner in (line.settings_class, line.run):
        text = "" if isinstance(owner, str) else inspect.getdoc(owner) or ""
        if text and not text.startswith(
            f"{getattr(owner, '__name__', '')}("
        ):  # a dataclass without one has that
            return text.partition("\n")[0]
    return ""


def needs(method: Method) -> str:
    """What a method needs besides features and class names."""
    return "pixels and the encoder" if method.live else _NEEDS.get(method.needs, "")


def method_facts(name: str) -> dict[str, Any]:
    """All facts about a method, except its settings."""
    method = METHODS[name]
    options = method.settings_class()
    return {
        **_row(name, method),
        "needs": needs(method) or "nothing but features and class names",
        "paper": "\n".join(f"{paper.title} ({paper.short})" for paper in _papers(method)),
        "decides": "yes" if method.decides else "no: a score, for --report ood",
        "warm-up": _warm_up(method, options),
        "delay": _delay(method.delay(options)),
        "by default": _values(method.defaults),
        "on ImageNet's family": _values(method.imagenet),
        "presets": "\n".join(f"{preset}: {changes}" for preset, changes in _presets(method)),
        "in pieces": "it decides as items come: zsntta detect, OnlineDetector"
        if method.online
        else "",
        "cost": _cost(method),
        "how": _how(method),
    }


def _warm_up(method: Method, options: Any) -> str:
    first = method.warm_up(options)
    if not first:
        return "none: its own rule decides from the first item on"
    return f"{first:,} items, which zs-clip decides ({method.warm_up_by})"


def _delay(items: int) -> str:
    if not items:
        return "none: each item is decided before the next one comes"
    return f"up to {items:,} items: {items + 1:,} are decided together"


def _values(values: Any) -> str:
    return ", ".join(f"{name.replace('_', '-')} {_text(value)}" for name, value in values.items())


def _presets(method: Method) -> list[tuple[str, str]]:
    """How each preset changes the settings of a method."""
    names = {field.name for field in dataclasses.fields(method.settings_class)}
    changes = {p: {n: v for n, v in values.items() if n in names} for p, values in PRESETS.items()}
    return [(preset, _values(values)) for preset, values in changes.items() if values]


def _lines(method: Method) -> tuple[Method | Classifier, ...]:
    return method.both if isinstance(method, Pair) else (method,)


def _cost(method: Method) -> str:
    """The known cost in words; nothing is measured here."""
    return "; ".join(line.cost for line in _lines(method) if line.cost)


def _how(method: Method) -> str:
    """The docstring of a method's module, without an import: a live method would import torch."""
    texts = [_module_text(line.run) for line in _lines(method)]
    return _JOINED.sub(" ", "\n\n".join(filter(None, texts)))


def _module_text(where: Any) -> str:
    if not isinstance(where, str):
        return inspect.getdoc(sys.modules[where.__module__]) or ""
    spec = importlib.util.find_spec(f"{methods.__name__}.{where.partition(':')[0]}")
    assert spec is not None
    assert spec.origin is not None
    return ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""


def setting_rows(name: str) -> list[dict[str, Any]]:
    """A row for each setting of a method: its default, its range and its help text."""
    method = METHODS[name]
    fields: Sequence[Field[Any]] = dataclasses.fields(method.settings_class)
    return [_setting(method, declared) for declared in fields]


def _setting(method: Method, declared: "Field[Any]") -> dict[str, Any]:
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

"""How an option is declared; the options that several commands have.

A parameter of a command has its option as its default value. Options that go together are a group,
a dataclass whose fields have them; so are the classes of settings, whose fields say their default,
help text and range themselves. A command whose parameter is annotated with a group has all of its
options, and gets them as one value.
"""

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.models import OptionInfo

from zsntta_cli.cli import values
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.settings import (
    DATA,
    FEATURES,
    LOCAL,
    EncoderChoice,
    StreamSettings,
    ThresholdSettings,
)
from zsntta_cli.settings.options import check, check_choice, option_name, value_type
from zsntta_cli.simulation.runs import declared, no_setting, setting_names

if TYPE_CHECKING:
    from zsntta_cli.results.selection import Filters
    from zsntta_cli.results.store import Keeping, RecordStore
    from zsntta_cli.simulation.record import Record

Names = list[str] | None
_DEFAULT = re.compile(r"(.*) \[([^\]]*)\]", re.DOTALL)
_WIDEST = 20  # characters of choices that stand in place of NAME
_READERS: dict[str | type, values.Reader] = {  # of settings: by name, or by type
    "fixed": values.thresholds, "ratio": values.ratios, "words": lambda text: [text],
    int: values.whole_numbers, float: values.numbers, bool: values.truths, str: values.texts,
}  # fmt: skip
_METAVARS: dict[values.Reader, str] = {
    values.whole_numbers: "INTEGERS", values.numbers: "NUMBERS", values.ratios: "NUMBERS",
    values.thresholds: "NUMBERS", values.truths: "true|false",
}  # fmt: skip


def option(
    default: Any, about: str, *names: str, reader: values.Reader | None = None,
    panel: str | None = None, **rules: Any,
) -> Any:  # fmt: skip
    """An option, which help shows under the heading `panel`; `rules` are Typer's.

    A help text may end with the default in brackets, if the value itself does not show it. An
    option with a `reader` may be repeated, each text may be a list, and the command gets all
    values.
    """
    if reader:

        def read(param: typer.CallbackParam, texts: list[str] | None) -> list[Any] | None:
            try:
                return [*chain(*map(reader, texts))] if texts else None
            except SettingsError as error:
                raise SettingsError(f"{param.opts[0]}: {error}") from None

        rules = {"callback": read, "metavar": _METAVARS.get(reader, "NAMES"), **rules}
    return typer.Option(default, *names, rich_help_panel=panel, **_help(about), **rules)


def argument(default: Any, about: str, **rules: Any) -> Any:
    """An argument; its text may end with its default, like that of an option."""
    return typer.Argument(default, **{**_help(about), **rules})


def _help(about: str) -> dict[str, Any]:
    """A help text as rich reads it, and whether Typer is to add the default."""
    match = _DEFAULT.fullmatch(about)
    text, default = match.groups() if match else (about, "")
    suffix = f" [dim]\\[default: {default}][/dim]" if default else ""
    return {"help": text.replace("[", r"\[") + suffix, "show_default": not default}


def setting(kind: Any, name: str, **rules: Any) -> Any:
    """The option of a setting; its parameter is None if the option is not given."""
    field = kind.__dataclass_fields__[name]
    default = field.metadata["shown"] or field.default
    suffix = f" [{'none' if default in (None, '') else default}]"
    return _of_setting(field, None, suffix, panel=kind.panel, **rules)


def _of_setting(
    field: "dataclasses.Field[Any]", default: Any, suffix: str = "", **rules: Any
) -> Any:
    """The option of a field of settings, with its range or choices; `suffix` is its default."""
    about, choices = field.metadata["about"].removesuffix("."), field.metadata["choices"]
    if field.metadata["within"] is not None and not field.metadata["checked_by"]:
        about += f" ({field.metadata['within']})"
    if len(few := "|".join(choices)) > _WIDEST:
        about += f": {', '.join(choices)}"
    elif few:
        rules = {"metavar": few, **rules}
    about += "" if about.endswith("…") else "."
    if field.metadata["shown"] and not suffix:
        suffix = f" [{field.metadata['shown']}]"
    has_no = value_type(field)[0] is bool and field.default is not False  # a flag --no-NAME, too
    flags = [] if has_no else [f"--{option_name(field)}"]
    return option(default, about + suffix, *flags, **rules)


# The parameters of a command, as Typer reads them.

_typed = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
USUAL = ("ratio", "seed", "order", "noise", "limit", "ood_items", "fixed")
_fields = chain(dataclasses.fields(StreamSettings), dataclasses.fields(ThresholdSettings))
RARE = tuple(option_name(field) for field in _fields if field.name not in USUAL)  # of --set


def parameters_of(
    command: Callable[..., None],
) -> dict[str, tuple[Any, dict[str, inspect.Parameter]]]:
    """For each parameter of a command, the class of its group, if it has one, and its options.

    `**settings` stand for an option for each usual setting of streams and thresholds.
    """
    groups: dict[str, tuple[Any, dict[str, inspect.Parameter]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        group, options = parameter.annotation, dict[str, inspect.Parameter]()
        if parameter.kind is parameter.VAR_KEYWORD:
            group = dict
            for kind in (StreamSettings, ThresholdSettings):
                for field in dataclasses.fields(kind):
                    if field.name in USUAL:
                        default = setting(kind, field.name, reader=reader_of(field))
                        options[field.name] = _typed(field.name, default=default, annotation=Names)
        elif dataclasses.is_dataclass(group):
            for field in dataclasses.fields(group):
                if field.metadata or isinstance(field.default, OptionInfo):
                    options[field.name] = _of_field(field, getattr(group, "panel", ""))
        else:
            group, options = None, {name: parameter}
        groups[name] = group, options
    return groups


def _of_field(field: "dataclasses.Field[Any]", panel: str) -> inspect.Parameter:
    """The parameter of a field of a group, whose default is its option."""
    kind, default, rules = field.type, field.default, {"panel": panel}
    if typing.get_origin(kind) is tuple:
        kind, rules = list[str], {"metavar": "NAME=PATH", **rules}
    if field.metadata:
        default = _of_setting(field, default, **rules)
    return _typed(field.name, default=default, annotation=kind)


def reader_of(field: "dataclasses.Field[Any]") -> values.Reader:
    """The reader of a setting's values."""
    return _READERS.get(field.name) or _READERS.get(value_type(field)[0], values.texts)


def method_settings(
    texts: Sequence[str] | None,
) -> tuple[dict[str, list[Any]], dict[str, dict[str, list[Any]]]]:
    """The values of --set: of all methods that have a setting, and of single methods.

    "warmup=5,10" is two values for every method that has a warm-up, "tda.mask-low=0,0.1" for TDA.

    Raises:
        SettingsError: a text in another format, an unknown method or setting, or a value of the
            wrong type.
    """
    of_all: dict[str, list[Any]] = {}
    of_one: dict[str, dict[str, list[Any]]] = {}
    for text in texts or ():
        place, equals, value = text.partition("=")
        method, dot, name = place.rpartition(".")
        if not (equals and name) or (dot and not method):
            raise SettingsError(f"set is '{text}', must be SETTING=VALUE or METHOD.SETTING=VALUE.")
        if method:
            check_method(method)
        methods = [method] if method else [*METHODS]
        fields = {option_name(f): f for m in reversed(methods) for f in declared(m).values()}
        check(name in fields, f"{no_setting(name, methods)}.")
        axes = of_one.setdefault(method, {}) if method else of_all
        try:
            axes.setdefault(fields[name].name, []).extend(reader_of(fields[name])(value))
        except SettingsError as error:
            raise SettingsError(f"{name}: {error}") from None
    return of_all, of_one


def single_settings(
    texts: Sequence[str] | None,
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The values of --set as from `method_settings`, but one value for each setting.

    Raises:
        SettingsError: a setting has several values, or as for `method_settings`.
    """
    of_all, of_one = method_settings(texts)
    for axes in (of_all, *of_one.values()):
        for name, several in axes.items():
            typed = name.replace("_", "-")
            check(len(several) == 1, f"--set {typed} has several values, must have one.")
            axes[name] = several[0]
    return of_all, of_one


# Options and groups of several commands.

ENCODER = setting(EncoderChoice, "folder")
FEATURES_DIR = option(FEATURES, "Folder of the feature files.", panel=EncoderChoice.panel)
DATA_ROOT = option(DATA, "Folder of the data sets, also for downloads.")
FRESH = option(False, "Repeat runs even if results are kept.", "--fresh", panel="How it runs")
DRY_RUN = option(
    False, "Only show what would run, what is kept and what is missing.", "--dry-run",
    panel="How it runs",
)  # fmt: skip


@dataclass(frozen=True)
class ModelOptions:
    """Options that name a model and its weights."""

    model: str | None = setting(EncoderChoice, "model", parser=values.in_known_case, metavar="NAME")
    pretrained: str | None = setting(EncoderChoice, "pretrained")
    precision: str | None = setting(EncoderChoice, "precision")

    @property
    def given(self) -> dict[str, str]:
        """The values of the options that were typed, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def names_model(self) -> bool:
        """Whether an encoder is named, and not only a precision."""
        return bool(self.given.keys() - {"precision"})

    def choice(self) -> EncoderChoice:
        """The encoder that is named.

        Raises:
            SettingsError: a folder of features and a model are both named.
        """
        named = self.given
        folder = named.pop("encoder", None)
        if folder and named:
            name, value = next(iter(named.items()))
            raise SettingsError(
                f"encoder is '{folder}' and {name} is '{value}': name the encoder by its folder or "
                f"by its model, not both."
            )
        return EncoderChoice(**named, folder=folder)


@dataclass(frozen=True)
class EncoderOptions(ModelOptions):
    """Options that name an encoder whose features are cached, by model or by folder."""

    encoder: str | None = ENCODER


@dataclass(frozen=True)
class StoreOptions:
    """Options that name the file of kept results."""

    file: Path | None = option(
        None, "File of kept results. [records.sqlite in --features-dir]",
        "--records", panel="How it runs",
    )  # fmt: skip
    features_dir: Path = FEATURES_DIR

    def open(self, create: bool = False) -> "RecordStore":
        """Open the results; `create`: make a file for them where there is none."""
        from zsntta_cli.results.store import STORE, RecordStore

        return RecordStore(self.file or self.features_dir / STORE, create)

    def runs(self, files: Sequence[Path] | None, curves: bool = False) -> "list[Record]":
        """The runs of exported files and stores; also kept ones, if named or if no file is."""
        from zsntta_cli.results.exchange import read_records
        from zsntta_cli.results.store import RecordStore, is_store

        runs: list[Record] = []
        kept = [None] if self.file or not files else []
        for path in (*kept, *(files or ())):
            if path and not is_store(path):
                runs += read_records(path)
                continue
            with RecordStore(path) if path else self.open() as store:
                runs += stored_runs(store, curves).values()
        return runs


def stored_runs(store: "RecordStore", curves: bool = False) -> "dict[str, Record]":
    """All readable runs of a store, by key; a note says how many are unreadable."""
    from zsntta_cli.cli.command import say

    runs = store.find(curves=curves)
    rows = len(store.keys())
    if broken := rows - len(runs):
        say(
            f"note: {broken:,} of {rows:,} rows in {store.path} are left out: damaged, or made by "
            "another version or a method that is not loaded. Run them again, or load the method's "
            "script: zsntta --plugin FILE.py.",
            err=True,
        )
    return runs


@dataclass(frozen=True)
class KeepingOptions(StoreOptions):
    """Options that say where results are kept and whether earlier ones are reused."""

    fresh: bool = FRESH

    def keeping(self) -> "Keeping":
        """How the runs of this command are kept."""
        from zsntta_cli.cli.output import command_line
        from zsntta_cli.results.store import Keeping

        return Keeping.beside(self.features_dir, self.file, self.fresh, command_line())


_chosen = partial(option, None, panel="Runs")


@dataclass(frozen=True)
class WantedRuns:
    """Options that select kept runs; several values of one option are alternatives."""

    method: Names = _chosen("Methods. [all]", reader=values.names)
    preset: Names = _chosen("Presets. [all]", reader=values.names)
    id_set: Names = _chosen("ID sets. [all]", "--id", reader=values.names)
    ood_set: Names = _chosen("OOD sets. [all]", "--ood", reader=values.names)
    ratio: Names = _chosen("Noise ratios. [all]", reader=values.ratios)
    seed: Names = _chosen("Seeds. [all]", reader=values.whole_numbers)
    encoder: Names = _chosen("Encoders, by folder name. [all]", reader=values.names)
    setting: Names = _chosen("Setting as lists show it, such as warmup=10.", metavar="NAME=VALUE")

    @property
    def any(self) -> bool:
        """Whether any of the options is given."""
        return any(vars(self).values())

    def filters(self, runs: "Iterable[Record]") -> "Filters":
        """The wanted values of settings, by name.

        Raises:
            SettingsError: --setting is not NAME=VALUE, or names a setting that neither a known
                method nor any of the runs has.
        """
        from zsntta_cli.results.frame import all_settings, shown

        filters: dict[str, list[Any]] = {
            name.removesuffix("_set"): [*wanted]
            for name, wanted in vars(self).items()
            if wanted and name != "setting"
        }
        names = dict.fromkeys((*setting_names(), "preset", "prompt"))
        for text in self.setting or ():
            name, equals, value = text.partition("=")
            check(bool(equals), f"setting is '{text}', must be NAME=VALUE.")
            name = name.replace("-", "_")
            if name not in names:
                names |= dict.fromkeys(name for run in runs for name in all_settings(run))
            check_choice("setting", name, tuple(names))
            filters.setdefault(name, []).append(shown(name, value))
        return filters


@dataclass(frozen=True)
class JobOptions:
    """Options that say where runs are made."""

    jobs: int | None = option(
        None, "Number of processes for replays, or with ray the maximum number of workers. [1, or "
        "with ray all]",
        panel="How it runs",
    )  # fmt: skip
    engine: str = option(
        LOCAL, "Where to run: local, or ray (the cluster at RAY_ADDRESS).", panel="How it runs"
    )

"""Options that several commands have, and those that come from the settings' dataclasses.

Options that go together are a group, a dataclass of them: a command whose parameter is annotated
with one has them all, and gets them as one value.
"""

import dataclasses
import inspect
import itertools
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli import values
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.settings import (
    FEATURES,
    LOCAL,
    EncoderChoice,
    StreamSettings,
    ThresholdSettings,
)
from zsntta_cli.settings.options import (
    check,
    check_choice,
    option_name,
    value_type,
)
from zsntta_cli.simulation.runs import declared, no_setting, setting_names

if TYPE_CHECKING:
    from zsntta_cli.results.frame import Filters
    from zsntta_cli.results.store import RecordStore
    from zsntta_cli.simulation.record import Record

Reader = Callable[[str], list[Any]]  # of the values that a text stands for
_WIDEST = 20  # characters of choices that stand in place of NAME
_DEFAULT = re.compile(r"(.*) \[([^\]]*)\]", re.DOTALL)
_METAVARS: dict[Reader, str] = {
    values.whole_numbers: "INTEGERS", values.numbers: "NUMBERS", values.ratios: "NUMBERS",
    values.thresholds: "NUMBERS", values.truths: "true|false",
}  # fmt: skip


def option(
    *names: str,
    help: str,  # noqa: A002
    panel: str | None = None,
    reader: Reader | None = None,
    **rules: Any,
) -> Any:
    """An option that the help shows under a heading; `rules` are typer's.

    A help text may end with the default in brackets, where the value of the parameter does not say
    it. An option with a `reader` may be repeated, each text may be a list, and the command gets the
    values of all.
    """
    text, adds_default = _said(help)
    if reader:
        several = {"callback": _all_values, "metavar": _METAVARS.get(reader, "NAMES")}
        rules = {"parser": reader, **several, **rules}
    return typer.Option(
        *names, help=text, show_default=adds_default, rich_help_panel=panel, **rules
    )


def argument(*, help: str, **rules: Any) -> Any:  # noqa: A002
    """An argument; its text may end with its default, as that of an option."""
    text, adds_default = _said(help)
    return typer.Argument(help=text, **{"show_default": adds_default, **rules})


def _said(text: str) -> tuple[str, bool]:
    """A help text as rich reads it, and whether Typer is to add the value of the parameter."""
    match = _DEFAULT.fullmatch(text)
    about, default = match.groups() if match else (text, "")
    shown = f" [dim]\\[default: {default}][/dim]" if default else ""
    return about.replace("[", r"\[") + shown, not default


def _all_values(value: list[list[Any]] | None) -> list[Any] | None:
    """The values of all texts of an option in one list; None where it was not given."""
    return [*itertools.chain(*value)] if value else None


_features = partial(option, panel="On which features")
_how = partial(option, panel="How it runs")
_chosen = partial(option, panel="Runs")
_parameter = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)


def setting(settings: Any, name: str, **rules: Any) -> Any:
    """The option of a field of a settings class, for a parameter that is None by itself."""
    [field] = (field for field in dataclasses.fields(settings) if field.name == name)
    default = field.metadata["shown"] or field.default
    return _of_setting(field, settings.panel, "none" if default in (None, "") else default, **rules)


def _of_setting(
    field: "dataclasses.Field[Any]", panel: str, default: object = "", **rules: Any
) -> Any:
    """The option of a setting, with its range or choices; its parameter may say the default."""
    about, choices = field.metadata["about"].removesuffix("."), field.metadata["choices"]
    if field.metadata["within"] is not None and not field.metadata["checked_by"]:
        about += f" ({field.metadata['within']})"
    if len(few := "|".join(choices)) > _WIDEST:
        about += f": {', '.join(choices)}"
    elif few:
        rules = {"metavar": few, **rules}
    about += "" if about.endswith("…") else "."
    names = [f"--{option_name(field)}"] if value_type(field)[0] is not bool else []  # has a --no-
    shown = f" [{default}]" if default != "" else ""
    return option(*names, help=f"{about}{shown}", panel=panel, **rules)


EncoderName = Annotated[
    str | None, setting(EncoderChoice, "folder", autocompletion=values.cached_encoders)
]
FeaturesDir = Annotated[Path, _features(help="Folder of the feature files.")]
DataRoot = Annotated[Path, option(help="Folder of the data sets, to which they are downloaded.")]
DryRun = Annotated[
    bool, _how("--dry-run", help="Say what would be run, what is kept, what is missing.")
]


@dataclass(frozen=True)
class ModelOptions:
    """What names a model with its weights."""

    model: Annotated[
        str | None,
        setting(EncoderChoice, "model", parser=values.in_known_case, metavar="NAME"),
    ] = None
    pretrained: Annotated[str | None, setting(EncoderChoice, "pretrained")] = None
    precision: Annotated[str | None, setting(EncoderChoice, "precision")] = None

    @property
    def given(self) -> dict[str, str]:
        """The values of the options that the line has, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def names_model(self) -> bool:
        """Whether one encoder is named, and not only the precision of whichever it is."""
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
                f"encoder is '{folder}' and {name} is '{value}': features are of one encoder, so "
                f"name its folder or its model."
            )
        return EncoderChoice(**named, folder=folder)


@dataclass(frozen=True)
class EncoderOptions(ModelOptions):
    """What names an encoder whose features are cached: a model, or a folder of features."""

    encoder: EncoderName = None


@dataclass(frozen=True)
class StoreOptions:
    """File in which results are kept."""

    file: Annotated[
        Path | None,
        _how(
            "--records",
            help="File in which results are kept. [records.sqlite beside the features]",
        ),
    ] = None
    features_dir: FeaturesDir = FEATURES

    def open(self, create: bool = False) -> "RecordStore":
        """Open the results; `create`: make a file for them where there is none."""
        from zsntta_cli.results.store import STORE, RecordStore

        return RecordStore(self.file or self.features_dir / STORE, create)

    def runs(self, files: Sequence[Path] | None, curves: bool = False) -> "list[Record]":
        """The runs of exported files and other stores; kept ones, if named or nothing else is."""
        from zsntta_cli.results.exchange import read_records
        from zsntta_cli.results.store import STORE, RecordStore, is_store

        own = [self.file or self.features_dir / STORE] if self.file or not files else []
        found: list[Record] = []
        for path in [*own, *(files or ())]:
            if path in own or is_store(path):
                with RecordStore(path) as records:
                    found += stored_runs(records, curves).values()
            else:
                found += read_records(path)
        return found


def stored_runs(records: "RecordStore", curves: bool = False) -> "dict[str, Record]":
    """All runs of a store that can be read, by key; a note says how many cannot."""
    from zsntta_cli.cli.command import say

    runs = records.find(curves=curves)
    if broken := records.count() - len(runs):
        say(
            f"note: {broken:,} of {records.count():,} rows in {records.path} are left out: "
            "damaged, or made by another version or by a method that is not loaded here. Run "
            "them again.",
            err=True,
        )
    return runs


@dataclass(frozen=True)
class KeepingOptions(StoreOptions):
    """Where results are kept, and whether those from before count."""

    fresh: Annotated[bool, _how("--fresh", help="Repeat runs that are kept from before.")] = False


@dataclass(frozen=True)
class WantedRuns:
    """Which kept runs are meant: several values of one option are alternatives."""

    method: Annotated[
        list[str] | None,
        _chosen(help="Methods. [all]", reader=values.names, autocompletion=values.known_methods),
    ] = None
    preset: Annotated[list[str] | None, _chosen(help="Presets. [all]", reader=values.names)] = None
    id_set: Annotated[
        list[str] | None, _chosen("--id", help="ID sets. [all]", reader=values.names)
    ] = None
    ood_set: Annotated[
        list[str] | None, _chosen("--ood", help="OOD sets. [all]", reader=values.names)
    ] = None
    ratio: Annotated[
        list[Any] | None, _chosen(help="Noise ratios. [all]", reader=values.ratios)
    ] = None
    seed: Annotated[list[int] | None, _chosen(help="Seeds. [all]", reader=values.whole_numbers)] = (
        None
    )
    encoder: Annotated[
        list[str] | None, _chosen(help="Encoders, by their folders. [all]", reader=values.names)
    ] = None
    setting: Annotated[
        list[str] | None,
        _chosen(help="A setting as lists show it, such as warmup=10.", metavar="NAME=VALUE"),
    ] = None

    @property
    def any(self) -> bool:
        """Whether any of the options is given."""
        return any(vars(self).values())

    def filters(self, runs: "Iterable[Record]") -> "Filters":
        """What the runs are chosen by.

        Raises:
            SettingsError: --setting has another form, or names a setting that neither a method here
                nor any of the runs has.
        """
        from zsntta_cli.results.frame import all_settings

        wanted = {
            "method": self.method, "id": self.id_set, "ood": self.ood_set, "ratio": self.ratio,
            "seed": self.seed, "encoder": self.encoder, "preset": self.preset,
        }  # fmt: skip
        filters = {name: [*values] for name, values in wanted.items() if values}
        names = dict.fromkeys((*setting_names(), "preset", "prompt"))
        for text in self.setting or ():
            name, equals, value = text.partition("=")
            check(bool(equals), f"setting is '{text}', must be NAME=VALUE.")
            name = name.replace("-", "_")
            if name not in names:
                names |= dict.fromkeys(name for run in runs for name in all_settings(run))
            check_choice("setting", name, tuple(names))
            filters.setdefault(name, []).append(value)
        return filters


@dataclass(frozen=True)
class JobOptions:
    """What makes runs."""

    jobs: Annotated[
        int | None,
        _how(help="Processes for replays; with ray, the largest number of workers. [1, or all]"),
    ] = None
    engine: Annotated[str, _how(help="local; or ray, a cluster, which is at RAY_ADDRESS.")] = LOCAL


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of all groups that its parameters are annotated with.

    Its `**settings` stand for an option for each usual setting of streams and thresholds: it gets
    the values of those that are given, by name. An option of several groups stands at the first.
    """
    groups: dict[str, tuple[Any, list[str]]] = {}  # by parameter: its class, its options' names
    single: list[str] = []  # the parameters that are options themselves
    usual: list[str] = []  # settings
    options: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if dataclasses.is_dataclass(parameter.annotation):
            parts = _of_group(parameter.annotation)
            groups[name] = parameter.annotation, [part.name for part in parts]
        elif parameter.kind is parameter.VAR_KEYWORD:
            parts = _stream_settings()
            usual = [part.name for part in parts]
        else:
            parts = [parameter]
            single.append(name)
        for part in parts:
            options.setdefault(part.name, part)

    def call(**given: Any) -> None:
        grouped = {
            name: group(**{part: given[part] for part in parts})
            for name, (group, parts) in groups.items()
        }
        settings = {name: given[name] for name in usual if given[name] is not None}
        command(**{name: given[name] for name in single}, **grouped, **settings)

    for name in ("__module__", "__name__", "__doc__"):
        setattr(call, name, getattr(command, name))
    call.__signature__ = inspect.Signature([*options.values()])  # type: ignore[attr-defined]
    return call


def _of_group(group: Any) -> list[inspect.Parameter]:
    """The options of the fields of a group: of settings, or of annotations that say them."""
    parts = []
    for field in dataclasses.fields(group):
        annotation: Any = field.type
        if field.metadata:
            several = typing.get_origin(annotation) is tuple
            of_field = _of_setting(field, group.panel, **({"metavar": "TEXT"} if several else {}))
            annotation = Annotated[list[str] if several else annotation, of_field]
        if typing.get_origin(annotation) is Annotated:
            parts.append(_parameter(field.name, default=field.default, annotation=annotation))
    return parts


USUAL = ("ratio", "seed", "order", "noise", "limit", "ood_items", "score", "fixed", "queue")
RARE = tuple(
    option_name(field)
    for group in (StreamSettings, ThresholdSettings)
    for field in dataclasses.fields(group)
    if field.name not in USUAL
)  # those of --set alone


def _stream_settings() -> list[inspect.Parameter]:
    """The options of the usual settings of streams and thresholds, which all methods have."""
    parts = []
    for group in (StreamSettings, ThresholdSettings):
        for field in dataclasses.fields(group):
            if field.name in USUAL:
                of_field = setting(group, field.name, reader=reader_of(field))
                annotation = Annotated[list[Any] | None, of_field]
                parts.append(_parameter(field.name, default=None, annotation=annotation))
    return parts


def reader_of(field: "dataclasses.Field[Any]") -> Reader:
    """What reads the values of a setting."""
    own: dict[str, Reader] = {
        "fixed": values.thresholds, "ratio": values.ratios, "words": values.whole,
    }  # fmt: skip
    kinds: dict[Any, Reader] = {
        int: values.whole_numbers, float: values.numbers, bool: values.truths,
    }  # fmt: skip
    return own.get(field.name) or kinds.get(value_type(field)[0], values.texts)


def method_settings(
    texts: Sequence[str],
) -> tuple[dict[str, list[Any]], dict[str, dict[str, list[Any]]]]:
    """The values of --set: of all methods that have a setting, and of single methods.

    "warmup=5,10" is two values for every method that has a warm-up, "tda.shift=0-3" four for TDA.

    Raises:
        SettingsError: a text of another form, an unknown method or setting, or a value of another
            type.
    """
    of_all: dict[str, list[Any]] = {}
    own: dict[str, dict[str, list[Any]]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        method, dot, name = place.rpartition(".")
        if not (equals and name) or (dot and not method):
            raise SettingsError(f"set is '{text}', must be SETTING=VALUE or METHOD.SETTING=VALUE.")
        if method:
            check_method(method)
        methods = [method] if method else [*METHODS]
        fields = {option_name(f): f for m in reversed(methods) for f in declared(m).values()}
        check(name in fields, f"{no_setting(name, methods)}.")
        axes = own.setdefault(method, {}) if method else of_all
        try:
            axes.setdefault(fields[name].name, []).extend(reader_of(fields[name])(value))
        except typer.BadParameter as error:
            raise SettingsError(f"{name}: {error.message}") from None
    return of_all, own

"""Options that several commands have, and those that come from the settings' dataclasses.

Options that go together are a group, a dataclass of them: a command that is `with_groups` has them
all, and gets them as one value.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.line import completion
from zsntta_cli.cli.line.lists import INTEGER, NUMBER, names_in, whole_numbers_in
from zsntta_cli.errors import SettingsError, short
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.results import store_path
from zsntta_cli.settings import (
    DATA,
    FEATURES,
    LOCAL,
    EncoderChoice,
    LiveSettings,
    StreamSettings,
    ThresholdSettings,
)
from zsntta_cli.settings.options import check, check_choice, option_name, value_type
from zsntta_cli.settings.ratios import parse_ratio
from zsntta_cli.simulation.runs import (
    declared,
    no_setting,
    setting_names,
)

if TYPE_CHECKING:
    from zsntta_cli.results.keeping import Keeping
    from zsntta_cli.results.runner import Jobs
    from zsntta_cli.results.store import RecordStore


def under(panel: str | None, text: str, *names: str, **rules: Any) -> Any:
    """An option that the help shows under a heading; `rules` are typer's."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **rules)


live_option = functools.partial(under, "Live methods")  # which alone look at it

EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="Folder name of the encoder's features. [the model's, or all]",
        autocompletion=completion.encoders,
    ),
]
FeaturesDir = Annotated[Path, typer.Option(help="Folder of the feature files.")]
DataRoot = Annotated[
    Path, typer.Option(help="Folder of the data sets, to which they are downloaded.")
]


@dataclass(frozen=True)
class ModelOptions:
    """What names a model with its weights."""

    model: Annotated[
        str | None,
        typer.Option(help="open_clip model name; 'tiny' is the embedded encoder. [ViT-B-16]"),
    ] = None
    pretrained: Annotated[
        str | None,
        typer.Option(
            help="Weights: open_clip tag, path of a checkpoint, or 'none' (random). [openai]"
        ),
    ] = None
    precision: Annotated[
        str | None,
        typer.Option(
            help="fp32, fp16, bf16, or amp: the released code's autocast. [fp32]",
            autocompletion=completion.precisions,
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        """The names of the options that the line has."""
        return [name for name, value in vars(self).items() if value is not None]

    @property
    def is_named(self) -> bool:
        """Whether any of the options is given."""
        return bool(self.given)

    @property
    def names_model(self) -> bool:
        """Whether one encoder is named, and not only the precision of whichever it is."""
        return any(value for name, value in vars(self).items() if name != "precision")

    def choice(self) -> EncoderChoice:
        """The encoder that is named.

        Raises:
            SettingsError: a folder of features and a model are both named.
        """
        named = {name: value for name, value in vars(self).items() if value is not None}
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
        typer.Option(
            "--records", help="File in which results are kept. [records.sqlite beside the features]"
        ),
    ] = None
    features_dir: FeaturesDir = FEATURES

    @property
    def path(self) -> Path:
        """The file of results."""
        return store_path(self.features_dir, self.file)

    def open(self, create: bool = False) -> "RecordStore":
        """Open the results; `create`: make a file for them where there is none."""
        from zsntta_cli.results.store import RecordStore

        return RecordStore(self.path, create)


def say_left_out(records: "RecordStore", read: int) -> None:
    """Say in one note how many rows of a store were not read."""
    from zsntta_cli.cli.line.command import say

    if broken := records.count() - read:
        say(
            f"note: {broken:,} of {records.count():,} rows in {records.path} are left out: "
            "damaged, or made by another version or by a method that is not loaded here. Run "
            "them again.",
            err=True,
        )


@dataclass(frozen=True)
class KeepingOptions(StoreOptions):
    """Where results are kept, and whether those from before count."""

    fresh: Annotated[
        bool, typer.Option("--fresh", help="Repeat runs that are kept from before.")
    ] = False

    def keeping(self) -> "Keeping":
        """How results are kept."""
        from zsntta_cli.cli.line.output import command_line
        from zsntta_cli.results.keeping import Keeping

        return Keeping.beside(self.features_dir, self.file, self.fresh, command_line())


@dataclass(frozen=True)
class JobOptions:
    """What makes runs."""

    jobs: Annotated[
        int | None,
        typer.Option(
            help="Processes for replays; with --engine ray, the largest number of workers. [1, "
            "or all]"
        ),
    ] = None
    engine: Annotated[
        str, typer.Option(help="local; or ray, a cluster, which is at RAY_ADDRESS.")
    ] = LOCAL

    def chosen(self) -> "Jobs":
        """So many processes, or workers of a cluster."""
        from zsntta_cli.results.runner import jobs_of

        return jobs_of(self.jobs, self.engine)


@dataclass(frozen=True)
class LiveOptions:
    """What live methods work with."""

    data_root: Annotated[Path, live_option("Folder of the data sets.")] = DATA
    dataset: Annotated[list[str] | None, live_option("NAME=PATH of a set's images.")] = None
    device: Annotated[str, live_option("auto, cpu, cuda, cuda:1.")] = "auto"
    workers: Annotated[int, live_option("Threads that read images.")] = LiveSettings().workers

    def settings(self, choice: EncoderChoice | None) -> LiveSettings:
        """The settings of live methods; `choice` is an encoder that is named."""
        weights = choice.pretrained if choice and choice.is_file else None
        datasets = tuple(self.dataset or ())
        return LiveSettings(str(self.data_root), datasets, self.device, self.workers, weights)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of all groups that its parameters are annotated with.

    Its `**settings` stand for an option for every setting of streams and thresholds: by name, the
    values given, or none. An option of several parameters stands at the first of them.
    """
    groups: dict[str, Any] = {}
    own: list[str] = []  # names of the options whose values the command gets one by one, in order
    options: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if dataclasses.is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parts = [_part(f.name, _typed(f), f.default) for f in dataclasses.fields(groups[name])]
        elif parameter.kind is parameter.VAR_KEYWORD:
            parts = _stream_settings()
            own += [part.name for part in parts]
        else:
            parts = [parameter]
            own.append(name)
        for part in parts:
            options.setdefault(part.name, part)

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"))
    def call(**values: Any) -> None:
        grouped = {
            name: group(**{field.name: values[field.name] for field in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        command(**grouped, **{name: values[name] for name in own})

    call.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    return call


def _typed(field: "dataclasses.Field[Any]") -> Any:
    """The annotation of a group's option: that of its field, or what a setting's field declares."""
    said = field.metadata
    if not said:
        return field.type
    metavar = "|".join(said["choices"]) or None
    return Annotated[field.type, typer.Option(help=said["about"], metavar=metavar)]


def _part(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


_METAVARS = {int: INTEGER, float: NUMBER, bool: "true|false"}
_ADAPTIVE = "adaptive"  # of thresholds: none is fixed


@functools.cache
def _stream_settings() -> list[inspect.Parameter]:
    """The options of the settings of streams and thresholds, which all methods have."""
    panels = {"Stream": StreamSettings, "Threshold": ThresholdSettings}
    return [
        _part(field.name, _option(field, panel, _default(field, field.default)), None)
        for panel, group in panels.items()
        for field in dataclasses.fields(group)
    ]


def _option(field: "dataclasses.Field[Any]", panel: str, default: str) -> Any:
    kind = str if field.name in _TYPED_OTHERWISE else value_type(field)[0]
    metavar, about = _METAVARS.get(kind, "TEXT"), field.metadata["about"]
    if field.metadata["within"] is not None and not field.metadata["checked_by"]:
        about = f"{about.removesuffix('.')} ({field.metadata['within']})."
    if choices := "|".join(field.metadata["choices"]):
        metavar, about = (choices, about) if len(choices) < 20 else ("NAME", f"{about} {choices}.")
    shown = typer.Option(
        f"--{option_name(field)}",
        help=f"{about} [{default}]",
        metavar=metavar,
        rich_help_panel=panel,
        parser=_truth if kind is bool else None,
        autocompletion=completion.cached_words if field.name == "words" else None,
    )
    typed: Any = str if kind is bool else kind  # of a list of bool, typer makes a flag
    return Annotated[list[typed] | None, shown]


def _truth(text: str) -> bool:
    """A value that is true or false, as people write it."""
    if text.lower() not in ("true", "yes", "false", "no"):
        raise typer.BadParameter(f"'{text}' must be true or false.")
    return text.lower() in ("true", "yes")


def _default(field: "dataclasses.Field[Any]", default: Any) -> str:
    return field.metadata["shown"] or _shown(default)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value in (None, "") else str(value)


def _threshold(text: str) -> float | None:
    """A fixed threshold as a number, the adaptive one as None."""
    if text == _ADAPTIVE:
        return None
    try:
        return float(text)
    except ValueError:
        raise SettingsError(
            f"threshold is {short(ascii(text))}, must be a number such as 0.5, or {_ADAPTIVE}, "
            "which is the default."
        ) from None


# Settings whose values may be words or numbers: how their texts are read.
_TYPED_OTHERWISE: dict[str, Callable[[str], Any]] = {"fixed": _threshold, "ratio": parse_ratio}


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
        method, dot, option = place.rpartition(".")
        if not (equals and option) or (dot and not method):
            raise SettingsError(f"set is '{text}', must be SETTING=VALUE or METHOD.SETTING=VALUE.")
        field = _setting(option, method)
        axes = own.setdefault(method, {}) if method else of_all
        axes.setdefault(field.name, []).extend(_values(field, value))
    return of_all, own


def _setting(option: str, method: str = "") -> "dataclasses.Field[Any]":
    """The setting of a method, or of the first one that has a setting of this name."""
    if method:
        check_method(method)
    methods = [method] if method else list(METHODS)
    fields = {option_name(f): f for m in reversed(methods) for f in declared(m).values()}
    check(option in fields, f"{no_setting(option, methods)}.")
    return fields[option]


def _values(field: "dataclasses.Field[Any]", text: str) -> list[Any]:
    """The values of a setting that a text stands for: one, or a list or range of them."""
    if field.name in _TYPED_OTHERWISE:
        return [_TYPED_OTHERWISE[field.name](one) for one in names_in(text)]
    kind, _ = value_type(field)
    texts = whole_numbers_in(text) if kind is int else names_in(text)
    return [_parsed(option_name(field), kind, one) for one in texts]


def _parsed(option: str, kind: type, text: str) -> Any:
    try:
        return _truth(text) if kind is bool else kind(text)
    except (ValueError, typer.BadParameter):
        words = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
        raise SettingsError(f"{option} is '{text}', must be {words}.") from None


def given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were given at least one value, by name."""
    given = {name: list(values) for name, values in settings.items() if values}
    for name in given.keys() & _TYPED_OTHERWISE.keys():
        given[name] = [_TYPED_OTHERWISE[name](text) for text in given[name]]
    return given


def setting_filters(texts: Sequence[str]) -> dict[str, list[str]]:
    """Values of settings that runs are chosen by, by name: "warmup=10".

    Raises:
        SettingsError: a text of another form.
    """
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f"setting is '{text}', must be NAME=VALUE.")
        values.setdefault(name.replace("-", "_"), []).append(value)
    return values


def check_setting_names(wanted: Iterable[str], of_runs: Iterable[str]) -> None:
    """Refuse a setting that neither a method here nor a run has.

    Raises:
        UnknownName: such a setting.
    """
    names = dict.fromkeys((*setting_names(), "preset", "prompt"))
    for name in wanted:
        if name not in names:
            names |= dict.fromkeys(of_runs)
        check_choice("setting", name, tuple(names))

"""Options that several commands have, and those that come from the settings' dataclasses.

Options that go together are a group, a dataclass of them: a command that is `with_groups` has them
all, and gets them as one value.
"""

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.line import completion
from zsntta_cli.cli.line.values import (
    Several,
    counted_seeds,
    in_known_case,
    numbers,
    texts,
    truths,
    whole_numbers,
)
from zsntta_cli.errors import SettingsError
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
    parse_ratio,
)
from zsntta_cli.settings.options import check, check_choice, option_name, value_type
from zsntta_cli.simulation.runs import (
    declared,
    no_setting,
    setting_names,
)

if TYPE_CHECKING:
    from zsntta_cli.results.keeping import Keeping
    from zsntta_cli.results.runner import Jobs
    from zsntta_cli.results.store import RecordStore


def option(*names: str, help: str, panel: str | None = None, **rules: Any) -> Any:  # noqa: A002
    """An option that the help shows under a heading; `rules` are typer's.

    A text may end with its default in brackets, where the value of the parameter does not say it.
    """
    match = _DEFAULT.fullmatch(help)
    text, default = match.groups() if match else (help, "")
    text = text.replace("[", r"\[")
    default = default or True
    return typer.Option(*names, help=text, show_default=default, rich_help_panel=panel, **rules)


def argument(*, help: str, **rules: Any) -> Any:  # noqa: A002
    """An argument; its text may end with its default, as that of an option."""
    said = option(help=help)
    return typer.Argument(help=said.help, **{"show_default": said.show_default} | rules)


def under(panel: str | None, text: str, *names: str, **rules: Any) -> Any:
    """An option under a heading, which text comes first."""
    return option(*names, help=text, panel=panel, **rules)


def several(
    reader: Callable[[str], Several], panel: str | None, text: str, *names: str, **rules: Any
) -> Any:
    """An option that may be repeated, and whose texts may be lists; `reader` makes their values."""
    kind = _KINDS.get(reader, "NUMBERS" if reader is ratios else "NAMES")
    return option(*names, help=text, panel=panel, parser=reader, metavar=kind, **rules)


_DEFAULT = re.compile(r"(.*) \[([^\]]*)\]", re.DOTALL)
_KINDS: dict[Callable[[str], Several], str] = {
    whole_numbers: "INTEGERS", numbers: "NUMBERS", truths: "true|false", texts: "TEXTS",
}  # fmt: skip
live_option = functools.partial(under, "Live methods")  # which alone look at it

EncoderName = Annotated[
    str | None,
    option(
        "--encoder",
        panel="On which features",
        help="Folder name of the encoder's features. [the model's, or all]",
        autocompletion=completion.encoders,
    ),
]
FeaturesDir = Annotated[
    Path, option(help="Folder of the feature files.", panel="On which features")
]
DataRoot = Annotated[Path, option(help="Folder of the data sets, to which they are downloaded.")]


@dataclass(frozen=True)
class ModelOptions:
    """What names a model with its weights."""

    model: Annotated[
        str | None,
        option(
            panel="On which features",
            help="open_clip model name; 'tiny' is the embedded encoder. [ViT-B-16]",
            parser=in_known_case,
            metavar="NAME",
        ),
    ] = None
    pretrained: Annotated[
        str | None,
        option(
            panel="On which features",
            help="Weights: open_clip tag, path of a checkpoint, or 'none' (random). [openai]",
        ),
    ] = None
    precision: Annotated[
        str | None,
        option(
            panel="On which features",
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
        option(
            "--records",
            panel="How it runs",
            help="File in which results are kept. [records.sqlite beside the features]",
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
        bool, option("--fresh", panel="How it runs", help="Repeat runs that are kept from before.")
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
        option(
            panel="How it runs",
            help="Processes for replays; with --engine ray, the largest number of workers. [1, "
            "or all]",
        ),
    ] = None
    engine: Annotated[
        str, option(panel="How it runs", help="local; or ray, a cluster, which is at RAY_ADDRESS.")
    ] = LOCAL

    def chosen(self) -> "Jobs":
        """So many processes, or workers of a cluster."""
        from zsntta_cli.results.runner import jobs_of

        return jobs_of(self.jobs, self.engine)


@dataclass(frozen=True)
class LiveOptions:
    """What live methods work with."""

    data_root: Annotated[Path, live_option("Folder of the data sets.")] = DATA
    dataset: Annotated[
        list[str] | None, live_option("NAME=PATH of a set's images.", metavar="NAME=PATH")
    ] = None
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
    groups: dict[str, tuple[Any, list[str]]] = {}  # with the names of their options
    own: list[str] = []  # names of the options whose values the command gets one by one, in order
    options: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if dataclasses.is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation, []
            for field in dataclasses.fields(parameter.annotation):
                groups[name][1].append(field.name)
                part = inspect.Parameter(
                    field.name, _BY_NAME, default=field.default, annotation=_typed(field)
                )
                options.setdefault(field.name, part)
        elif parameter.kind is parameter.VAR_KEYWORD:
            for part in _stream_settings():
                own.append(part.name)
                options.setdefault(part.name, part)
        else:
            own.append(name)
            options.setdefault(name, parameter)

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"))
    def call(**values: Any) -> None:
        given: dict[str, Any] = {}
        for name in own:
            given[name] = values[name]
        for name, (group, parts) in groups.items():
            given[name] = group(*map(values.__getitem__, parts))
        command(**given)

    call.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    return call


def _typed(field: "dataclasses.Field[Any]") -> Any:
    """The annotation of a group's option: that of its field, or what a setting's field declares."""
    said = field.metadata
    if not said:
        return field.type
    metavar = "|".join(said["choices"]) or None
    return Annotated[field.type, option(help=said["about"], metavar=metavar, panel="How it runs")]


_BY_NAME = inspect.Parameter.KEYWORD_ONLY
_ADAPTIVE = "adaptive"  # of thresholds: none is fixed


@functools.cache
def _stream_settings() -> list[inspect.Parameter]:
    """The options of the settings of streams and thresholds, which all methods have."""
    parts = []
    for panel, group in (("Stream", StreamSettings), ("Threshold", ThresholdSettings)):
        for field in dataclasses.fields(group):
            kind = Annotated[list[Any] | None, _setting_option(field, panel)]
            parts.append(inspect.Parameter(field.name, _BY_NAME, default=None, annotation=kind))
    return [*parts, inspect.Parameter("seeds", _BY_NAME, default=None, annotation=Seeds)]


Seeds = Annotated[
    list[Any] | None,
    option("--seeds", help="Number of seeds: 5 stands for --seed 0-4.", panel="Stream",
           parser=counted_seeds, metavar="N"),
]  # fmt: skip


def _setting_option(field: "dataclasses.Field[Any]", panel: str) -> Any:
    """The option of a setting, with its range, its choices and its default."""
    reader, about = reader_of(field), field.metadata["about"]
    if field.metadata["within"] is not None and not field.metadata["checked_by"]:
        about = f"{about.removesuffix('.')} ({field.metadata['within']})."
    metavar = _KINDS.get(reader, "NUMBERS")
    if choices := field.metadata["choices"]:
        short = "|".join(choices)
        listed = f"{about.removesuffix('.')}: {', '.join(choices)}."
        metavar, about = (short, about) if len(short) < 20 else ("NAMES", listed)
    default = field.metadata["shown"] or field.default
    if default in (None, ""):
        default = "none"
    elif isinstance(default, bool):
        default = "true" if default else "false"
    return option(
        f"--{option_name(field)}", help=f"{about} [{default}]", panel=panel, parser=reader,
        metavar=metavar,
    )  # fmt: skip


def ratios(text: str) -> Several:
    """Noise ratios: numbers in [0, 1), or natural.

    Raises:
        BadParameter: a part is neither.
    """
    try:
        return Several(map(parse_ratio, texts(text)))
    except SettingsError as error:
        raise typer.BadParameter(str(error)) from None


def thresholds(text: str) -> Several:
    """Fixed thresholds as numbers, the adaptive one as None.

    Raises:
        BadParameter: a part is neither.
    """
    return Several(
        None if part == _ADAPTIVE else one
        for part in texts(text)
        for one in ([None] if part == _ADAPTIVE else numbers(part))
    )


def whole(text: str) -> Several:
    """A text as it is: names between commas that stand for one value."""
    return Several([text])


def reader_of(field: "dataclasses.Field[Any]") -> Callable[[str], Several]:
    """What reads the values of a setting."""
    own = {"fixed": thresholds, "ratio": ratios, "words": whole}.get(field.name)
    kinds = {int: whole_numbers, float: numbers, bool: truths}
    return own or kinds.get(value_type(field)[0], texts)


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
    try:
        return reader_of(field)(text)
    except typer.BadParameter as error:
        raise SettingsError(f"{option_name(field)}: {error.message}") from None


def given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of streams and thresholds that were given at least one value, by name."""
    given: dict[str, Any] = {}
    for name, values in settings.items():
        if values:
            given[name] = list(values)
    if seeds := given.pop("seeds", None):
        given["seed"] = [*given.get("seed", ()), *seeds]
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
        SettingsError: such a setting.
    """
    names = dict.fromkeys((*setting_names(), "preset", "prompt"))
    for name in wanted:
        if name not in names:
            names |= dict.fromkeys(of_runs)
        check_choice("setting", name, tuple(names))

"""Options that several commands have, and those that come from the settings' dataclasses.

Options that go together are a group, a dataclass of them: a command that is `with_groups` has them
all, and gets them as one value.
"""

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.line import completion
from zsntta_cli.cli.line.command import Command
from zsntta_cli.cli.line.lists import INTEGER, NUMBER
from zsntta_cli.errors import SettingsError, first_of, short
from zsntta_cli.methods import METHODS, NO_TEXT, check_method, find_method
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
    meant_setting,
    methods_with,
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

    Its `**settings` stand for an option for every setting of streams and thresholds, and of the
    methods that a line names: by name, the values given, or none. Such a command has a parameter
    `ctx`. An option of several parameters stands at the first of them.
    """
    groups: dict[str, Any] = {}
    own: list[str] = []  # names of the options whose values the command gets one by one, in order
    options: dict[str, inspect.Parameter] = {}
    takes_settings = False
    for name, parameter in inspect.signature(command).parameters.items():
        if dataclasses.is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parts = [_part(f.name, f.type, f.default) for f in dataclasses.fields(groups[name])]
        elif parameter.kind is parameter.VAR_KEYWORD:
            takes_settings, parts = True, _stream_settings()
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
        of_methods = values["ctx"].meta[OF_METHODS] if takes_settings else {}
        command(**grouped, **{name: values[name] for name in own}, **of_methods)

    call.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    if takes_settings:
        call.command_class = MethodCommand  # type: ignore[attr-defined]
    return call


class MethodCommand(Command):
    """A command that also has the settings of the methods that its line names."""

    def further_params(self, args: list[str]) -> list[Any]:
        """The options of the methods that are named; others are not imported."""
        methods = named_methods(args)
        if any(word.partition("=")[0] == "--from" for word in args):  # a record's files are named
            methods += [name for name, method in METHODS.items() if method.needs == NO_TEXT]
        return setting_options(methods)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the values of these options together, where the command finds them."""
        rest = super().parse_args(ctx, args)
        names = {parameter.name for parameter in self.params}
        ctx.meta[OF_METHODS] = {name: ctx.params.pop(name) for name in {*ctx.params} - names}
        return rest

    def foreign(self, option: str, args: Sequence[str], has_near: bool) -> str:
        """What is said of an option that is, or is nearly, a setting of methods not named.

        `has_near`: the command has an option of a similar name, which is said instead.
        """
        from zsntta_cli.errors import UnknownName

        name, chosen = option.removeprefix("--"), named_methods(args)
        for typed in typed_methods(args):
            if typed != _ALL and not find_method(typed):  # whose setting it may be
                return str(UnknownName("method", typed, tuple(METHODS))).removesuffix(".")
        having = methods_with(name)
        if having and not chosen:
            having_it = first_of(having, _MOST_METHODS)
            return f"{name} is a setting of {having_it}: add --method {having[0]}"
        if having:
            return no_setting(name, chosen)
        meant = "" if has_near else meant_setting(name, chosen).replace("mean '", "mean '--")
        return meant and f"there is no option {short(option)}{meant}"


OF_METHODS = f"{__name__}.of_methods"  # in a context: the settings of the line's methods
_ALL = "all"


def typed_methods(args: Sequence[str]) -> list[str]:
    """What the words of a line name with --method, each once."""
    names: dict[str, None] = {}
    for word, following in itertools.zip_longest(args, args[1:], fillvalue=""):
        option, equals, value = word.partition("=")
        if option == "--method":
            names |= dict.fromkeys((value if equals else following).split(","))
    return list(names)


def named_methods(args: Sequence[str]) -> list[str]:
    """The known methods among them."""
    names = typed_methods(args)
    if _ALL in names:
        return list(METHODS)
    return [name for name in names if find_method(name)]


def setting_options(methods: Sequence[str]) -> list[Any]:
    """The options of the settings that some methods have beside those of streams and thresholds."""
    common = {part.name for part in _stream_settings()}
    names = dict.fromkeys(name for method in methods for name in declared(method))
    parts = [_part(name, _annotation(name, methods), None) for name in names if name not in common]

    def of_settings() -> None:
        pass

    of_settings.__signature__ = inspect.Signature(parts)  # type: ignore[attr-defined]
    maker = typer.Typer(add_completion=False)  # typer makes options of a command's parameters
    maker.command()(of_settings)
    options: list[Any] = typer.main.get_command(maker).params
    return options


def _part(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


_METAVARS = {int: INTEGER, float: NUMBER, bool: "true|false"}
_MOST_METHODS = 3  # that a help text names
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


def _annotation(name: str, methods: Sequence[str]) -> Any:
    """The option of a setting of some methods, under the name of the one that has it."""
    having = [method for method in methods if name in declared(method)]
    panel = f"Method {having[0]}" if len(having) == 1 else "Several methods"
    return _option(declared(having[0])[name], panel, _defaults(name, having))


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


def _defaults(name: str, methods: Sequence[str]) -> str:
    """Default of a setting; by method where these differ."""
    by_value: dict[str, list[str]] = {}
    for method in methods:
        field = declared(method)[name]
        default = _default(field, METHODS[method].defaults.get(name, field.default))
        by_value.setdefault(default, []).append(method)
    if len(by_value) == 1:
        return next(iter(by_value))
    usual, *others = sorted(by_value, key=lambda text: -len(by_value[text]))
    return "; ".join(
        [usual, *(f"{text} for {first_of(by_value[text], _MOST_METHODS)}" for text in others)]
    )


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


def own_settings(texts: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """Values meant for one method: "tent.learning-rate=1e-3" by method and setting.

    Raises:
        SettingsError: a text of another form, an unknown method or setting, or a value of another
            type.
    """
    own: dict[str, dict[str, list[Any]]] = {}
    for text in texts:
        left, equals, value = text.partition("=")
        method, dot, option = left.rpartition(".")
        if not (equals and dot):
            raise SettingsError(f"set is '{text}', must be METHOD.SETTING=VALUE.")
        field = _setting(option, method)
        own.setdefault(method, {}).setdefault(field.name, []).append(_value(field, value))
    return own


def _setting(option: str, method: str = "") -> "dataclasses.Field[Any]":
    """The setting that an option names, of a method or of the first one that has it."""
    if method:
        check_method(method)
    methods = [method] if method else list(METHODS)
    fields = {option_name(f): f for m in reversed(methods) for f in declared(m).values()}
    check(option in fields, f"{no_setting(option, methods)}.")
    return fields[option]


def _value(field: "dataclasses.Field[Any]", text: str) -> Any:
    """A setting's value, of what was typed."""
    if field.name in _TYPED_OTHERWISE:
        return _TYPED_OTHERWISE[field.name](text)
    return _parsed(option_name(field), value_type(field)[0], text)


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

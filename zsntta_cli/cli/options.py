"""Options that several commands have, and those that come from the settings' dataclasses."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from zsntta_cli.cli import completion
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.settings import EncoderChoice, LiveSettings, StreamSettings, ThresholdSettings
from zsntta_cli.settings.options import check_choice, option_name, value_type
from zsntta_cli.simulation.runs import declared, setting_names

Model = Annotated[
    str | None,
    typer.Option(help="open_clip model name; 'tiny' is the embedded encoder. [ViT-B-16]"),
]
Pretrained = Annotated[
    str | None,
    typer.Option(help="Weights: open_clip tag, path of a checkpoint, or 'none' (random). [openai]"),
]
Precision = Annotated[str | None, typer.Option(help="fp32, fp16 or bf16. [fp32]")]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="Folder name of the encoder's features. [the model's, or all]",
        autocompletion=completion.encoders,
    ),
]
FeaturesDir = Annotated[Path, typer.Option(help="Where feature files lie.")]
Records = Annotated[
    Path | None,
    typer.Option("--records", help="Where results are kept. [records.sqlite beside the features]"),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run again what was kept from before.")]
DataRoot = Annotated[Path, typer.Option(help="Where data sets lie or are downloaded.")]


def live_option(text: str, *names: str) -> Any:
    """An option that live methods alone look at."""
    return typer.Option(*names, help=text, rich_help_panel="Live methods")


LiveDataRoot = Annotated[Path, live_option("Where data sets lie.")]
LiveDatasets = Annotated[list[str] | None, live_option("NAME=PATH of a set's images.")]
LiveDevice = Annotated[str, live_option("auto, cpu, cuda, cuda:1.")]
LiveWorkers = Annotated[int, live_option("Threads that read images.")]
LIVE_WORKERS = LiveSettings().workers


def live_settings(
    choice: EncoderChoice | None,
    data_root: Path,
    datasets: Sequence[str] | None,
    device: str,
    workers: int,
) -> LiveSettings:
    """What live methods work with, of the options; `choice` is an encoder that is named."""
    weights = choice.pretrained if choice and choice.is_file else None
    return LiveSettings(str(data_root), tuple(datasets or ()), device, workers, weights)


def chosen_encoder(
    model: str | None, pretrained: str | None, precision: str | None, folder: str | None = None
) -> EncoderChoice:
    """The encoder that the options name.

    Raises:
        SettingsError: a folder of features and a model are both named.
    """
    given = {"model": model, "pretrained": pretrained, "precision": precision}
    named = {name: value for name, value in given.items() if value is not None}
    if folder and named:
        raise SettingsError(
            f"encoder is '{folder}' and {next(iter(named))} is '{next(iter(named.values()))}': "
            f"features are of one encoder, so name its folder or its model."
        )
    return EncoderChoice(**named, folder=folder)


_NO = object()  # stands for the type of a setting that is true or false: a list of it, no flag
_METAVARS = {int: "INTEGER", float: "NUMBER", _NO: "true|false"}
_ADAPTIVE = "adaptive"  # of thresholds: none is fixed


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """A command with an option for every setting of streams, thresholds and methods.

    They take the place of its `**settings`: by name, the values given, or none.
    """
    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *_parameters()]
    )
    return command


def _parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(name, panel)
        )
        for panel, names in setting_panels().items()
        for name in names
    ]


def setting_panels() -> dict[str, list[str]]:
    """Names of all settings by the heading that their options stand under."""
    panels: dict[str, list[str]] = {
        "Stream": [f.name for f in dataclasses.fields(StreamSettings)],
        "Threshold": [f.name for f in dataclasses.fields(ThresholdSettings)],
    }
    placed = {name for names in panels.values() for name in names}
    several: list[str] = []
    for name in setting_names():
        if name not in placed:
            having = _having(name)
            shared = not all(having[0] in method for method in having)  # adand in adand+tda
            (several if shared else panels.setdefault(f"Method {having[0]}", [])).append(name)
    return {**panels, "Several methods": several}


def _having(name: str) -> list[str]:
    return [method for method in METHODS if name in declared(method)]


def _annotation(name: str, panel: str) -> Any:
    first = declared(_having(name)[0])[name]
    kind: Any = _NO if value_type(first)[0] is bool else value_type(first)[0]
    kind = str if name == "fixed" else kind
    metavar, about = _METAVARS.get(kind, "TEXT"), first.metadata["about"]
    if choices := "|".join(first.metadata["choices"]):
        metavar, about = (choices, about) if len(choices) < 20 else ("NAME", f"{about} {choices}.")
    shown = typer.Option(
        f"--{option_name(first)}",
        help=f"{about} [{_defaults(name)}]",
        metavar=metavar,
        rich_help_panel=panel,
        parser=_truth if kind is _NO else None,
        autocompletion=completion.cached_words if name == "words" else None,
    )
    return Annotated[list[str if kind is _NO else kind] | None, shown]  # type: ignore[misc]


def _truth(text: str) -> bool:
    """A value that is true or false, as people write it."""
    if text.lower() not in ("true", "yes", "false", "no"):
        raise typer.BadParameter(f"'{text}' must be true or false.")
    return text.lower() in ("true", "yes")


def _defaults(name: str) -> str:
    """Default of a setting; by method where these differ."""
    by_value: dict[str, list[str]] = {}
    for method in _having(name):
        field = declared(method)[name]
        default = METHODS[method].defaults.get(name, field.default)
        text = field.metadata["shown"] or _shown(default)
        by_value.setdefault(text, []).append(method)
    if len(by_value) == 1:
        return next(iter(by_value))
    usual, *others = sorted(by_value, key=lambda text: -len(by_value[text]))
    return "; ".join([usual, *(f"{', '.join(by_value[text])} {text}" for text in others)])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value in (None, "") else str(value)


def threshold_values(values: Sequence[str]) -> list[float | None]:
    """Fixed thresholds as numbers, the adaptive one as None."""
    return [None if value == _ADAPTIVE else _parsed("fixed", float, value) for value in values]


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
        name, kind = _setting(method, option)
        parsed = threshold_values([value])[0] if name == "fixed" else _parsed(option, kind, value)
        own.setdefault(method, {}).setdefault(name, []).append(parsed)
    return own


def _setting(method: str, option: str) -> tuple[str, type]:
    """The name and type of a method's setting, from that of its option."""
    check_method(method)
    names = {option_name(field): field for field in declared(method).values()}
    check_choice(f"the setting of {method}", option, tuple(names))
    return names[option].name, value_type(names[option])[0]


def _parsed(option: str, kind: type, text: str) -> Any:
    try:
        return _truth(text) if kind is bool else kind(text)
    except (ValueError, typer.BadParameter):
        words = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
        raise SettingsError(f"{option} is '{text}', must be {words}.") from None


def given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were given at least one value, by name."""
    given = {name: list(values) for name, values in settings.items() if values}
    if "fixed" in given:
        given["fixed"] = threshold_values(given["fixed"])
    return given

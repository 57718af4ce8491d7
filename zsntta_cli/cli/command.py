"""How commands are registered, and how a line ends: every error becomes one line here."""

import glob
import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import typer

from zsntta_cli.errors import SettingsError, ZsnttaError, first_line, first_of, printable

HELP = {"help_option_names": ["-h", "--help"]}
_RESUMABLE = ("detect", "extract", "get", "demo", "simulate", "run", "paper")
# What people type for an option of this program.
_MEANT = {
    "--noise-ratio": "--ratio", "--id-dataset": "--id", "--ood-dataset": "--ood",
    "--id-set": "--id", "--ood-set": "--ood", "--out": "--output", "--seeds": "--seed 0-4",
}  # fmt: skip
_OF_PROGRAM = ("--plugin", "--debug", "--version")
_PROPOSED = re.compile(r"zsntta extract .*?(?= && |[.]?$)")
_OUTPUTS = ("output", "review", "scores")  # parameters that name a file to write
Function = Callable[..., None]


class Debugging:
    """Whether errors show their tracebacks (--debug)."""

    is_on = False


def group(help_text: str, lists: bool = False) -> typer.Typer:
    """A group of commands; with `lists`, its bare name runs its command `list`."""
    app = typer.Typer(
        help=help_text, rich_markup_mode="rich", add_completion=False, context_settings=HELP,
        no_args_is_help=not lists,
    )  # fmt: skip
    if lists:

        @app.callback(invoke_without_command=True, help=help_text)
        def listed(ctx: typer.Context) -> None:
            if ctx.invoked_subcommand is None:
                group_of: Any = ctx.command
                with group_of.commands["list"].make_context("list", [], parent=ctx) as within:
                    within.command.invoke(within)

    return app


def command(
    app: typer.Typer, name: str | None = None, panel: str | None = None
) -> Callable[[Function], Function]:
    """Register a function as a command, by its own name or another one.

    Its errors become one line, with exit code 2 for wrong usage, 130 for Ctrl-C and 1 for others.
    With --debug they are raised unchanged.
    """
    from zsntta_cli.cli.options import parameters_of

    def register(function: Function) -> Function:
        groups = parameters_of(function)

        def call(**typed: Any) -> None:
            try:
                _check_outputs(typed)
                arguments = dict[str, Any]()
                for parameter, (group, options) in groups.items():
                    values = dict(zip(options, map(typed.get, options), strict=True))
                    if group is dict:
                        arguments |= {name: v for name, v in values.items() if v is not None}
                    else:
                        arguments[parameter] = group(**values) if group else values[parameter]
                function(**arguments)
            except KeyboardInterrupt as error:
                kept = ": finished work is kept; run the same command to resume"
                _end(f"interrupted{kept * (function.__name__ in _RESUMABLE)}.", 130, error)
            except (ZsnttaError, OSError, MemoryError) as error:
                if isinstance(error, BrokenPipeError) or Debugging.is_on:  # `| head` has enough
                    raise
                line = f"{first_line(error)}."
                if isinstance(error, ZsnttaError):
                    of_function = typed["ctx"].params if "ctx" in typed else {}
                    line = completed(str(error), {**typed, **of_function})
                elif isinstance(error, MemoryError):
                    line = "there is not enough memory."
                _end(f"error: {line}", 2 if isinstance(error, SettingsError) else 1, error)

        call.__name__ = function.__name__
        parameters = list[inspect.Parameter]()
        for _, options in groups.values():
            parameters += options.values()
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        lines = inspect.cleandoc(function.__doc__ or "")
        words = re.sub(r"(?<!\n)\n(?!\n)", " ", lines)  # a paragraph is one line
        app.command(name, help=words, rich_help_panel=panel, context_settings=HELP)(call)
        return function

    return register


def _check_outputs(typed: Mapping[str, Any]) -> None:
    """Refuse an output that is a file which the same line reads or writes: it would be replaced.

    Raises:
        SettingsError: such an output.
    """
    for name in _OUTPUTS:
        output = typed.get(name)
        if not output or (os.path.exists(output) and not os.path.isfile(output)):
            continue
        others = (value for other, value in typed.items() if other != name)
        for text in chain(*(value if isinstance(value, list) else [value] for value in others)):
            named = _named_files(str(text)) if isinstance(text, str | Path) else ()
            if any(_is_same(output, path) for path in named):
                raise SettingsError(
                    f"--{name} {output} would replace {text}, which this command also names: "
                    "choose another file to write."
                )


def _named_files(text: str) -> Iterator[str]:
    """The files that a text may name: by itself, as NAME=PATH, or as a pattern."""
    path = os.path.expanduser(text)
    return filter(None, (path, text.partition("=")[2], *glob.glob(path)))


def _is_same(output: Path, path: str) -> bool:
    """Whether two paths name one file, which need not exist."""
    if os.path.exists(output) and os.path.exists(path):
        return os.path.samefile(output, path)
    return os.path.abspath(output) == os.path.abspath(path)


def usage(error: typer.TyperException, words: Mapping[str, Any]) -> str:
    """A line about wrong usage, empty if help was shown; `words` are the commands by name."""
    ctx: Any = getattr(error, "ctx", None)
    message = str(getattr(error, "format_message", error.__str__)()).replace("Value error, ", "")
    if not message:
        return ""
    if name := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
        message = _other_option(name, ctx, words) or message
    stop = "" if message.endswith("?") else "."
    path = ctx.command_path if ctx else "zsntta"
    return f"error: {printable(message).rstrip('.')}{stop} See {path} -h."


def _other_option(name: str, ctx: Any, words: Mapping[str, Any]) -> str:
    """What to type for an option that a command does not have, where that is known."""
    from zsntta_cli.simulation.runs import methods_with

    options = {option for parameter in ctx.command.params for option in parameter.opts}
    if name in _OF_PROGRAM:
        return f"{name} goes before the command: zsntta {name} …"
    if ctx.parent is None:
        return f"{name} goes after the command, as in zsntta {next(iter(words))} {name}"
    if name in _MEANT and _MEANT[name].split()[0] in options:
        return f"there is no option {name}: type {_MEANT[name]}"
    setting = name.strip("-")
    if "--set" in options and (having := methods_with(setting)):
        return f"{setting} is a setting of {first_of(having, 3)}: type --set {setting}=VALUE"
    return ""


def completed(text: str, typed: Mapping[str, Any]) -> str:
    """The text, with the user's own options added to the extractions that it proposes."""
    start = text.find("type zsntta ")
    if start < 0 or not _PROPOSED.search(text, start):
        return text
    from zsntta_cli.cache.lacking import encoder_of
    from zsntta_cli.encoders.weights import misspelt
    from zsntta_cli.settings import DATA, FEATURES, EncoderChoice

    if question := misspelt(typed["model"]) if typed.get("model") else "":
        return text[:start] + question
    folder, features = typed.get("encoder"), Path(typed.get("features_dir") or FEATURES)
    named = {n: typed[n] for n in ("model", "pretrained", "precision") if typed.get(n)}
    choice = encoder_of(folder, features) if isinstance(folder, str) else EncoderChoice(**named)
    if choice is None:
        lacks = text[:start].removesuffix("or ").rstrip(" ,:")
        advice = "is not an encoder that can be loaded here: zsntta encoders lists them"
        return f"{lacks}: '{folder}' {advice}"
    options = [choice.options] if choice.options else []
    for name, usual in (("features_dir", FEATURES), ("data_root", DATA)):
        if (path := Path(typed.get(name) or usual)) != usual:
            options.append(f"--{name.replace('_', '-')} {shlex.quote(str(path))}")

    def whole(match: re.Match[str]) -> str:
        return " ".join([match[0], *(o for o in options if o.split()[0] not in match[0])])

    return _PROPOSED.sub(whole, text)


def _end(line: str, code: int, error: BaseException) -> NoReturn:
    """One line on stderr, and the exit code."""
    drop_unwritten()
    say(line, err=True)
    raise SystemExit(code) from error


def say(line: str, err: bool = False) -> None:
    """Print a line; names in it may come from anywhere."""
    typer.echo(printable(line), err=err)


def drop_unwritten() -> None:
    """Try once to write what waits for stdout, and discard it if that fails (a full disk)."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

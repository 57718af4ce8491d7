"""How commands are registered, and how a line ends: every error becomes one line here."""

import functools
import glob
import inspect
import itertools
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import typer

from zsntta_cli.cli.line.values import Several
from zsntta_cli.errors import SettingsError, ZsnttaError, first_line, first_of, printable
from zsntta_cli.settings import DATA, FEATURES, EncoderChoice

HELP = {"help_option_names": ["-h", "--help"]}
_RESUMABLE = ("detect", "extract", "get", "demo", "simulate", "run", "paper")
# What people type for an option of this program.
_MEANT = {
    "--noise-ratio": "--ratio", "--id-dataset": "--id", "--ood-dataset": "--ood",
    "--id-set": "--id", "--ood-set": "--ood", "--out": "--output",
}  # fmt: skip
# A command that a text proposes: what makes or imports features.
_PROPOSED = re.compile(r"(type )(zsntta (?:extract|cache import) .*?)(?=[.]?$)")
_OF_ENCODER = ("model", "pretrained", "precision")
_OUTPUTS = ("output", "review", "scores")  # parameters that name a file to write
_OF_PROGRAM = ("--plugin", "--debug", "--version")


class Debugging:
    """Whether errors show their tracebacks (--debug)."""

    is_on = False


def group(help_text: str, lists: bool = False) -> typer.Typer:
    """A group of commands of one subject; `lists`: its bare name runs its command `list`."""
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


Registered = Callable[[Callable[..., None]], Callable[..., None]]


def command(app: typer.Typer, name: str | None = None, panel: str | None = None) -> Registered:
    """Register a function as a command, by its own name or another one."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        lines = inspect.cleandoc(function.__doc__ or "")
        words = re.sub(r"(?<!\n)\n(?!\n)", " ", lines)  # a paragraph is one line
        app.command(name, help=words, rich_help_panel=panel, context_settings=HELP)(
            _guarded(function)
        )
        return function

    return register


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors are one line: exit code 2 on wrong usage, 1 on others, 130 on Ctrl-C.

    It gets the values of an option that may be repeated as one list.
    """

    @functools.wraps(function)
    def call(**values: Any) -> None:
        for name, value in values.items():
            if isinstance(value, list) and isinstance(next(iter(value), None), Several):
                values[name] = [*itertools.chain(*value)]
        try:
            _check_outputs(values)
            function(**values)
        except ZsnttaError as error:
            if Debugging.is_on:
                raise
            given = {**values, **values["ctx"].params} if "ctx" in values else values
            code = 2 if isinstance(error, SettingsError) else 1
            end(f"error: {completed(str(error), given)}", code, error)
        except KeyboardInterrupt as error:
            kept = ": what was finished is kept; the same command resumes"
            end(f"interrupted{kept if function.__name__ in _RESUMABLE else ''}.", 130, error)
        except (OSError, MemoryError) as error:
            if isinstance(error, BrokenPipeError) or Debugging.is_on:  # `| head` has seen enough
                raise
            end(f"error: {foreign(error)}", 1, error)

    return call


def _check_outputs(values: Mapping[str, Any]) -> None:
    """Refuse an output that is a file which the same line reads or writes: it would be replaced.

    Raises:
        SettingsError: such an output.
    """
    for name in _OUTPUTS:
        if not (output := values.get(name)) or not os.path.isfile(output):
            continue
        for other, value in values.items():
            named = [] if other == name else value if isinstance(value, list) else [value]
            for file in named:
                # NAME=PATH and a pattern name files, too
                text = str(file)
                paths = text, text.partition("=")[2], *glob.glob(text if "*" in text else "")
                if isinstance(file, str | Path) and any(_is_same(output, path) for path in paths):
                    raise SettingsError(
                        f"--{name} {output} is a file that this line names as {file} too, and "
                        f"would replace it: name another file to write."
                    )


def _is_same(one: Path, other: str) -> bool:
    try:
        return os.path.samefile(one, os.path.expanduser(other))
    except (OSError, ValueError):  # it is not there, or no path
        return False


def usage(error: typer.TyperException, words: "Mapping[str, Any]") -> str:
    """A line on wrong usage, none where help was shown; `words` are the commands by name."""
    ctx: Any = getattr(error, "ctx", None)
    message = str(getattr(error, "format_message", error.__str__)()).replace("Value error, ", "")
    if not message:
        return ""
    if name := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
        message = _other_option(name, ctx, words) or message
    path = ctx.command_path if ctx else "zsntta"
    stop = "" if message.endswith("?") else "."
    return f"error: {printable(message).rstrip('.')}{stop} See {path} -h."


def _other_option(name: str, ctx: Any, words: Mapping[str, Any]) -> str:
    """What to type for an option that a command does not have, where that is known."""
    from zsntta_cli.simulation.runs import methods_with

    options = {option for parameter in ctx.command.params for option in parameter.opts}
    if name in _OF_PROGRAM:
        return f"{name} stands before the command: zsntta {name} …"
    if ctx.parent is None:
        return f"{name} stands behind a command, as in zsntta {next(iter(words))} {name}"
    if _MEANT.get(name) in options:
        return f"there is no option {name}: type {_MEANT[name]}"
    if "--set" in options and (having := methods_with(name.strip("-"))):
        setting = name.strip("-")
        return f"{setting} is a setting of {first_of(having, 3)}: type --set {setting}=VALUE"
    return ""


def completed(text: str, given: Mapping[str, Any]) -> str:
    """A text whose proposed commands have the options of the user's own line that they lack."""
    match = _PROPOSED.search(text)
    if match is None:
        return text
    from zsntta_cli.cache.lacking import encoder_of, encoder_options
    from zsntta_cli.encoders.weights import misspelt

    if question := misspelt(given["model"]) if given.get("model") else "":
        return text[: match.start()] + question
    root = Path(given.get("features_dir") or FEATURES)
    named = {name: given[name] for name in _OF_ENCODER if isinstance(given.get(name), str)}
    folder = given.get("encoder")
    choice = encoder_of(folder, root) if isinstance(folder, str) else EncoderChoice(**named)
    commands = []
    for command_ in match[2].split(" && "):
        options = [f"--features-dir {shlex.quote(str(root))}"] if root != FEATURES else []
        data_root = Path(given.get("data_root") or DATA)
        if choice is None and folder:  # whose encoder nothing here knows
            words = shlex.split(command_)
            values = [*itertools.pairwise(words)]
            further = [f"--prompt {shlex.quote(v)}" for name, v in values if name == "--prompt"]
            by = " ".join([f"--encoder {shlex.quote(folder)} --features FILE", *further])
            sets = [v.removesuffix("=PATH") for name, v in values if name == "--dataset"]
            imports = (f"zsntta cache import {shlex.quote(name)} {by}" for name in sets)
            command_ = " && ".join(imports) or command_
        if "zsntta extract" in command_:
            options += [encoder_options(choice)] if choice and "--model" not in command_ else []
            options += [f"--data-root {shlex.quote(str(data_root))}"] if data_root != DATA else []
        words = [one for one in options if one and one.partition(" ")[0] not in command_]
        commands.append(" ".join([command_, *words]))
    return text[: match.start()] + match[1] + " && ".join(commands) + text[match.end() :]


def end(line: str, code: int, error: BaseException) -> NoReturn:
    """One line on stderr, and the exit code."""
    drop_unwritten()
    typer.echo(printable(line), err=True)
    raise typer.Exit(code) from error


def say(line: str, err: bool = False) -> None:
    """A line; names in it may come from anywhere."""
    typer.echo(printable(line), err=err)


def foreign(error: OSError | MemoryError) -> str:
    """What to say of an error that the machine gives and no other place words."""
    return f"{first_line(error)}." if isinstance(error, OSError) else "there is not enough memory."


def drop_unwritten() -> None:
    """Where stdout takes nothing more (a full disk), let go of what waits: it is tried once."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

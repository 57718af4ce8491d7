"""How every command parses, shows its help, and ends: all errors become one line here."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from zsntta_cli import plugins
from zsntta_cli.cli.line.lists import written_out
from zsntta_cli.cli.line.pages import (
    EXAMPLES,
    REPEATED,
    SHORT_PAGES,
    described,
    notation,
    placeholder,
)
from zsntta_cli.cli.line.usage import LINE, said_of
from zsntta_cli.errors import SettingsError, ZsnttaError, first_line, printable

_UsageError: Any = typer.BadParameter.__mro__[1]  # click's, wherever typer keeps it
_RESUMABLE = ("detect", "extract", "get", "demo", "simulate", "run", "paper")
_GIVEN = f"{__name__}.given"  # in a context: the parameters of the line, in order
_ALL = f"{__name__}.all"  # in a context: the help is to be of all options
_HELP = {"help_option_names": ["-h", "--help"]}


class Command(TyperCommand):
    """A command whose options stand under headings, each given once unless it may be repeated."""

    def __init__(self, *args: Any, **values: Any) -> None:
        values["context_settings"] = _HELP | (values.get("context_settings") or {})
        super().__init__(*args, **values)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is given twice, where the second would silently win."""
        _load_declared()
        ctx.meta[_ALL], args = _whole_page(args)
        with _usage_in_a_line(ctx):
            args = written_out(args, _by_name(super().get_params(ctx)))
            ctx.meta[LINE] = args
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            for parameter, times in Counter(order).items():
                if times > 1 and isinstance(parameter, TyperOption) and not parameter.multiple:
                    raise misused(f"{parameter.opts[0]} is given {times} times: once is enough.")
            if not any(parameter.is_eager for parameter in order):  # --help is of all options
                ctx.meta[_GIVEN] = order
            rest: list[str] = super().parse_args(ctx, args)
        ctx.params = {p.name: p.default for p in self.params if p.expose_value} | ctx.params
        return rest

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments; of a line that is read, those that it has.

        typer builds a validator for each; a default needs none: it is of its option's type.
        """
        parameters = super().get_params(ctx)
        order = ctx.meta.get(_GIVEN)
        if order is None:
            return parameters
        return [p for p in parameters if p in order or p.required or p.callback]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line: [OPTIONS] and the arguments, in brackets if optional."""
        del ctx
        arguments = [p for p in self.params if not isinstance(p, TyperOption)]
        names = [(placeholder(argument), argument.required) for argument in arguments]
        return ["[OPTIONS]", *(name if required else f"[{name}]" for name, required in names)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Options under the headings that they name, in order; of a short page, under its own."""
        _write_examples(ctx, formatter)
        short = {} if ctx.meta.get(_ALL) else SHORT_PAGES.get(ctx.info_name, {})
        heading_of = {option: heading for heading in short for option in short[heading]}
        panels: dict[str, list[tuple[str, str]]] = {heading: [] for heading in short}
        parameters = self.get_params(ctx)
        for parameter in parameters:
            if record := parameter.get_help_record(ctx):
                is_option = isinstance(parameter, TyperOption)
                panel = getattr(parameter, "rich_help_panel", None)
                panel = panel or ("Options" if is_option else "Arguments")
                if short:
                    panel = next((heading_of[o] for o in parameter.opts if o in heading_of), None)
                name, about = record
                name = notation(name) if is_option else placeholder(parameter)
                if is_option and parameter.multiple and not name.endswith(REPEATED):
                    name = f"{name} {REPEATED}"
                if panel is not None:
                    panels.setdefault(panel, []).append((name, described(about)))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)
        if any(name.endswith(REPEATED) for rows in panels.values() for name, _ in rows):
            formatter.write_paragraph()
            formatter.write_text(f"What is marked {REPEATED} may be given several times.")
        if short:
            with formatter.section(f"All {len(parameters)} options"):
                formatter.write_text(f"{ctx.command_path} -h --all")

    def invoke(self, ctx: Any) -> Any:
        """Run it; exit with 2 on wrong usage, 1 on another ZsnttaError, 130 on Ctrl-C."""
        try:
            with _usage_in_a_line(ctx):
                return super().invoke(ctx)
        except ZsnttaError as error:
            if ctx.find_root().params.get("debug"):
                raise
            from zsntta_cli.cli.line.hints import worded

            code = 2 if isinstance(error, SettingsError) else 1
            end(f"error: {worded(error, ctx.params)}", code, error)
        except KeyboardInterrupt as error:
            resumable = ctx.info_name in _RESUMABLE
            kept = ": what was finished is kept; the same command resumes" if resumable else ""
            end(f"interrupted{kept}.", 130, error)
        except (OSError, MemoryError) as error:
            is_pipe = isinstance(error, BrokenPipeError)  # `| head` has seen enough: no error
            if is_pipe or ctx.find_root().params.get("debug"):
                raise
            end(f"error: {foreign(error)}", 1, error)


def _load_declared() -> None:
    """Add what installed distributions declare, before options are made of it."""
    import_module("zsntta_cli.methods")
    import_module("zsntta_cli.datasets.catalogue")
    plugins.load_declared(lambda words: say(f"note: {words}", err=True))


def _whole_page(args: list[str]) -> tuple[bool, list[str]]:
    """Whether a line asks for help on all options, and the line without the word for that."""
    if "--all" not in args or not {"-h", "--help"} & {*args}:
        return False, args
    return True, [word for word in args if word != "--all"]


def _by_name(parameters: Iterable[Any]) -> dict[str, Any]:
    """The options among parameters by what introduces them, as `--seed`."""
    return {name: p for p in parameters if isinstance(p, TyperOption) for name in p.opts}


@contextmanager
def _usage_in_a_line(ctx: Any) -> Iterator[None]:
    """Wrong usage as a line; exit code 2."""
    try:
        yield
    except _UsageError as error:
        message = said_of(error).rstrip(".")
        stop = "" if message.endswith("?") else "."  # click asks: Did you mean …?
        end(f"error: {message}{stop} See {ctx.command_path} -h.", 2, error)


def _write_examples(ctx: Any, formatter: Any) -> None:
    """Lines to type."""
    path = ctx.command_path.removeprefix(ctx.find_root().command_path).strip()
    with formatter.section("Examples"):
        for example in EXAMPLES[path]:
            formatter.write_text(example)


def misused(message: str) -> Exception:
    """The error of options that do not go together, or of one that is missing."""
    error: Exception = _UsageError(message)
    return error


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


class Group(TyperGroup):
    """A group of commands; where none is named, `default` is run, or the help is shown."""

    default = ""

    def __init__(self, *args: Any, **values: Any) -> None:
        values["context_settings"] = _HELP | (values.get("context_settings") or {})
        super().__init__(*args, **values)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Lines to type, below the commands."""
        _write_examples(ctx, formatter)

    def make_context(self, *args: Any, **values: Any) -> Any:
        """Parse; Ctrl-C meanwhile is said, where typer would end without a word."""
        try:
            return super().make_context(*args, **values)
        except KeyboardInterrupt as error:
            end("interrupted.", 130, error)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command in where there is none, or show the help and end."""
        if all(word.startswith("-") for word in args):  # else that is a command's
            _, args = _whole_page(args)
        if not (args or self.default or ctx.resilient_parsing):
            typer.echo(ctx.get_help())
            ctx.exit()
        bare = not args or (args[0].startswith("-") and args[0] not in ("-h", "--help"))
        with _usage_in_a_line(ctx):
            given = [self.default, *args] if self.default and bare else args
            ctx.meta[LINE] = given
            return super().parse_args(ctx, given)

    def invoke(self, ctx: Any) -> Any:
        """Run a command of the group; one that is not there is wrong usage."""
        try:
            with _usage_in_a_line(ctx):
                return super().invoke(ctx)
        except KeyboardInterrupt as error:  # before the command runs
            end("interrupted.", 130, error)


class ListUnasked(Group):
    """A group whose bare name lists."""

    default = "list"


def group(help_text: str, lists: bool = False) -> typer.Typer:
    """A group of commands of one subject; `lists`: bare, it lists."""
    kind = ListUnasked if lists else Group
    return typer.Typer(cls=kind, help=help_text, rich_markup_mode=None, add_completion=False)

"""`zsntta report`, and the command that repeats runs, as its page shows it."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.line.command import say
from zsntta_cli.cli.line.options import StoreOptions, say_left_out, with_groups
from zsntta_cli.cli.line.output import PAGES, form_of, put
from zsntta_cli.datasets import default_prompt
from zsntta_cli.errors import counted
from zsntta_cli.report.page import TITLE
from zsntta_cli.settings import PAPER_ENCODERS, TINY, EncoderChoice
from zsntta_cli.settings.options import option_name
from zsntta_cli.simulation.runs import PRESETS, RunSettings, declared

if TYPE_CHECKING:
    from zsntta_cli.results.kept import Kept

_STDOUT = Path("-")
_SQLITE = b"SQLite format 3\0"  # how a store begins


@with_groups
def report(
    *,
    records: Annotated[
        list[Path] | None,
        typer.Argument(help="Exported records (JSON Lines) or stores. [the store]"),
    ] = None,
    store: StoreOptions,
    output: Annotated[Path, typer.Option(help="File to write; '-': stdout.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Title of the page.")] = TITLE,
) -> None:
    """Write kept results as one HTML page.

    It has tables, paired tests and plots, and loads nothing from elsewhere.
    """
    from zsntta_cli.report.page.page import page

    if output != _STDOUT:
        form_of(output, PAGES, default="html")
    kept = _kept(records or [], store)
    drawn = page(kept, repeat_command, title)
    for words in drawn.left_out:
        say(f"note: left out: {words}.", err=True)
    put(drawn.html, output if output != _STDOUT else None)
    if output != _STDOUT:
        size = len(drawn.html.encode())
        runs, rows = counted(drawn.runs, "run"), counted(drawn.rows, "row")
        say(f"{output}: {runs} in {rows}, {size / 1000:,.0f} kB")


def _kept(paths: list[Path], store: StoreOptions) -> "Iterator[Kept]":
    """Runs of all files that are named; of the store, where it is named or nothing else is."""
    from zsntta_cli.results.exchange import read_lines

    if store.file is not None or not paths:
        yield from _stored(store.path)
    for path in paths:
        yield from _stored(path) if _is_store(path) else read_lines(path)


def _stored(path: Path) -> "Iterator[Kept]":
    from zsntta_cli.results.store import RecordStore

    with RecordStore(path) as opened:
        read = 0
        for kept in opened.all():
            read += 1
            yield kept
        say_left_out(opened, read)


def _is_store(path: Path) -> bool:
    """Whether a file begins as a store does; what cannot be read is for its reader to say."""
    from zsntta_cli.files import open_regular

    try:
        with open(open_regular(path), "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def repeat_command(runs: Sequence[RunSettings], script: str = "") -> str:
    """The command that runs again what differs in seed and OOD set alone, all of it.

    `script` is the file that a method of one's own is in.
    """
    first = runs[0]
    preset, changed = _nearest_preset(first)
    words = [f"--method={first.method}", *_encoder_words(first.encoder), f"--id={first.id_set}"]
    words += [f"--ood={name}" for name in dict.fromkeys(run.ood_set for run in runs) if name]
    words += [f"--preset={preset}"] * (preset != "paper")
    words += [f"--prompt={first.prompt}"] * (first.prompt != default_prompt(first.id_set))
    words += [f"--ratio={first.stream.ratio}"]
    words += [f"--seed={seed}" for seed in dict.fromkeys(run.stream.seed for run in runs)]
    plugin = [f"--plugin={script}"] * bool(script)
    return shlex.join(["zsntta", *_spaced(plugin), "simulate", *_spaced([*words, *changed])])


def _spaced(words: Sequence[str]) -> list[str]:
    """Options apart from their values, as people write them; but for values that look like one."""
    pairs = [word.partition("=") for word in words]
    return [
        word
        for option, _, value in pairs
        for word in ([f"{option}={value}"] if value.startswith("-") else [option, value])
    ]


def _encoder_words(folder: str) -> list[str]:
    choices = {choice.slug: choice for choice in (EncoderChoice(TINY), *PAPER_ENCODERS)}
    if folder not in choices:
        return [f"--encoder={folder}"]
    default, choice = EncoderChoice(), choices[folder]
    return [f"--model={choice.model}"] * (choice.model != default.model)


def _nearest_preset(run: RunSettings) -> tuple[str, list[str]]:
    """The preset that leaves the fewest options to say, and these."""
    candidates: list[tuple[str, list[str]]] = []
    for name in PRESETS:
        words = _beside(name, run)
        if words == []:
            return name, words
        candidates += [(name, words)] if words else []
    return min(candidates, key=lambda pair: len(pair[1]), default=("paper", []))


def _beside(preset: str, run: RunSettings) -> list[str] | None:
    """The options that make a preset's run this one; None where no option can say a value."""
    from zsntta_cli.results.tidy import differing_settings  # which imports NumPy

    words = []
    for name, value in differing_settings(run, preset).items():
        if name not in ("ratio", "seed"):
            if value is None and name != "fixed":
                return None
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words.append(f"--{_option(run.method, name)}={'adaptive' if value is None else text}")
    return words


def _option(method: str, name: str) -> str:
    """The option of a setting."""
    fields = declared(method)
    return option_name(fields[name]) if name in fields else name.replace("_", "-")

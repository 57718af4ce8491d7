"""What there is to take: `zsntta datasets` (where to get one, is it whole), `zsntta encoders`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.command import command, group, say
from zsntta_cli.cli.options import DataRoot, FeaturesDir, argument, option
from zsntta_cli.cli.output import ListForm, ListOutput, put_list
from zsntta_cli.cli.values import known_set
from zsntta_cli.datasets.names import SetName
from zsntta_cli.errors import DatasetError, ZsnttaError, counted
from zsntta_cli.settings import (
    DATA,
    FEATURES,
    OPENAI,
    PAPER_ENCODERS,
    TINY,
    EncoderChoice,
    ExtractSettings,
    known_folders,
)

if TYPE_CHECKING:
    from zsntta_cli.datasets.catalogue import DatasetEntry

app = group("List, show, fetch and verify the known data sets.", lists=True)
encoders = group("List encoders, and fetch their weights.", lists=True)

_WORKERS = ExtractSettings().workers


@command(app, "list")
def list_sets(
    data_root: DataRoot = DATA,
    features_dir: FeaturesDir = FEATURES,
    form: ListForm = None,
    output: ListOutput = None,
) -> None:
    """List the known sets, and which are on disk or cached.

    [bold]zsntta datasets list[/bold]
    """
    from zsntta_cli.datasets import CATALOGUE
    from zsntta_cli.report.lists import SETS, set_rows
    from zsntta_cli.report.sheet import list_sheet

    rows = set_rows(CATALOGUE, data_root, features_dir)
    put_list([list_sheet(rows, SETS)], rows, form, output)


@command(app)
def show(
    name: Annotated[str, argument(help="A known set.")],
    data_root: DataRoot = DATA,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Show where to get a set, and the commands to type.

    [bold]zsntta datasets show svhn[/bold]

    It also shows its size, its terms and its layout on disk.
    """
    from zsntta_cli.datasets import known
    from zsntta_cli.report.lists import set_card

    name = known_set(name)
    entry = known(name)
    advice = _advice(name, entry, data_root)
    put_list([set_card(name, entry, data_root, features_dir, advice)], [], None, None)


@command(app)
def get(
    names: Annotated[list[str], argument(help="Known sets.")],
    data_root: DataRoot = DATA,
    mirror: Annotated[str, option(help="Address with the same files, as ADDRESS/FILE.")] = "",
) -> None:
    """Fetch known sets, and verify them.

    [bold]zsntta datasets get svhn[/bold]

    A fetch goes on where it was cut off. The exit code is 1 if a set is not there.
    """
    from zsntta_cli.datasets import download, known
    from zsntta_cli.progress import ConsoleReporter

    names = [*map(known_set, names)]
    entries = {name: known(name) for name in names}  # unknown ones are refused before the first
    failures = {}
    for name, entry in entries.items():
        try:
            for line in download.fetch(name, entry, data_root, ConsoleReporter(), mirror):
                say(f"{name}: {line}")
        except ZsnttaError as error:
            failures[name] = str(error)
            say(f"{name}: {failures[name]}", err=True)
    if failures:
        raise DatasetError(
            f"{len(failures)} of {len(entries)} sets are not there as published: "
            f"{', '.join(failures)}."
        )


@command(app, "verify")
def verify_set(
    name: Annotated[str, argument(help="A known set, NAME=PATH, or of the hub.")],
    deep: Annotated[bool, option("--deep", help="Open every image.")] = False,
    workers: Annotated[int, option(min=1, help="Threads that open images.")] = _WORKERS,
    data_root: DataRoot = DATA,
) -> None:
    """Read a set and compare it with the catalogue.

    [bold]zsntta datasets verify cifar10[/bold]

    It is fetched if it can be. The exit code is 1 if it is bad.
    """
    from zsntta_cli.datasets import CATALOGUE, known, load_images, verify
    from zsntta_cli.datasets.names import SetName
    from zsntta_cli.progress import ConsoleReporter

    name = known_set(name)
    parsed = SetName.parse(name)
    entry = CATALOGUE.get(parsed.base) if parsed.says_where else known(name)
    images, broken = load_images(name, data_root), []
    if deep:
        with ConsoleReporter().track(images.name, len(images)) as advance:
            for line in verify.broken(images, advance, workers):
                say(f"broken: {line}")
                broken.append(line)
    wrong = list(verify.problems(images, entry))
    if broken:
        wrong.append(f"{counted(len(broken), 'broken image')} (the first is {broken[0]})")
    if wrong:
        raise DatasetError(f"{images.name}: {'; '.join(wrong)}.")
    count = len(images.class_names)
    classes = counted(count, "class", "classes") if count else "no classes"
    opened = ", every image opened" if deep else ""
    say(f"{images.name}: {counted(len(images), 'image')}, {classes}{opened}: ok")
    for note in verify.facts(images):
        say(f"note: {note}", err=True)


@command(encoders, "list")
def list_encoders(
    features_dir: FeaturesDir = FEATURES, form: ListForm = None, output: ListOutput = None
) -> None:
    """List encoders: embedded, the paper's, cached.

    [bold]zsntta encoders list[/bold]
    """
    from zsntta_cli.cache.folder import described, encoder_names
    from zsntta_cli.report.sheet import list_sheet

    cached = {
        folder: [file.path.stem for file in described(features_dir, folder)]
        for folder in encoder_names(features_dir)
    }
    listed = [choice.slug for choice in (EncoderChoice(TINY), *PAPER_ENCODERS)]
    rows = []
    for slug in dict.fromkeys([*listed, *cached]):
        choice = known_folders().get(slug, EncoderChoice(folder=slug))
        sets = ", ".join(cached.get(slug, [])) or "none"
        options = choice.options or "(the default)"
        options = "--encoder FOLDER" if choice.folder else options
        rows.append({"folder": slug, "options": options, "cached_sets": sets})
    heads = {"folder": "Folder", "options": "Options", "cached_sets": "Cached sets"}
    put_list([list_sheet(rows, heads)], rows, form, output)
    typer.echo("Any other model of open_clip: --model NAME --pretrained TAG or PATH.", err=True)


@command(encoders, "get")
def get_weights(
    models: Annotated[
        list[str] | None, argument(help="open_clip model names. [the paper's three]")
    ] = None,
    pretrained: Annotated[str, option(help="Tag of their weights.")] = OPENAI,
) -> None:
    """Fetch the weights of encoders beforehand, as for a machine without a network.

    [bold]zsntta encoders get ViT-B-16[/bold]

    They go to the hub's cache, from where every command takes them. Copied there (to $HF_HOME, or
    ~/.cache/huggingface), they serve another machine.
    """
    from zsntta_cli.encoders.weights import fetch

    for model in models or [choice.model for choice in PAPER_ENCODERS]:
        say(f"{model} {pretrained}: {fetch(EncoderChoice(model, pretrained))}")


def _advice(name: str, entry: "DatasetEntry", data_root: Path) -> dict[str, str]:
    """What lies there of a known set, and what one types with it."""
    place = entry.place(data_root)
    there = f"{place}" if place else "not there" if entry.layout else "built in"
    typed = name + ":fog:1" * (bool(entry.parameters) and not SetName.parse(name).parameters)
    commands = [f"zsntta datasets verify {typed}", f"zsntta extract --dataset {typed}"]
    if entry.role != "ood":
        commands.append(f"zsntta simulate --method zs-clip,adand --id {typed}")
    return {
        "on disk": there,
        "to get it": _way_to_get(name, entry, data_root) if not place else "",
        "commands": "\n".join(commands),
    }


def _way_to_get(name: str, entry: "DatasetEntry", data_root: Path) -> str:
    if not entry.layout:
        return "nothing to do: it is built in"
    if entry.downloads:
        return f"nothing to do: verify and extract download it to {data_root}, with its checksum"
    if entry.files:
        return f"zsntta datasets get {name.partition(':')[0]}"
    return "download it from its home and lay it out as above, then verify"

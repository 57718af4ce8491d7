"""What is available: `zsntta datasets` (list, show, download, verify) and `zsntta encoders`."""

from pathlib import Path

import typer

from zsntta_cli.cli.command import command, group, say
from zsntta_cli.cli.options import DATA_ROOT, FEATURES_DIR, Names, argument, option
from zsntta_cli.cli.output import TableOutput
from zsntta_cli.cli.values import known_set
from zsntta_cli.datasets.names import SetName
from zsntta_cli.errors import DatasetError, ZsnttaError, counted
from zsntta_cli.settings import (
    OPENAI,
    PAPER_ENCODERS,
    TINY,
    EncoderChoice,
    ExtractSettings,
    known_folders,
)

app = group("List, show, download and verify known data sets.", lists=True)
encoders = group("List encoders and download their weights.", lists=True)


@command(app, "list")
def list_sets(
    data_root: Path = DATA_ROOT, features_dir: Path = FEATURES_DIR, *, listed: TableOutput
) -> None:
    """List known sets, and show which are on disk or cached.

    [bold]zsntta datasets list[/bold]
    """
    from zsntta_cli.datasets import CATALOGUE
    from zsntta_cli.report.lists import SETS, set_rows
    from zsntta_cli.report.sheet import list_sheet

    rows = set_rows(CATALOGUE, data_root, features_dir)
    listed.put([list_sheet(rows, SETS)], rows)


@command(app)
def show(
    name: str = argument(..., "Known set."),
    data_root: Path = DATA_ROOT,
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Show where to get a set and which commands to type.

    [bold]zsntta datasets show svhn[/bold]

    It also shows the size, the terms and the layout on disk.
    """
    from zsntta_cli.datasets import known
    from zsntta_cli.report.lists import set_card

    name = known_set(name)
    entry = known(name)
    place = entry.place(data_root)
    there = f"{place}" if place else "no" if entry.layout else "built in"
    to_get = ""
    if not entry.layout:
        to_get = "nothing to do: it is built in"
    elif not place and entry.downloads:
        to_get = f"nothing to do: verify and extract download it to {data_root} and check it"
    elif not place and entry.files:
        to_get = f"zsntta datasets get {name.partition(':')[0]}"
    elif not place:
        to_get = "download it from its home page, arrange it as shown above, then verify"
    typed = name + ":fog:1" * (bool(entry.parameters) and not SetName.parse(name).parameters)
    commands = [f"zsntta datasets verify {typed}", f"zsntta extract --dataset {typed}"]
    if entry.role != "ood":
        commands.append(f"zsntta simulate --method zs-clip,adand --id {typed}")
    advice = {"on disk": there, "to get it": to_get, "commands": "\n".join(commands)}
    TableOutput(None, None).put([set_card(name, entry, data_root, features_dir, advice)], [])


@command(app)
def get(
    names: list[str] = argument(..., "Known sets."),
    data_root: Path = DATA_ROOT,
    mirror: str = option("", "URL of a mirror, which has the files at URL/FILE."),
) -> None:
    """Download known sets and verify them.

    [bold]zsntta datasets get svhn[/bold]

    An interrupted download resumes where it stopped. The exit code is 1 if a set fails.
    """
    from zsntta_cli.datasets import download, known
    from zsntta_cli.progress import ConsoleReporter

    entries = {name: known(name) for name in map(known_set, names)}  # unknown ones are refused
    failures = []
    for name, entry in entries.items():
        try:
            for line in download.fetch(name, entry, data_root, ConsoleReporter(), mirror):
                say(f"{name}: {line}")
        except ZsnttaError as error:
            failures.append(name)
            say(f"{name}: {error}", err=True)
    if failures:
        raise DatasetError(
            f"{len(failures)} of {len(entries)} sets are missing or incomplete: "
            f"{', '.join(failures)}."
        )


@command(app, "verify")
def verify_set(
    name: str = argument(..., "Known set, NAME=PATH, or a set of the hub."),
    deep: bool = option(False, "Open every image.", "--deep"),
    workers: int = option(ExtractSettings().workers, "Number of threads that open images.", min=1),
    data_root: Path = DATA_ROOT,
) -> None:
    """Read a set and compare it with the catalogue.

    [bold]zsntta datasets verify cifar10[/bold]

    It is downloaded first if possible. The exit code is 1 if a check fails.
    """
    from zsntta_cli.datasets import CATALOGUE, known, load_images, verify
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
def list_encoders(features_dir: Path = FEATURES_DIR, *, listed: TableOutput) -> None:
    """List the embedded encoder, the paper's and cached ones.

    [bold]zsntta encoders list[/bold]
    """
    from zsntta_cli.cache.folder import described, encoder_names
    from zsntta_cli.report.sheet import list_sheet

    sets: dict[str, list[str]] = {c.slug: [] for c in (EncoderChoice(TINY), *PAPER_ENCODERS)}
    for folder in encoder_names(features_dir):
        sets[folder] = [file.path.stem for file in described(features_dir, folder)]
    rows = []
    for folder, names in sets.items():
        choice = known_folders().get(folder)
        options = (choice.options or "(the default)") if choice else "--encoder FOLDER"
        cached = ", ".join(names) or "none"
        rows.append({"folder": folder, "options": options, "cached_sets": cached})
    heads = {"folder": "Folder", "options": "Options", "cached_sets": "Cached sets"}
    listed.put([list_sheet(rows, heads)], rows)
    typer.echo("Other open_clip models: --model NAME --pretrained TAG or PATH.", err=True)


@command(encoders, "get")
def get_weights(
    models: Names = argument(None, "open_clip model names. [the paper's three]"),
    pretrained: str = option(OPENAI, "Tag of the weights."),
) -> None:
    """Download the weights of encoders in advance.

    [bold]zsntta encoders get ViT-B-16[/bold]

    They go to the hub's cache ($HF_HOME, or ~/.cache/huggingface), where every command finds them.
    For a machine without a network, copy that folder there.
    """
    from zsntta_cli.encoders.weights import fetch

    for model in models or [choice.model for choice in PAPER_ENCODERS]:
        say(f"{model} {pretrained}: {fetch(EncoderChoice(model, pretrained))}")

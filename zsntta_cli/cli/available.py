"""`zsntta datasets`, `zsntta encoders` and `zsntta methods`: what is available."""

from pathlib import Path

import typer

from zsntta_cli.cli.command import command, group, say
from zsntta_cli.cli.options import DATA_ROOT, FEATURES_DIR, Names, argument, option
from zsntta_cli.cli.output import TableOutput
from zsntta_cli.cli.values import in_known_case, known_set
from zsntta_cli.datasets.names import SetName
from zsntta_cli.errors import DatasetError, SettingsError, ZsnttaError, counted
from zsntta_cli.settings import (
    OPENAI,
    PAPER_ENCODERS,
    TINY,
    EncoderChoice,
    ExtractSettings,
    known_folders,
)

datasets = group("List, show, download and verify known data sets.", lists=True)
encoders = group("List encoders and download their weights.", lists=True)
methods = group("List, show and check methods.", lists=True)


@command(datasets, "list")
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


@command(datasets, "show")
def show_set(
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
    on_disk = f"{place}" if place else "no" if entry.layout else "built in"
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
    advice = {"on disk": on_disk, "to get it": to_get, "commands": "\n".join(commands)}
    TableOutput(None, None).put([set_card(name, entry, data_root, features_dir, advice)], [])


@command(datasets)
def get(
    names: list[str] = argument(..., "Known sets."),
    data_root: Path = DATA_ROOT,
    mirror: str = option("", "URL of a mirror that has the files at URL/FILE."),
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


@command(datasets, "verify")
def verify_set(
    name: str = argument(..., "Known set, NAME=PATH, or a set on the hub."),
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

    The weights go to the hub's cache ($HF_HOME, or ~/.cache/huggingface), where every command finds
    them. For a machine without a network, copy that folder there.
    """
    from zsntta_cli.encoders.weights import fetch

    for model in models or [choice.model for choice in PAPER_ENCODERS]:
        say(f"{model} {pretrained}: {fetch(EncoderChoice(model, pretrained))}")


@command(methods, "list")
def list_methods(listed: TableOutput) -> None:
    """List all methods, how they run, what they need and their papers.

    [bold]zsntta methods list[/bold]
    """
    from zsntta_cli.methods import METHODS
    from zsntta_cli.report.lists import method_rows, method_sheet

    rows = method_rows(METHODS)
    listed.put([method_sheet(rows)], rows)


@command(methods, "show")
def show_method(
    name: str = argument(..., "Method, such as adand or oodd+tda."), *, output: TableOutput
) -> None:
    """Show a method and its settings.

    [bold]zsntta methods show adand[/bold]

    It also shows its paper, what it needs and costs, and what presets change.
    """
    from zsntta_cli.methods import check_method
    from zsntta_cli.report.lists import method_sheets, setting_rows

    name = in_known_case(name)
    check_method(name)
    rows = [{"method": name, **row} for row in setting_rows(name)] or [{"method": name}]
    output.put(method_sheets(name), rows)


@command(methods)
def check(
    target: str = argument(..., "Method, script that registers methods, or SCRIPT.py:NAME."),
    *,
    output: TableOutput,
) -> None:
    """Check on synthetic features that a method is honest.

    [bold]zsntta methods check adand[/bold]

    No decision may depend on later items, on labels, or on the names or order of the classes, or
    differ when the method runs twice.

    The exit code is 1 if a check fails.
    """
    from zsntta_cli.report.lists import check_sheet
    from zsntta_cli.simulation.checks import FAILED, check_method

    results = {name: check_method(name) for name in _methods_of(target)}
    rows = [{"method": name, **vars(result)} for name, of in results.items() for result in of]
    output.put([check_sheet(name, of_method) for name, of_method in results.items()], rows)
    if any(row["outcome"] == FAILED for row in rows):
        raise typer.Exit(1)


def _methods_of(target: str) -> list[str]:
    """The methods that are meant: a name, those that a script registers, or one of them."""
    from zsntta_cli.methods import check_method
    from zsntta_cli.plugins import load_script

    path, name = (target, "") if target.endswith(".py") else target.rpartition(":")[::2]
    if not path.endswith(".py"):
        check_method(target)
        return [target]
    registered = load_script(Path(path)).get("method", [])
    if name:
        check_method(name)
        return [name]
    if not registered:
        raise SettingsError(f"{path} registers no method: add METHODS[NAME] = CLASS")
    return registered

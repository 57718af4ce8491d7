"""`zsntta datasets`: which sets there are, where to get one, is it whole."""

from typing import Annotated

import typer

from zsntta_cli.cli.command import Command, group, say
from zsntta_cli.cli.options import DataRoot, FeaturesDir
from zsntta_cli.errors import DatasetError
from zsntta_cli.settings import DATA, FEATURES, ExtractSettings

app = group("The known sets: list (also without a command), show one, verify one.", lists=True)

_WORKERS = ExtractSettings().workers


@app.command("list", cls=Command)
def list_sets(data_root: DataRoot = DATA, features_dir: FeaturesDir = FEATURES) -> None:
    """All known sets: role, images, classes, whether on disk, cached for which encoders."""
    from zsntta_cli.datasets import CATALOGUE
    from zsntta_cli.progress import console
    from zsntta_cli.report.cards import set_list

    console().print(set_list(CATALOGUE, data_root, features_dir))


@app.command(cls=Command)
def show(
    name: Annotated[str, typer.Argument(help="A known set.")],
    data_root: DataRoot = DATA,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Where to get a set, its size, terms and layout on disk, and the commands to type."""
    from zsntta_cli.cli.hints import set_commands
    from zsntta_cli.datasets import known
    from zsntta_cli.progress import console
    from zsntta_cli.report.cards import set_card

    entry = known(name)
    commands = set_commands(name, entry.parameters, is_id=entry.role != "ood")
    console().print(set_card(name, entry, data_root, features_dir, commands))


@app.command(cls=Command)
def verify(
    name: Annotated[str, typer.Argument(help="A known set, or NAME=PATH.")],
    deep: Annotated[bool, typer.Option("--deep", help="Open every image.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Threads that open images.")] = _WORKERS,
    data_root: DataRoot = DATA,
) -> None:
    """Read a set, fetched if it can be, and compare it with the catalogue; exit code 1 if bad."""
    from zsntta_cli.datasets import known, load_images, status
    from zsntta_cli.datasets.names import SetName
    from zsntta_cli.progress import ConsoleReporter

    entry = None if SetName.parse(name).path else known(name)
    images, broken = load_images(name, data_root), []
    if deep:
        with ConsoleReporter().track(images.name, len(images)) as advance:
            for line in status.broken(images, advance, workers):
                say(f"broken: {line}")
                broken.append(line)
    wrong = list(status.problems(images, entry))
    if broken:
        wrong.append(f"{len(broken):,} images are broken (the first is {broken[0]})")
    if wrong:
        raise DatasetError(f"{images.name}: {'; '.join(wrong)}.")
    classes = f"{len(images.class_names)} classes" if images.class_names else "no classes"
    opened = ", every image opened" if deep else ""
    say(f"{images.name}: {len(images):,} images, {classes}{opened}: ok")

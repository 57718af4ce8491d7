"""`zsntta datasets`: which sets there are, where to get one, is it whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from zsntta_cli.cli.options import FEATURES, FeaturesDir
from zsntta_cli.errors import DatasetError
from zsntta_cli.settings import ExtractSettings

if TYPE_CHECKING:
    from rich.table import Table

    from zsntta_cli.datasets.catalogue import Entry


class _ListUnasked(TyperGroup):
    """`zsntta datasets` and its options alone are `zsntta datasets list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in where there is none."""
        bare = not args or (args[0].startswith("-") and args[0] != "--help")
        return super().parse_args(ctx, ["list", *args] if bare else args)


app = typer.Typer(
    cls=_ListUnasked,
    help="The known sets: list (also without a command), show one, verify one.",
    rich_markup_mode=None,
)

DataRoot = Annotated[Path, typer.Option(help="Where data sets lie or are downloaded.")]
Workers = Annotated[int, typer.Option(min=1, help="Threads that open images.")]
DATA, WORKERS = Path("data"), ExtractSettings().workers
_ROLES = {"id": "ID", "ood": "OOD", "both": "both", "shift": "shift"}
_IN_WORDS = {"both": "ID or OOD", "shift": "ID under a shift"}


@app.command("list")
def list_sets(data_root: DataRoot = DATA, features_dir: FeaturesDir = FEATURES) -> None:
    """All known sets: role, images, classes, whether on disk, cached for which encoders."""
    from zsntta_cli.datasets import CATALOGUE
    from zsntta_cli.progress import console

    rows = [(n, *_cells(n, entry, data_root, features_dir)) for n, entry in CATALOGUE.items()]
    console().print(_table(rows))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A known set.")],
    data_root: DataRoot = DATA,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Where to get a set, its size, terms and layout on disk, and the commands to type."""
    from rich.table import Table
    from rich.text import Text

    from zsntta_cli.datasets import status
    from zsntta_cli.progress import console

    table = Table(title=Text(name), show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for field, value in _facts(name, status.known(name), data_root, features_dir).items():
        table.add_row(field, Text(value))  # of a plain string, ':fog:' would become an emoji
    console().print(table)


@app.command()
def verify(
    name: Annotated[str, typer.Argument(help="A known set, or NAME=PATH.")],
    deep: Annotated[bool, typer.Option("--deep", help="Open every image.")] = False,
    workers: Workers = WORKERS,
    data_root: DataRoot = DATA,
) -> None:
    """Read a set, fetched if it can be, and compare it with the catalogue; exit code 1 if bad."""
    from zsntta_cli.datasets import load_images, status
    from zsntta_cli.progress import ConsoleReporter

    entry = None if "=" in name else status.known(name)
    images, found = load_images(name, data_root), []
    if deep:
        with ConsoleReporter().track(images.name, len(images)) as advance:
            for line in status.broken(images, advance, workers):
                typer.echo(f"broken: {line}")
                found.append(line)
    wrong = [*status.problems(images, entry), *_summary(found)]
    if wrong:
        raise DatasetError(f"{images.name}: {'; '.join(wrong)}.")
    opened = ", every image opened" if deep else ""
    typer.echo(f"{images.name}: {len(images):,} images, {_classes(images.class_names)}{opened}: ok")


def _summary(broken: list[str]) -> list[str]:
    return [f"{len(broken):,} images are broken (the first is {broken[0]})"] if broken else []


def _classes(names: Any) -> str:
    return f"{len(names)} classes" if names else "no classes"


def _cells(name: str, entry: "Entry", data_root: Path, features_dir: Path) -> tuple[str, ...]:
    from zsntta_cli.datasets import status

    return (
        _ROLES[entry.role], f"{entry.images:,}", f"{entry.classes:,}" if entry.classes else "",
        status.on_disk(entry, data_root), "\n".join(status.encoders(name, features_dir)),
    )  # fmt: skip


def _table(rows: "list[tuple[str, ...]]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table()
    table.add_column("Name", no_wrap=True)
    table.add_column("Role", no_wrap=True)
    table.add_column("Images", justify="right", no_wrap=True)
    table.add_column("Classes", justify="right", no_wrap=True)
    table.add_column("On disk")
    table.add_column("Cached for", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _facts(name: str, entry: "Entry", data_root: Path, features_dir: Path) -> dict[str, str]:
    """What there is to know of a set; without what does not apply."""
    from zsntta_cli.datasets import status

    facts = {
        "role": _IN_WORDS.get(entry.role, _ROLES[entry.role]),
        "images": f"{entry.images:,}",
        "classes": f"{entry.classes:,}" if entry.classes else "none",
        "split": entry.split,
        "prompt": entry.prompt if entry.role != "ood" else "",
        "parameters": entry.parameters,
        "OOD partners": ", ".join(entry.partners),
        "more partners": ", ".join(entry.extra_partners),
        "home": entry.home,
        "download": f"{entry.megabytes:,} MB" if entry.megabytes else "",
        "licence": entry.licence,
        "layout": f"{data_root}/{entry.layout}" * bool(entry.layout),
        "on disk": status.on_disk(entry, data_root),
        "cached for": "\n".join(status.encoders(name, features_dir)) or "no encoder",
        "to get it": _way(entry, data_root),
        "commands": "\n".join(_commands(name, entry)),
    }
    return {field: value for field, value in facts.items() if value}


def _way(entry: "Entry", data_root: Path) -> str:
    if not entry.layout:
        return "nothing to do: it is built in"
    if entry.downloads:
        return f"nothing to do: verify and extract download it to {data_root}, with its checksum"
    return "download it from its home and lay it out as above, then verify"


def _commands(name: str, entry: "Entry") -> list[str]:
    name += ":fog:1" * (bool(entry.parameters) and ":" not in name)
    simulate = [f"zsntta simulate --method adand --id {name}"] if entry.role != "ood" else []
    return [f"zsntta datasets verify {name}", f"zsntta extract --dataset {name}", *simulate]

"""`zsntta cache`: what is in the features folder, is it whole, take in features made elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.options import FEATURES, FeaturesDir
from zsntta_cli.errors import StoreError
from zsntta_cli.settings import EncoderChoice

if TYPE_CHECKING:
    from rich.table import Table

    from zsntta_cli.inventory import Details, Entry

app = typer.Typer(
    help="What is in the features folder: list, show, verify; import features made elsewhere.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Encoder = Annotated[str | None, typer.Option(help="Folder name of the encoder. Default: all.")]
_NAMES_SHOWN = 6  # first and last class names


@app.command("list")
def list_files(encoder: Encoder = None, features_dir: FeaturesDir = FEATURES) -> None:
    """All feature files and unfinished extractions."""
    from zsntta_cli.inventory import entries
    from zsntta_cli.progress import console

    found = entries(features_dir, encoder)
    if found:
        console().print(*_tables(found), sep="\n")
    else:
        _say_nothing(features_dir, encoder)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A set.")],
    encoder: Encoder = None,
    model: Annotated[str | None, typer.Option(help="Instead of --encoder: its model.")] = None,
    pretrained: Annotated[str | None, typer.Option(help="And its weights.")] = None,
    precision: Annotated[str | None, typer.Option(help="And its precision.")] = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Everything about the features of one set, by one encoder or by all that have it."""
    from zsntta_cli.inventory import find, read_details
    from zsntta_cli.progress import console

    chosen = {"model": model, "pretrained": pretrained, "precision": precision}
    given = {option: value for option, value in chosen.items() if value}
    slug = encoder or (EncoderChoice(**given).slug if given else None)
    for path in find(features_dir, [name], slug):
        console().print(_card(path, read_details(path)))


@app.command()
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Sets. Default: all.")] = None,
    encoder: Encoder = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Read feature files whole and check all that they hold; exit code 1 if any is bad."""
    from zsntta_cli.inventory import find, problems

    paths, bad = find(features_dir, names or (), encoder), 0
    for path in paths:
        found = problems(path)
        bad += bool(found)
        typer.echo(f"{path}: {'; '.join(found) or 'ok'}")
    if bad:
        raise StoreError(f"{bad} of {len(paths)} files bad: delete them, extract or import again.")
    if not paths:
        _say_nothing(features_dir, encoder)


@app.command("import")
def import_(
    name: Annotated[str, typer.Argument(help="What the set is to be called.")],
    features: Annotated[
        Path, typer.Option(help=".npz, .npy, .pt, .pth, or a folder of clip-retrieval's parts.")
    ],
    labels: Annotated[Path | None, typer.Option(help=".npy, .npz, .pt, .txt or .json.")] = None,
    class_names: Annotated[Path | None, typer.Option(help=".txt (one a line) or .json.")] = None,
    text: Annotated[Path | None, typer.Option(help="File with text features of classes.")] = None,
    encoder: Annotated[
        str, typer.Option(help="Sets under one name are taken to be of one encoder.")
    ] = "imported",
    logit_scale: Annotated[float, typer.Option(help="The encoder's, exponentiated.")] = 100.0,
    normalized: Annotated[
        bool | None, typer.Option(help="Whether features have norm 1. Default: found out.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="Template of the text features. Default: the set's own.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace what is there.")] = False,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Take in features made elsewhere; nothing is ever unpickled."""
    from zsntta_cli.importing import ImportPlan, import_features
    from zsntta_cli.progress import ConsoleReporter

    plan = ImportPlan(
        name, features, labels, class_names, text, encoder, logit_scale, normalized, prompt,
        overwrite,
    )  # fmt: skip
    done = import_features(plan, features_dir)
    for note in done.fitted.notes:
        ConsoleReporter().note(f"{name}: {note}")
    rows, names = done.fitted.rows, done.fitted.class_names
    typer.echo(
        f"{done.path}: {len(rows):,} features of {rows.dim} dims, {len(names)} class names, "
        f"{'text features' if done.fitted.texts else 'no text features'}"
        + ("" if done.written else ", there already")
    )


def _say_nothing(features_dir: Path, encoder: str | None) -> None:
    typer.echo(
        f"nothing in {features_dir / (encoder or '')}: type zsntta extract --dataset cifar10, "
        f"zsntta demo, or zsntta cache import NAME --features FILE.",
        err=True,
    )


def _tables(found: "list[Entry]") -> "list[Table]":
    """A table for each encoder."""
    by_encoder: dict[str, list[Entry]] = {}
    for entry in found:
        by_encoder.setdefault(entry.encoder, []).append(entry)
    return [_table(encoder, entries) for encoder, entries in by_encoder.items()]


def _table(encoder: str, found: "list[Entry]") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(encoder), title_justify="left")
    table.add_column("Name", overflow="fold")
    table.add_column("Images", justify="right", no_wrap=True)
    table.add_column("Classes", justify="right", no_wrap=True)
    table.add_column("Prompt templates", overflow="fold")
    table.add_column("MiB", justify="right", no_wrap=True)
    table.add_column("Created", no_wrap=True)
    for entry in found:
        table.add_row(*map(escape, _cells(entry)))
    return table


def _cells(entry: "Entry") -> list[str]:
    header, size = entry.header, f"{entry.size / 2**20:,.1f}"
    if header is None:
        return [entry.name, "", "", entry.problem, size, ""]
    classes, templates = str(header.classes or ""), "\n".join(header.templates)
    return [entry.name, f"{header.images:,}", classes, templates, size, header.created[:10]]


def _card(path: Path, details: "Details") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(str(path)), show_header=False, title_justify="left")
    for field, value in _facts(details).items():
        table.add_row(field, escape(value))
    return table


def _facts(details: "Details") -> dict[str, str]:
    header, features = details.header, details.features
    norms = details.norms
    return {
        "kind": header.kind,
        "images": f"{header.images:,} × {header.dim} {header.dtype}",
        "norms": f"{norms.mean():.4g} on average, {norms.min():.4g} to {norms.max():.4g}"
        + (" (normalised)" if header.normalized else " (raw)")
        if len(norms)
        else "",
        "labels": _label_counts(details.label_counts),
        "class names": _abridged(features.class_names),
        "prompt templates": "\n".join(features.text_features) or "none",
        **{f"encoder: {key}": str(value) for key, value in header.encoder.items()},
        **{f"source: {key}": str(value) for key, value in features.source.items()},
        "created": header.created,
        "digest": features.digest,
    }


def _abridged(names: tuple[str, ...]) -> str:
    half = _NAMES_SHOWN // 2
    shown = names if len(names) <= _NAMES_SHOWN else (*names[:half], "…", *names[-half:])
    return f"{len(names)}: {', '.join(shown)}" if names else "none"


def _label_counts(counts: dict[int, int]) -> str:
    """How many images the classes have, and how many classes that is."""
    labelled = [count for label, count in counts.items() if label >= 0]
    if not labelled:
        return "none"
    fewest, most = min(labelled), max(labelled)
    text = f"{len(labelled)} classes with {fewest}{f' to {most}' * (most > fewest)} images"
    return text + (f", {counts[-1]:,} images without a label" if -1 in counts else "")

"""`zsntta cache push` and `pull`: features to a place that others read, and from there."""

from pathlib import Path
from typing import Annotated

import typer

from zsntta_cli.cli.line.command import say
from zsntta_cli.cli.line.dry import NOTHING_DONE, DryRun
from zsntta_cli.cli.line.options import EncoderName, FeaturesDir
from zsntta_cli.settings import FEATURES
from zsntta_cli.sharing.stores import EXAMPLE

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help=f"hf://USER/REPO ({EXAMPLE}), file:///FOLDER, https://…, s3://BUCKET/…",
    ),
]


def push(
    address: Address,
    name: Annotated[
        list[str] | None, typer.Option("--set", metavar="SET", help="A cached set. [all]")
    ] = None,
    encoder: EncoderName = None,
    without_ids: Annotated[
        bool,
        typer.Option(
            "--without-ids", help="Publish numbers instead of sample ids, which are names of files."
        ),
    ] = False,
    i_may: Annotated[
        bool,
        typer.Option(
            "--i-may", help="Also publish sets whose terms do not permit everybody to do so."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option(help="Replace other features that are there under the same name.")
    ] = False,
    dry_run: DryRun = False,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Publish cached features, never images.

    An index and a card are made from them.
    """
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.sharing import push as pushing
    from zsntta_cli.sharing.stores import open_store

    plan = pushing.PushPlan(features_dir, tuple(name or ()), encoder, without_ids, i_may, overwrite)
    if dry_run:
        for path in pushing.files_to_push(plan):
            say(f"{path}: {path.stat().st_size / 2**20:,.1f} MiB to {address}")
        say(NOTHING_DONE)
        return
    store = open_store(address)
    for published in pushing.push(store, plan, ConsoleReporter()):
        say(published.line)
    at = f"@{store.revision}" if store.revision else ""
    say(f"to read them: zsntta cache pull {address}{at}")


def pull(
    address: Address,
    names: Annotated[list[str] | None, typer.Argument(help="Sets. [all]")] = None,
    encoder: EncoderName = None,
    dry_run: DryRun = False,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Fetch published features.

    Each file is verified, and nothing that is there is replaced.
    """
    from zsntta_cli.cache.folder import feature_path
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.sharing import pull as pulling
    from zsntta_cli.sharing.index import path_of, read_index
    from zsntta_cli.sharing.stores import open_store

    store = open_store(address)
    index = read_index(store)
    files = pulling.chosen(index, store.address, names or (), encoder)
    if dry_run:
        for file in files:
            size = index.files[path_of(*file)].size / 2**20
            there = ", a file is there" * feature_path(features_dir, *file).exists()
            say(f"{feature_path(features_dir, *file)}: {size:,.1f} MiB{there}")
        say(NOTHING_DONE)
        return
    for pulled in pulling.pull(store, index, features_dir, files, ConsoleReporter()):
        say(pulled.line)
    at = f"{store.address}@{store.revision}" if store.revision else store.address
    say(f"from {at}")


def list_published(address: str, encoder: str | None) -> None:
    """Print what a place says that it has; of its files only the index is read."""
    from zsntta_cli.cache.folder import Stored
    from zsntta_cli.cache.published import judged
    from zsntta_cli.progress import console
    from zsntta_cli.report.cards import feature_lists
    from zsntta_cli.sharing.index import path_of, read_index
    from zsntta_cli.sharing.pull import chosen
    from zsntta_cli.sharing.stores import open_store

    store = open_store(address)
    index = read_index(store)
    files, accuracies = [], {}
    for folder, name in chosen(index, store.address, (), encoder):
        entry = index.files[path_of(folder, name)]
        file = Stored(Path(path_of(folder, name)), entry.size, entry.header)
        files.append(file)
        accuracies[file.path] = judged(
            entry.header.identity, name, entry.shots, entry.header.classes
        )
    if files:
        console().print(*feature_lists(files, (), accuracies), sep="\n")
    else:
        say(f"{address} has no features yet.", err=True)

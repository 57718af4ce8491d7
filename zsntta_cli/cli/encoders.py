"""`zsntta encoders`."""

from typing import TYPE_CHECKING

import typer

from zsntta_cli.cli.options import FeaturesDir
from zsntta_cli.settings import FEATURES, PAPER_ENCODERS, TINY, EncoderChoice

if TYPE_CHECKING:
    from rich.table import Table


def encoders(features_dir: FeaturesDir = FEATURES) -> None:
    """The embedded encoder, the paper's, all that features are cached of, and families to take."""
    from rich.table import Table
    from rich.text import Text

    from zsntta_cli.cache.folder import stored
    from zsntta_cli.cli.hints import encoder_options
    from zsntta_cli.encoders.weights import whereabouts
    from zsntta_cli.errors import printable
    from zsntta_cli.progress import console

    cached: dict[str, list[str]] = {}
    for one in stored(features_dir):
        whole = cached.setdefault(one.encoder_name, [])
        whole += [one.name] if one.header else []  # no unfinished or broken ones
    known = {c.slug: c for c in (EncoderChoice(TINY), *PAPER_ENCODERS)}
    table = Table()
    for head in ("Folder", "Options", "Weights", "Cached sets"):
        table.add_column(head, overflow="fold")
    for slug in dict.fromkeys([*known, *cached]):
        choice = known.get(slug, EncoderChoice(folder=slug))
        sets = ", ".join(cached.get(slug, [])) or "none"
        row = (slug, encoder_options(choice) or "(the default)", whereabouts(choice), sets)
        table.add_row(*(Text(printable(part)) for part in row))
    console().print(table)
    console().print(_families())
    typer.echo("Any other model of open_clip: --model NAME --pretrained TAG or PATH.", err=True)


def _families() -> "Table":
    """Families that were tried: how to name one of each, and what it cannot do."""
    from rich.table import Table

    from zsntta_cli.cli.hints import encoder_options
    from zsntta_cli.encoders.weights import FAMILIES

    table = Table()
    for head in ("Family", "For example", "Loss", "Live methods", "Needs"):
        table.add_column(head, overflow="fold")
    for name, one in FAMILIES.items():
        live = f"not {', '.join(one.lacks)}" if one.lacks else "all"
        loss = "sigmoid" if one.sigmoid else "softmax"
        table.add_row(name, encoder_options(one.example), loss, live, one.installs or "nothing")
    return table

"""`zsntta encoders`."""

import typer

from zsntta_cli.cli.options import FEATURES, FeaturesDir
from zsntta_cli.settings import PAPER_ENCODERS, TINY, EncoderChoice


def encoders(features_dir: FeaturesDir = FEATURES) -> None:
    """The embedded encoder, the paper's, and all that features are cached of."""
    from rich.table import Table

    from zsntta_cli.inventory import entries
    from zsntta_cli.progress import console
    from zsntta_cli.weights import whereabouts

    cached: dict[str, list[str]] = {}
    for entry in entries(features_dir):
        cached.setdefault(entry.encoder, []).append(entry.name)
    known = {c.slug: c for c in (EncoderChoice(TINY), *PAPER_ENCODERS)}
    table = Table()
    for head in ("Folder", "Options", "Weights", "Cached sets"):
        table.add_column(head, overflow="fold")
    for slug in dict.fromkeys([*known, *cached]):
        choice = known.get(slug, EncoderChoice(folder=slug))
        sets = ", ".join(cached.get(slug, [])) or "none"
        table.add_row(slug, choice.options or "(the default)", whereabouts(choice), sets)
    console().print(table)
    typer.echo("Any other model of open_clip: --model NAME --pretrained TAG or PATH.", err=True)

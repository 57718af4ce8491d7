"""`zsntta encoders`."""

import typer

from zsntta_cli.cli.options import FEATURES, FeaturesDir
from zsntta_cli.settings import PAPER_ENCODERS, TINY, EncoderChoice


def encoders(features_dir: FeaturesDir = FEATURES) -> None:
    """The embedded encoder, the paper's, and all that features are cached of."""
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
    typer.echo("Any other model of open_clip: --model NAME --pretrained TAG or PATH.", err=True)

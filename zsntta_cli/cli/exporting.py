"""`zsntta cache export`: cached features as files of other tools."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from zsntta_cli.cli.line.command import misused, say
from zsntta_cli.cli.line.options import EncoderName, FeaturesDir
from zsntta_cli.settings import FEATURES

_FORMS = ("npz", "parquet", "safetensors")
if TYPE_CHECKING:
    ExportForm = str
else:
    ExportForm = Literal[_FORMS]


def export(
    name: Annotated[str, typer.Argument(help="A cached set.")],
    to: Annotated[
        ExportForm | None, typer.Option(help="Format of the export. [by the ending of --output]")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write. [SET.npz …]")
    ] = None,
    encoder: EncoderName = None,
    prompt: Annotated[
        list[str] | None, typer.Option(help="Template of the text features to export. [all]")
    ] = None,
    without_ids: Annotated[
        bool, typer.Option("--without-ids", help="Leave out sample ids, which are names of files.")
    ] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace what is there.")] = False,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Write cached features for other tools.

    `cache import` reads them, and its features are equal to the bit.
    """
    from zsntta_cli.cache.export import FORMS, ExportPlan, export_features
    from zsntta_cli.cli.line.output import form_of, is_stream

    form = form_of(output, FORMS, to, named_by="--to")
    if not form:
        raise misused(f"say which form with --to: {', '.join(_FORMS)}.")
    plan = ExportPlan(name, form, output, encoder, tuple(prompt or ()), without_ids, overwrite)
    done = export_features(plan, features_dir)
    for note in done.notes:
        say(f"note: {name}: {note}.", err=True)
    to_stream = output is not None and is_stream(output)
    say(f"{done.path}: {done.images:,} features of {done.dim} dims", err=to_stream)

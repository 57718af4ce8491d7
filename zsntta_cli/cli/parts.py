"""`zsntta extract --part` and `--parts`: a set in parts, here or on a Ray cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zsntta_cli.cli.command import misused, say
from zsntta_cli.settings import ENGINES, RAY
from zsntta_cli.settings.options import check_choice

if TYPE_CHECKING:
    from zsntta_cli.extraction.sharded import PartsJob
    from zsntta_cli.progress import Reporter


def check_engine(engine: str, parts: int | None) -> None:
    """Refuse an engine that there is not, and one whose work is not in parts."""
    check_choice("engine", engine, ENGINES)
    if engine == RAY and parts is None:
        raise misused("--engine ray makes the parts of a set: add --parts N.")


def check_parts(
    part: str | None, parts: int | None, dataset: Sequence[str] | None, others: Mapping[str, object]
) -> None:
    """Refuse what does not go with parts, which are of one set alone."""
    if part is not None and parts is not None:
        raise misused("--part makes one part and --parts all of them: leave one of them out.")
    option = "--part" if part is not None else "--parts"
    if len(dataset or ()) != 1:
        raise misused(f"{option} is of one set: name one --dataset.")
    if given := [name for name, value in others.items() if value]:
        raise misused(
            f"{option} only makes the features of a set's images and replaces none: leave "
            f"{', '.join(given)} out."
        )


def extract_one_part(job: "PartsJob", which: str, reporter: "Reporter") -> None:
    """Make one part of a set; it says of how many."""
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.sharded import extract_part, parse_part

    part = parse_part(which)
    say(summary(extract_part(replace(job, of=part.of), part.index, reporter)))


def extract_in_parts(job: "PartsJob", engine: str, reporter: "Reporter") -> None:
    """Make the missing parts of a set and join them, in this process or on a cluster."""
    from zsntta_cli.extraction.extractor import summary

    if engine == RAY:
        from zsntta_cli.extraction.cluster import extract_parts_on_ray as extract_parts
    else:
        from zsntta_cli.extraction.sharded import extract_parts
    for extracted in extract_parts(job, reporter):
        say(summary(extracted))

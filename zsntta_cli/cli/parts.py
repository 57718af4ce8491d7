"""`zsntta extract --part` and `--parts`: a set in parts, here or on a Ray cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli.cli.command import misused, say
from zsntta_cli.settings import ENGINES, RAY, EncoderChoice, ExtractSettings
from zsntta_cli.settings.options import check_choice

if TYPE_CHECKING:
    from zsntta_cli.extraction.plan import ExtractPlan
    from zsntta_cli.extraction.sharded import PartsJob
    from zsntta_cli.progress import Reporter


@dataclass(frozen=True)
class PartsWish:
    """What a command line says of a set in parts."""

    plan: "ExtractPlan"
    choice: EncoderChoice
    device: str
    root: Path
    settings: ExtractSettings

    def job(self, of: int) -> "PartsJob":
        """The set in so many parts."""
        from zsntta_cli.extraction.sharded import PartsJob

        [spec] = self.plan.datasets
        return PartsJob(spec, of, self.plan, self.choice, self.device, self.root, self.settings)


def check_engine(engine: str, parts: int | None) -> None:
    """Refuse an engine that there is not, and one whose work is not in parts."""
    check_choice("engine", engine, ENGINES)
    if engine == RAY and parts is None:
        raise misused("--engine ray makes the parts of a set: add --parts N.")


def extract_one_part(wish: PartsWish, which: str, reporter: "Reporter") -> None:
    """Make one part of a set."""
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.sharded import extract_part, parse_part

    part = parse_part(which)
    say(summary(extract_part(wish.job(part.of), part.index, reporter)))


def extract_in_parts(wish: PartsWish, of: int, engine: str, reporter: "Reporter") -> None:
    """Make the missing parts of a set and join them, in this process or on a cluster."""
    from zsntta_cli.extraction.extractor import summary

    if engine == RAY:
        from zsntta_cli.extraction.cluster import extract_parts_on_ray as extract_parts
    else:
        from zsntta_cli.extraction.sharded import extract_parts
    for extracted in extract_parts(wish.job(of), reporter):
        say(summary(extracted))

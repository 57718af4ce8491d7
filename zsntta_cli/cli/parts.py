"""`zsntta extract --part` and `--parts`: a set in parts, here or on a Ray cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.line.command import misused, say
from zsntta_cli.settings import ENGINES, LOCAL, RAY, EncoderChoice, ExtractSettings
from zsntta_cli.settings.options import check_choice

if TYPE_CHECKING:
    from zsntta_cli.extraction.plan import ExtractPlan
    from zsntta_cli.progress import Reporter


@dataclass(frozen=True)
class PartOptions:
    """Which parts of a set are made, and what makes them."""

    part: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Extract one part of the set, 3/64; zsntta cache join joins all.",
        ),
    ] = None
    parts: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Extract the set in so many parts: all that are missing, beside other workers; "
            "then join them.",
        ),
    ] = None
    engine: Annotated[
        str,
        typer.Option(help="What makes --parts: local; or ray, the cluster at RAY_ADDRESS."),
    ] = LOCAL

    @property
    def are_asked(self) -> bool:
        """Whether a set is extracted in parts."""
        return self.part is not None or self.parts is not None

    def check(self, dataset: Sequence[str], others: Mapping[str, object]) -> None:
        """Refuse what does not go with parts, which are of one set alone.

        Raises:
            UsageError: several sets are named, or other options.
        """
        check_choice("engine", self.engine, ENGINES)
        if self.engine == RAY and self.parts is None:
            raise misused("--engine ray makes the parts of a set: add --parts N.")
        if not self.are_asked:
            return
        if self.part is not None and self.parts is not None:
            raise misused("--part makes one part and --parts all of them: leave one of them out.")
        option = "--part" if self.part is not None else "--parts"
        if len(dataset) != 1:
            raise misused(f"{option} is of one set: name one --dataset.")
        if given := [name for name, value in others.items() if value]:
            raise misused(
                f"{option} only makes the features of a set's images and replaces none: leave "
                f"{', '.join(given)} out."
            )

    def extract(
        self,
        plan: "ExtractPlan",
        choice: EncoderChoice,
        device: str,
        root: Path,
        settings: ExtractSettings,
        reporter: "Reporter",
    ) -> None:
        """Make one part of the plan's set; or the missing ones, here or on a cluster, and join."""
        from zsntta_cli.extraction.extractor import summary
        from zsntta_cli.extraction.sharded import PartsJob, extract_part, extract_parts, parse_part

        [spec] = plan.datasets
        one = parse_part(self.part) if self.part is not None else None
        of = one.of if one else self.parts or 0
        job = PartsJob(spec, of, plan, choice, device, root, settings)
        if one:
            say(summary(extract_part(job, one.index, reporter)))
            return
        if self.engine == RAY:
            from zsntta_cli.extraction.cluster import extract_parts_on_ray as extract_parts
        for extracted in extract_parts(job, reporter):
            say(summary(extracted))

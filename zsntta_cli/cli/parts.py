"""`zsntta extract --part` and `--engine ray`: a set in parts, each by a command or a task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.line.command import misused, say
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import ENGINES, LOCAL, RAY, EncoderChoice, ExtractSettings
from zsntta_cli.settings.options import check_choice

if TYPE_CHECKING:
    from zsntta_cli.extraction.plan import ExtractPlan
    from zsntta_cli.progress import Reporter


def parse_part(text: str) -> tuple[int, int]:
    """The index of a part, from 1, and the number of parts, as `3/64` says them.

    Raises:
        SettingsError: the text is no part.
    """
    index, slash, of = text.partition("/")
    if not (slash and index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
        raise SettingsError(f"part is '{text}', must be like 3/64, which is part 3 of 64.")
    return int(index), int(of)


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
    engine: Annotated[
        str,
        typer.Option(
            help="What extracts the set: local; or ray, in parts on the cluster at RAY_ADDRESS."
        ),
    ] = LOCAL
    parts: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Parts for --engine ray. [one for each GPU, or each machine]"
        ),
    ] = None

    @property
    def are_asked(self) -> bool:
        """Whether a set is extracted in parts."""
        return self.part is not None or self.engine == RAY

    def check(self, dataset: Sequence[str], others: Mapping[str, object]) -> None:
        """Refuse what does not go with parts, which are of one set alone.

        Raises:
            UsageError: several sets are named, or other options.
        """
        check_choice("engine", self.engine, ENGINES)
        if self.parts is not None and self.engine != RAY:
            raise misused("--parts N is of --engine ray: add it, or make one part by --part 1/N.")
        if not self.are_asked:
            return
        if self.part is not None and self.engine == RAY:
            raise misused("--part makes one part here, --engine ray all: leave one of them out.")
        option = "--part" if self.part is not None else "--engine ray"
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
        """Make one part of the plan's set; or all on a cluster, and join them."""
        from zsntta_cli.extraction.extractor import summary

        if self.part is not None:
            from zsntta_cli.extraction.plan import extract_part

            index, of = parse_part(self.part)
            say(summary(extract_part(plan, choice, device, root, settings, reporter, index, of)))
            return
        from zsntta_cli.extraction.cluster import PartsJob, extract_on_ray

        job = PartsJob(plan, choice, device, root, settings)
        for extracted in extract_on_ray(job, self.parts):
            say(summary(extracted))

"""`zsntta extract --part` and `--parts`: a set in parts, here, on a cluster, or as a script."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zsntta_cli.cli.command import misused, say, typed_options
from zsntta_cli.cli.hints import join_command
from zsntta_cli.errors import counted
from zsntta_cli.settings import RAY, SUBMITIT, EncoderChoice, ExtractSettings

if TYPE_CHECKING:
    from zsntta_cli.extraction.extractor import Extracted
    from zsntta_cli.extraction.plan import ExtractPlan
    from zsntta_cli.extraction.sharded import PartsJob
    from zsntta_cli.progress import Reporter

# Options that the jobs of a script do not have.
_OF_PLAN = ("--parts", "--plan", "--rate", "--engine", "--wait")


@dataclass(frozen=True)
class PartsWish:
    """What a command line says of a set in parts."""

    plan: "ExtractPlan"
    choice: EncoderChoice
    device: str
    root: Path
    settings: ExtractSettings
    is_plan: bool
    rate: float | None
    wait: bool

    def job(self, of: int) -> "PartsJob":
        """The set in so many parts."""
        from zsntta_cli.extraction.sharded import PartsJob

        [spec] = self.plan.datasets
        return PartsJob(spec, of, self.plan, self.choice, self.device, self.root, self.settings)


def check_engine(
    engine: str, parts: int | None, is_plan: bool, rate: float | None, wait: bool
) -> None:
    """Refuse options that need others which are not there."""
    if is_plan and parts is None:
        raise misused("--plan is of a set in parts: add --parts N.")
    if rate is not None and not is_plan:
        raise misused("--rate is what --plan counts with: add --plan, or leave it out.")
    if engine == SUBMITIT and parts is None:
        raise misused("--engine submitit makes the parts of a set: add --parts N.")
    if wait and engine != SUBMITIT:
        raise misused("--wait is of --engine submitit: the other engines wait as they are.")


def extract_one_part(wish: PartsWish, which: str, reporter: "Reporter") -> None:
    """Make one part of a set."""
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.sharded import extract_part, parse_part

    part = parse_part(which)
    say(summary(extract_part(wish.job(part.of), part.index, reporter)))


def extract_in_parts(ctx: typer.Context, wish: PartsWish, of: int, reporter: "Reporter") -> None:
    """Make the parts of a set that lack and join them, submit them, or print their script."""
    from zsntta_cli.extraction.extractor import summary

    job = wish.job(of)
    if wish.is_plan:
        from zsntta_cli.extraction.planning import forecast, slurm_script

        options = typed_options(ctx, without=_OF_PLAN)
        typer.echo(slurm_script(job, forecast(job, wish.rate, reporter), options), nl=False)
        return
    for extracted in _made_parts(job, wish.wait, reporter):
        say(summary(extracted))


def _made_parts(job: "PartsJob", wait: bool, reporter: "Reporter") -> "Iterator[Extracted]":
    """The parts of a set and the set, as the engine of its settings makes them."""
    if job.settings.engine == RAY:
        from zsntta_cli.extraction.raydata import extract_parts_on_ray

        return extract_parts_on_ray(job, reporter)
    if job.settings.engine == SUBMITIT:
        return _submitted(job, wait, reporter)
    from zsntta_cli.extraction.sharded import extract_parts

    return extract_parts(job, reporter)


def _submitted(job: "PartsJob", wait: bool, reporter: "Reporter") -> "Iterator[Extracted]":
    """The parts as jobs: they are named, and waited for where that is wished."""
    from zsntta_cli.extraction.submitting import SubmittedParts

    submitted = SubmittedParts(job, reporter)
    ids, path = ", ".join(submitted.ids), submitted.maker.path
    jobs = counted(len(submitted.ids), "job")
    say(f"{jobs}: {ids}" if ids else "all parts are there: no job is needed")
    if wait:
        yield from submitted.wait()
        return
    command = join_command(path.stem, path.parent.name, job.root)
    reporter.note(f"next, when they have ended: {command}")

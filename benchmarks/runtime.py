"""The paper's table 4 on this machine: seconds a sample and memory of each method, live.

Usage: runtime.py [--model tiny] [--pretrained none] [--method tent --batch-size 128]
"""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from zsntta_cli.paper.printed.published import printed
from zsntta_cli.paper.printed.tables import SAMPLES
from zsntta_cli.paper.timing import CLASSES, Timing, TimingJob, measure
from zsntta_cli.settings import EncoderChoice


def main(
    model: str = "ViT-B-16",
    pretrained: str = "openai",
    method: Annotated[list[str] | None, typer.Option()] = None,
    batch_size: int = 1,
    samples: int = SAMPLES,
    classes: int = CLASSES,
    device: str = "auto",
) -> None:
    """Measure and print; without a method the columns of table 4."""
    encoder = EncoderChoice(model, pretrained)
    columns = [(name, batch_size) for name in method or ()]
    columns = columns or [(cell.method, int(cell.settings["batch_size"])) for cell in printed(4)]
    jobs = [TimingJob(*column, encoder, device, samples, classes) for column in columns]
    table = Table(title=f"{model}, {classes} classes, {samples:,} samples")
    for head in ("method", "batch size", "seconds", "GiB", "on", ""):
        table.add_column(head)
    for timing in measure(jobs, lambda timing: typer.echo(str(timing), err=True)):
        table.add_row(*cells(timing))
    Console(width=100).print(table)


def cells(timing: Timing) -> list[str]:
    seconds = f"{timing.seconds:.5f}" if timing.seconds is not None else "-"
    memory = f"{timing.memory / 2**30:.2f}" if timing.memory is not None else "-"
    job = timing.job
    return [job.method, str(job.batch_size), seconds, memory, timing.device, timing.problem]


if __name__ == "__main__":
    typer.run(main)

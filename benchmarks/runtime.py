"""The paper's table 4 on this machine: seconds a sample and memory of each method, live.

Usage: runtime.py [--model tiny] [--pretrained none] [--method tent --batch-size 128] [--decode]
"""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from zsntta_cli.paper.printed.tables import SAMPLES
from zsntta_cli.paper.runtime import CLASSES, Job, Row, measure, table_4
from zsntta_cli.settings import EncoderChoice


def main(
    model: str = "ViT-B-16",
    pretrained: str = "openai",
    method: Annotated[list[str] | None, typer.Option()] = None,
    batch_size: int = 1,
    samples: int = SAMPLES,
    classes: int = CLASSES,
    device: str = "auto",
    decode: bool = False,
) -> None:
    """Measure and print; without a method the columns of table 4."""
    encoder = EncoderChoice(model, pretrained)
    jobs = [
        Job(name, batch_size, encoder, device, samples, classes, decode=decode)
        for name in method or ()
    ] or table_4(encoder, device, samples, classes)
    table = Table(title=f"{model}, {classes} classes, {samples:,} samples")
    for head in ("method", "batch size", "seconds", "GiB", "on", ""):
        table.add_column(head)
    for row in measure(jobs, lambda row: typer.echo(str(row), err=True)):
        table.add_row(*cells(row))
    Console(width=100).print(table)


def cells(row: Row) -> list[str]:
    seconds = f"{row.seconds:.5f}" if row.seconds is not None else "-"
    memory = f"{row.memory / 2**30:.2f}" if row.memory is not None else "-"
    return [row.method, str(row.batch_size), seconds, memory, row.device, row.problem]


if __name__ == "__main__":
    typer.run(main)

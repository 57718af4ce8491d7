"""`zsntta detect --judge`."""

from pathlib import Path

from zsntta_cli.cli.command import say
from zsntta_cli.report.review.corrections import read_corrections
from zsntta_cli.report.review.judged import notes, table
from zsntta_cli.report.review.judging import judgement


def judged(path: Path) -> None:
    """Tell what a file of corrections says of the verdicts."""
    corrections, replaced = read_corrections(path)
    found = judgement(corrections)
    for line in table(found).splitlines():
        say(line)
    for line in notes(found, replaced):
        say(line, err=True)

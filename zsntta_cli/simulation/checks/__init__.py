"""Checks of a method: what every method that replays from the cache owes, tried on streams.

A method never looks ahead, uses no label and no truth, gives the same twice, and takes any stream.
Each of these is a line of CHECKS (checks.py): it runs the method on streams that differ in nothing
that the method may know, and says which item first got another decision.
"""

from zsntta_cli.simulation.checks.checks import CHECKS, examine
from zsntta_cli.simulation.checks.examined import FAILED, HELD, NOT_RUN, CheckResult
from zsntta_cli.simulation.checks.material import Material

__all__ = ["CHECKS", "FAILED", "HELD", "NOT_RUN", "CheckResult", "Material", "examine"]

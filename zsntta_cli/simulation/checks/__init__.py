"""Checks of a method: what is required of every method that replays from the cache.

A method never looks ahead, uses no label and no truth, gives the same result twice, and accepts any
stream. Each of these is an entry of CHECKS (checks.py): it runs the method on streams that differ
only in what the method must not know, and names the first item with another decision.
"""

from zsntta_cli.simulation.checks.checks import CHECKS, examine
from zsntta_cli.simulation.checks.examined import FAILED, HELD, NOT_RUN, CheckResult
from zsntta_cli.simulation.checks.material import Material

__all__ = ["CHECKS", "FAILED", "HELD", "NOT_RUN", "CheckResult", "Material", "examine"]

"""The images of a review to ask about first: the ten most informative, whatever the answers."""

from collections.abc import Sequence

import numpy as np

from zsntta_cli.detection import asking
from zsntta_cli.detection.verdicts import CLEAN, JUDGED, VerdictRow

QUESTIONS = 10


def to_ask(rows: Sequence[VerdictRow], most: int = QUESTIONS) -> list[int]:
    """Places of rows that were decided in hindsight and not judged, the most informative first.

    This is one plan for all answers; `OnlineDetector.questions` plans each question by the answers
    so far.
    """
    if not rows:
        return []
    order = np.argsort([-row["margin"] for row in rows], kind="stable")
    evidence = float(np.mean([row["evidence"] or 0.0 for row in rows]))
    flagged = float(np.mean([row["answer"] != CLEAN for row in rows]))
    cells = asking.grid().cells(len(rows))
    is_open = np.array([rows[i]["stage"] != JUDGED for i in order.tolist()])
    belief = asking.prior(evidence, flagged)
    return order[is_open][asking.most_telling(belief, cells[is_open], most)].tolist()

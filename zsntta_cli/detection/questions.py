"""Questions about a folder that was decided in hindsight, and its verdicts after the answers."""

from dataclasses import replace

import numpy as np

from zsntta_cli.detection import asking
from zsntta_cli.detection.runs.flags import between
from zsntta_cli.detection.verdicts import Verdict, Verdicts
from zsntta_cli.errors import SettingsError, short

QUESTION = "Does this image belong to one of your classes?"
_BETTER = 0.02  # of Acc_H that another cut is expected to be better by, to be taken


class Questions:
    """What was answered about the images of one folder, and what to ask next.

    Answers may come in any order and about any of its images; the latest about an image counts.
    """

    def __init__(self, verdicts: Verdicts) -> None:
        """Begin with the verdicts (N,) on the whole folder, and no answer."""
        self.first = verdicts
        self.truths: dict[int, bool] = {}  # whether the image of a number is noise
        self._skipped: set[int] = set()
        self._order = np.argsort(-verdicts.margin, kind="stable")  # the most suspicious first
        self._cells = np.empty(len(verdicts), np.int64)  # (N,) their ranks of the grid
        self._cells[self._order] = asking.grid().cells(len(verdicts))

    def next(self, count: int = 1) -> list[int]:
        """The numbers of the images to ask about, those that say most first; answers change them."""
        done = self.truths.keys() | self._skipped
        rest = np.array([i for i in self._order.tolist() if i not in done], np.int64)
        return rest[asking.most_telling(self.belief(), self._cells[rest], count)].tolist()

    def answer(self, number: int, belongs: bool) -> None:
        """Take an answer: whether the image of a number belongs to one of the classes."""
        self.truths[number] = not belongs

    def skip(self, number: int) -> None:
        """Ask about an image of this number no more."""
        self._skipped.add(number)

    def belief(self) -> asking.Floats:
        """What the answers leave of the hypotheses (H,), see `asking`."""
        count = max(len(self.first), 1)
        evidence = float(np.nan_to_num(self.first.evidence).sum()) / count
        weight = asking.prior(evidence, float(self.first.flagged.sum()) / count)
        for number, is_noise in self.truths.items():
            weight = asking.updated(weight, int(self._cells[number]), is_noise)
        return weight

    def verdicts(self) -> Verdicts:
        """The verdicts (N,) with the answers.

        Thresholds move by one amount, so that as many are above as is expected to be best. What is
        above is noise where an answer said so of any image, or where it was before. What was
        flagged before and no more is unsure, and what was answered is as it was answered.
        """
        if not self.truths:
            return self.first
        first, is_flagged = self.first, self.first.flagged
        flagged = self._flagged()
        if flagged == is_flagged.sum():
            is_above, move = is_flagged, 0.0
        else:
            is_above = np.zeros(len(first), bool)
            is_above[self._order[:flagged]] = True
            move = between(np.sort(first.margin), flagged)
        noise = is_above & (first.noise | any(self.truths.values()))
        moved = replace(
            first, noise=noise, unsure=(is_above | is_flagged) & ~noise,
            threshold=first.threshold + move,
        )  # fmt: skip
        return moved.as_judged(self.truths)

    def _flagged(self) -> int:
        """How many of the images are best flagged."""
        now = int(self.first.flagged.sum())
        right = asking.accuracy_by_rank(self.first.top_score[self._order, 0])
        value = asking.expected_accuracy(self.belief(), right)
        rank = asking.grid().rank
        at = min(int(np.searchsorted(rank, now / len(self.first))), len(rank) - 1)
        best = int(value.argmax())
        if value[best] - value[at] <= _BETTER:
            return now
        wanted = int(rank[best] * len(self.first) + 0.5)
        return wanted if any(self.truths.values()) else min(wanted, now)

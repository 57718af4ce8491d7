"""Questions about a folder that was decided in hindsight, and its verdicts after the answers."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection import asking
from zsntta_cli.detection.flags import between
from zsntta_cli.detection.verdicts import Verdict, Verdicts
from zsntta_cli.errors import SettingsError, short

_BETTER = 0.02  # of Acc_H that another cut is expected to be better by, to be taken

ImageId = str | int  # an image's source where it alone has that, else its number


class Questions:
    """The answers about the images of one folder, and the next questions.

    Answers may come in any order and about any image; the latest one about an image counts.
    """

    def __init__(self, verdicts: Verdicts) -> None:
        """Begin with the verdicts (N,) on the whole folder, and no answer."""
        self.first = verdicts
        self.truths: dict[int, bool] = {}  # whether the image of a number is noise

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Numbers (N,) of the images, the most suspicious first."""
        return np.argsort(-self.first.margin, kind="stable")

    @cached_property
    def _cells(self) -> NDArray[np.int64]:
        """The grid's rank (N,) of each image."""
        cells = np.empty(len(self.first), np.int64)
        cells[self._order] = asking.grid().cells(len(cells))
        return cells

    def next(self, count: int = 1) -> list[int]:
        """Indices of at most `count` images to ask about, the most informative first.

        Images that were answered or judged before are left out. Answers change the order.
        """
        is_open = ~self.first.judged
        is_open[[*self.truths]] = False
        rest = self._order[is_open[self._order]]
        chosen = asking.most_telling(self.belief(), self._cells[rest], count)
        return [int(number) for number in rest[chosen]]

    def answer(self, number: int, belongs: bool) -> None:
        """Take an answer: whether the image with an index belongs to one of the classes."""
        self.truths[number] = not belongs

    def belief(self) -> asking.Floats:
        """The probabilities (H,) of the hypotheses after the answers, "no noise" first."""
        count = max(len(self.first), 1)
        evidence = float(np.nan_to_num(self.first.evidence).sum()) / count
        weight = asking.prior(evidence, float(self.first.flagged.sum()) / count)
        for number, is_noise in self.truths.items():
            weight = asking.updated(weight, int(self._cells[number]), is_noise)
        return weight

    def verdicts(self) -> Verdicts:
        """The verdicts (N,) with the answers.

        If every answer is that the image belongs, all thresholds move by one amount, so that as few
        images are above as is expected to be best. Images above are noise if any answer was noise,
        or if they were noise before. Images that are no longer flagged become unsure, and answered
        images are as they were answered.
        """
        if not self.truths:
            return self.first
        first, before, count = self.first, self.first.flagged, self._best_count()
        is_above, move = before, 0.0
        if count != before.sum():
            is_above = np.zeros(len(first), bool)
            is_above[self._order[:count]] = True
            move = between(np.sort(first.margin), count)
        noise = is_above & (first.noise | any(self.truths.values()))
        unsure, threshold = (is_above | before) & ~noise, first.threshold + move
        moved = replace(first, noise=noise, unsure=unsure, threshold=threshold)
        return moved.as_judged(self.truths)

    def _best_count(self) -> int:
        """How many images to flag: fewer, if every answer is that the image belongs.

        After an answer that is noise, a cut by ten answers loses more than it gains: noise of the
        same kind as the classes is hard to rank.
        """
        now, images = int(self.first.flagged.sum()), len(self.first)
        if any(self.truths.values()):
            return now
        right = asking.accuracy_by_rank(self.first.top_score[self._order, 0])
        accuracy = asking.expected_accuracy(self.belief(), right)
        rank = asking.grid().rank
        at = min(int(np.searchsorted(rank, now / images)), len(rank) - 1)
        best = int(accuracy.argmax())
        is_better = accuracy[best] - accuracy[at] > _BETTER
        return min(int(rank[best] * images + 0.5), now) if is_better else now

    def named(self, count: int) -> list[tuple[ImageId, Verdict]]:
        """The images to ask about as ids and verdicts."""
        return [(self._ids[number], self.first[number]) for number in self.next(count)]

    def number(self, image: Hashable) -> int:
        """The index of an image by its id or that index itself; SettingsError for anything else."""
        if image in self._numbers:
            return self._numbers[image]
        raise SettingsError(f"{short(str(image))} is no image of this folder.")

    @cached_property
    def _ids(self) -> list[ImageId]:
        sources = self.first.sources or [None] * len(self.first)
        counts = Counter(sources)
        return [i if s is None or counts[s] > 1 else s for i, s in enumerate(sources)]

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        numbers: dict[Hashable, int] = {name: i for i, name in enumerate(self._ids)}
        return numbers | {i: i for i in range(len(self._ids))}

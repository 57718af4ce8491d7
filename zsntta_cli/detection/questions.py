"""Questions about a folder that was decided in hindsight, and its verdicts after the answers."""

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cached_property

from zsntta_cli.detection.verdicts import Verdict, Verdicts
from zsntta_cli.errors import SettingsError, short

ImageId = str | int  # an image's source where it alone has that, else its number


def nearest(
    margins: Sequence[float], images: Sequence[Hashable], is_open: Sequence[bool]
) -> list[int]:
    """Numbers of the open ones of N images, those nearest to their threshold first.

    Of equal `images` the first alone is given; none, if a closed one is equal to it.
    """
    order = sorted(range(len(margins)), key=lambda i: (is_open[i], abs(margins[i])))
    first: dict[Hashable, int] = {}
    for i in order:
        first.setdefault(images[i], i)
    return [i for i in first.values() if is_open[i]]


class Questions:
    """The answers about the images of one folder, and the next questions.

    Answers may come in any order and about any image; the latest one about an image counts.
    """

    def __init__(self, verdicts: Verdicts) -> None:
        """Begin with the verdicts (N,) on the whole folder, and no answer."""
        self.first = verdicts
        self.truths: dict[int, bool] = {}  # whether the image of a number is noise

    def next(self, count: int = 1) -> list[int]:
        """Numbers of at most `count` images to ask about, those nearest to their threshold first.

        Images that were answered or judged before are left out, and so are copies of an image.
        """
        is_open = ~self.first.judged
        is_open[[*self.truths]] = False
        return nearest(self.first.margin.tolist(), self._images, is_open.tolist())[:count]

    @cached_property
    def _images(self) -> list[Hashable]:
        """What tells images apart: copies of one have the same scores."""
        first = self.first
        both = zip(first.margin.tolist(), map(tuple, first.top_score.tolist()), strict=True)
        return [*both]

    def answer(self, number: int, belongs: bool) -> None:
        """Take an answer: whether the image with an index belongs to one of the classes."""
        self.truths[number] = not belongs

    def verdicts(self) -> Verdicts:
        """The verdicts (N,) with the answers.

        Thresholds do not move: of noise of the classes' own kind a few answers at the threshold say
        too little, and a folder with little of it lost more than a clean one gained.
        """
        if not self.truths:
            return self.first
        of_image = {self._images[number]: truth for number, truth in self.truths.items()}
        copies = {i: of_image[image] for i, image in enumerate(self._images) if image in of_image}
        judged = self.first.as_judged({**copies, **self.truths})
        return judged.as_noise() if any(self.truths.values()) else judged

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

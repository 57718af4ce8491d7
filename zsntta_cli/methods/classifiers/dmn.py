"""DMN-weak, the dynamic memory of "Dual Memory Networks", CVPR 2024, without its trained part.

Each class keeps up to N features of the items of lowest entropy that the frozen model predicts as
it. For each item each class gets a vector: the mean of its text and its memory, with weights that
grow with their similarity to the item. The probabilities by these vectors are added to the frozen
model's. As in the released code, an item is stored before it is classified.
"""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.adapting import Adapting, Sample
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.methods.scores import Floats, softmax, unit
from zsntta_cli.settings.options import amount, count


class DMN(Adapting):
    """DMN-weak, with the released values: each class keeps its most certain images in a memory."""

    class Settings(MethodSettings):
        dmn_shots: int = count(50, "Number of images kept for each class.")
        dmn_sharpness: float = amount(5.5, "β: sharpness of the similarity weights.")

    cites = ("zhang2024dual",)
    cost = "keeps dmn-shots images of each class"

    def start(self, data: StreamData) -> None:
        (classes, dim), self.scale = self.text.shape, float(data.logit_scale)
        self.rows = np.zeros((classes, 1 + self.options.dmn_shots, dim))  # of a class: text, memory
        self.rows[:, 0] = self.text
        self.filled = np.ones(classes, np.intp)  # rows of each class
        self.entropies = np.full((classes, self.options.dmn_shots), np.inf)

    def scores(self, item: Sample, learn: bool) -> Floats:
        """Store the item; then add its probabilities by the vectors of the classes."""
        x, c = item.feature, int(item.probability.argmax())
        place = int(self.entropies[c].argmax())
        if learn and item.entropy < self.entropies[c, place]:
            self.entropies[c, place] = item.entropy
            self.rows[c, 1 + place] = x
            self.filled[c] = max(self.filled[c], place + 2)
        most = self.filled.max()
        rows, is_filled = self.rows[:, :most], np.arange(most) < self.filled[:, None]
        weights = np.exp(-self.options.dmn_sharpness * (1 - rows @ x)) * is_filled
        vectors = unit((weights[:, None] @ rows)[:, 0])
        return item.probability + softmax(self.scale * (vectors @ x))

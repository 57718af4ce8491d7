"""Zero-shot OOD detection: scores of single images, without a decision rule (Sec. 5.2).

All use the same features: Max-logit (arXiv 1911.11132), Energy (arXiv 2010.03759), MCM (arXiv
2211.13445), LogitGap (arXiv 2510.20134) and CLIPN (arXiv 2308.12213). Higher scores mean more ID.
"""

from functools import partial

import numpy as np

from zsntta_cli.methods import scores
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.method import FROZEN, NO_TEXT, Method, MethodSettings, cosine_temperature
from zsntta_cli.methods.scores import Features, Floats, sigmoid, softmax
from zsntta_cli.settings.options import count, option, share


class Score(Method):
    """A score of each image by itself: higher means more ID."""

    online = False
    decides = False
    cost = "keeps nothing; multiplies each item by C texts"
    class_probability = FROZEN


class MaxLogit(Score):
    """Max-logit, arXiv 1911.11132: the largest scaled cosine of an image and a class."""

    cites = ("hendrycks2022scaling",)

    def scores(self, items: StreamData, learn: bool) -> Floats:
        return items.score(scores.max_logit)


class Energy(Score):
    """Energy, arXiv 2010.03759: minus the free energy, log Σ exp of the scaled cosines."""

    cites = ("liu2020energy",)

    def scores(self, items: StreamData, learn: bool) -> Floats:
        return items.score(scores.energy)


class LogitGap(Score):
    """LogitGap, arXiv 2510.20134: the largest logit minus the mean of the next N."""

    class Settings(MethodSettings):
        logitgap_share: float = share(
            0.2, "N: number of other classes in the gap, as a share of the classes."
        )
        # `official`: 88 on ImageNet and 5 on CIFAR-10
        logitgap_others: int | None = count(
            None, "N: number of other classes in the gap; none means by logitgap-share."
        )

    cites = ("liang2025revisiting",)

    def scores(self, items: StreamData, learn: bool) -> Floats:
        share, classes = self.options.logitgap_share, len(items.text_features)
        others = self.options.logitgap_others or max(1, round(share * classes))
        return items.score(partial(scores.logit_gap, others=others))


class MCM(Score):
    """MCM, arXiv 2211.13445: the largest softmax value of cosines over a temperature."""

    class Settings(MethodSettings):
        # Table 5 of the ZS-NTTA paper quotes MCM's own results, for temperature 1. None: its Eq. 1.
        temperature: float | None = cosine_temperature()

    cites = ("ming2022delving",)
    is_probability = True

    def scores(self, items: StreamData, learn: bool) -> Floats:
        """The scores (T,): max_c exp(cos_c / τ) / Σ_k exp(cos_k / τ); by default τ = 1 / scale."""
        return items.score(scores.mcm, temperature=self.options.temperature)


class CLIPN(Score):
    """CLIPN, arXiv 2308.12213: it needs the features of its own "no" text encoder."""

    class Settings(MethodSettings):
        no_text: str = option(
            "", "A .npy file of the 'no' text features (C, D), with the classes in their order."
        )

    needs = NO_TEXT
    cites = ("wang2023clipn",)
    cost = "keeps nothing; multiplies each item by C more texts"
    is_probability = True

    def scores(self, items: StreamData, learn: bool) -> Floats:
        """Agreeing-to-differ (T,): Σ p(class) · p("yes" | class)."""
        names, no = items.text_features, items.more_text
        assert no is not None

        def agreeing_to_differ(logits: Features) -> Features:
            yes, no = np.split(logits, 2, axis=1)
            return np.asarray((softmax(yes) * sigmoid(yes - no)).sum(axis=1))

        return items.score(agreeing_to_differ, np.concatenate([names, no]))

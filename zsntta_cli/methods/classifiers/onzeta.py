"""OnZeta, "Online Zero-Shot Classification with CLIP", ECCV 2024, arXiv 2408.13320.

Two corrections of the frozen model are learned online: class weights ρ, which give each class at
least α / C of the items, and visual proxies w, which start as the texts and move towards the
images. A sample is classified by what was learned before it; then it is learned.

The paper's weight of the proxies, β √(i / n), needs the length n of the stream. Here it reaches β
after a set number of items, or at the stream's end if that number is 0. With α = 1, as published,
all classes get equal shares of the predictions. This is right for balanced test sets and wrong for
uneven streams, which need a smaller α.
"""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.adapting import Adapting, Sample
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.methods.scores import Floats, softmax, unit
from zsntta_cli.settings.options import amount, positive, share


class OnZeta(Adapting):
    """OnZeta, arXiv 2408.13320: class weights and visual proxies are learned online."""

    class Settings(MethodSettings):
        # The values are its paper's for ImageNet.
        onzeta_balance: float = share(
            1.0,
            "α: minimum share of each class among the predictions, as a multiple of 1/C; 1 means "
            "equal shares.",
        )
        onzeta_prior_rate: float = amount(20.0, "Step size of the class weights ρ.")
        onzeta_proxy_rate: float = amount(0.5, "Step size of the visual proxies w.")
        onzeta_temperature: float = positive(0.04, "Temperature of the visual softmax.")
        onzeta_mix: float = share(0.8, "β: maximum weight of the visual proxies.")
        # The released code uses the length of the stream, which no online method knows. This is the
        # size of the paper's validation set of ImageNet. 2,000 loses up to 5 points of Acc_S.
        onzeta_mix_items: int = amount(
            50_000,
            "Number of items after which the proxies have the weight β; 0 means the whole stream.",
        )

    cites = ("qian2024online",)
    revision = 2
    official = {"onzeta_mix_items": 0}
    cost = "keeps a proxy of D numbers and a weight for each class"

    def start(self, data: StreamData) -> None:
        """Only if `onzeta-mix-items` is 0, the number of items of the stream matters."""
        self.proxies, self.weights = self.text, np.zeros(len(self.text))  # w (C, D), ρ (C,)
        self.mix_items = self.options.onzeta_mix_items or max(int((~data.injected).sum()), 1)
        self.seen = 0

    def scores(self, item: Sample, learn: bool) -> Floats:
        """Mix the probabilities by texts and by proxies; then learn both corrections."""
        o, i = self.options, self.seen + 1
        by_text = softmax(item.logits + self.weights)
        by_proxy = softmax(self.proxies @ item.feature / o.onzeta_temperature)
        beta = o.onzeta_mix * min(1, i / self.mix_items) ** 0.5
        if learn:
            self.seen = i
            rate = 1 / i**0.5
            step = o.onzeta_prior_rate * rate * (by_text - o.onzeta_balance / len(by_text))
            self.weights = np.maximum(self.weights - step, 0)
            gradient = np.outer(by_proxy - by_text, item.feature) / o.onzeta_temperature
            self.proxies = unit(self.proxies - o.onzeta_proxy_rate * rate * gradient)
        return beta * by_proxy + (1 - beta) * by_text

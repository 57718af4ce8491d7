"""BCA, "Bayesian Test-Time Adaptation for Vision-Language Models", CVPR 2025, arXiv 2503.09248.

The means of C clusters start as the class texts, and their priors of the classes as the identity. A
sample's probabilities are the clusters' likelihoods times these priors. It is classified by what
was learned before; then it moves the mean and the prior of its class if its probability is large.

The values are those of another implementation (TTABC); the authors' code does not confirm them. A
text counts as 20,000 items, so means hardly move, and the prior has nearly all of the effect.
"""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.adapting import Adapting, Sample
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.methods.scores import Floats, softmax, unit
from zsntta_cli.settings.options import amount, positive, share


class BCA(Adapting):
    """BCA, arXiv 2503.09248: class means and a prior of the classes move with the samples."""

    class Settings(MethodSettings):
        bca_mean_least: float = share(
            0.05, "Probability above which an item updates the mean of its class."
        )
        bca_mean_items: float = positive(
            20_000.0, "Number of items that the text of a class counts as in the mean."
        )
        bca_prior_least: float = share(
            0.65, "Probability above which an item updates the prior of its class."
        )
        bca_prior_items: float = amount(1.0, "Number of items that the initial prior counts as.")

    cites = ("zhou2025bayesian",)
    cost = "keeps a mean of D numbers and a prior of C numbers for each class"

    def start(self, data: StreamData) -> None:
        classes, self.scale = len(self.text), float(data.logit_scale)
        self.means, self.prior = self.text, np.eye(classes)  # of the classes, for each cluster
        self.mean_items = np.full(classes, self.options.bca_mean_items, np.float64)
        self.prior_items = np.full(classes, self.options.bca_prior_items, np.float64)

    def scores(self, item: Sample, learn: bool) -> Floats:
        """Multiply likelihood and prior; then move the mean and the prior of the class."""
        o, x = self.options, item.feature
        posterior = softmax(self.scale * (self.means @ x)) @ self.prior
        k = int(posterior.argmax())
        if learn and posterior[k] > o.bca_mean_least:
            self.means[k] = unit(self.mean_items[k] * self.means[k] + x)
            self.mean_items[k] += 1
        if learn and posterior[k] > o.bca_prior_least:
            n = self.prior_items[k]
            self.prior[k] = (n * self.prior[k] + posterior) / (n + 1)
            self.prior_items[k] += 1
        return np.asarray(posterior)

"""A detector with a classifier behind it, as in "adand+tda"."""

from dataclasses import replace
from typing import Any

from zsntta_cli.methods.base import Decisions, Online, OnlineClassifier, StreamData
from zsntta_cli.methods.entry import Classifier, Method
from zsntta_cli.settings import ThresholdSettings


def decide_both(
    detector: Method,
    classifier: Classifier,
    data: StreamData,
    options: Any,
    threshold: ThresholdSettings,
) -> Decisions:
    """Decide on a whole stream; `options` are the settings of both."""
    decisions: Decisions = detector.load()(data, options, threshold)
    assert decisions.is_noise is not None
    offered = ~decisions.is_noise & ~data.injected
    return replace(decisions, class_index=classifier.load()(data, options, offered))


class Behind:
    """Both while the stream runs."""

    def __init__(
        self,
        detector: Method,
        classifier: Classifier,
        data: StreamData,
        options: Any,
        threshold: ThresholdSettings,
    ) -> None:
        self.detector: Online = detector.start(data, options, threshold)
        self.classifier: OnlineClassifier = classifier.start(data, options)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on noise as the detector does; the classifier learns from clean samples."""
        decisions = self.detector.push(items, learn)
        assert decisions.is_noise is not None
        offered = ~decisions.is_noise & ~items.injected & learn
        return replace(decisions, class_index=self.classifier.classify(items, offered))

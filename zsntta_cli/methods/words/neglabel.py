"""NegLabel, arXiv 2403.20078, and CSP, arXiv 2410.08611: class names against negative words.

AdaND taught by them (ours) is Algorithm 1 on their noise score. The decisions in stage 1, the
pseudo-labels and the evidence come from u = 1 - S instead of ZS-CLIP's u. With a gap, only items
far from the threshold enter the loss of a step.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors import adand
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.methods.words.settings import (
    CspAdaNDSettings,
    NegLabelAdaNDSettings,
    NegLabelSettings,
)
from zsntta_cli.methods.words.vocabulary import Vocabulary
from zsntta_cli.settings import ThresholdSettings


def run(data: StreamData, options: NegLabelSettings, threshold: ThresholdSettings) -> Decisions:
    """Call an item noise iff u = 1 - S is above its online threshold; keep ZS-CLIP's class."""
    return decided(data.class_index, id_scores(data, options), threshold)


def run_taught(
    data: StreamData,
    options: NegLabelAdaNDSettings | CspAdaNDSettings,
    threshold: ThresholdSettings,
) -> Decisions:
    """Decide as AdaND that learns from the words' decisions instead of ZS-CLIP's."""
    own_score = 1 - id_scores(data, options)
    return adand.run(replace(data, own_score=own_score), options, threshold)


def id_scores(data: StreamData, options: NegLabelSettings) -> NDArray[np.float64]:
    """The ID scores S (T,) in [0, 1]: the softmax mass of names beside groups of negatives."""
    vocabulary = Vocabulary.of(data.pool, options)
    return image_scores(data, vocabulary.id_share, vocabulary.text)


def decided(
    class_index: NDArray[np.int32], id_score: NDArray[np.float64], threshold: ThresholdSettings
) -> Decisions:
    """Call an item noise iff 1 - S is above the online threshold of scores (T,) in [0, 1]."""
    thresholds = OnlineThreshold(threshold)(1 - id_score)
    return Decisions(
        class_index, 1 - id_score > thresholds, id_score, detector_threshold=thresholds
    )

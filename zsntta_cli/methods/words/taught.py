"""AdaND taught by negative words (ours): Algorithm 1 on NegLabel's or CSP's noise score.

Whatever AdaND takes from ZS-CLIP's u - who decides in stage 1, the pseudo-labels, the evidence - it
takes from u = 1 - S. With a gap, only what the words are sure of enters a step's loss.
"""

from dataclasses import replace

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors import adand
from zsntta_cli.methods.words.neglabel import id_scores
from zsntta_cli.methods.words.settings import CspAdaNDSettings, NegLabelAdaNDSettings
from zsntta_cli.settings import ThresholdSettings

Taught = NegLabelAdaNDSettings | CspAdaNDSettings


def run(data: StreamData, options: Taught, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as it would be online."""
    return adand.run(scored_by_words(data, options), options, threshold)


def scored_by_words(data: StreamData, options: Taught) -> StreamData:
    """The stream with the words' noise scores in the place of the frozen model's."""
    return replace(data, own_score=1 - id_scores(data, options))

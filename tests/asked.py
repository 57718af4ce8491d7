"""Folders that a detector has decided on, to ask about."""

import numpy as np

from zsntta_cli.detection.verdicts import Verdicts


def verdicts(margin, sure=False, sources=()):
    """Verdicts of such margins: above 0 noise if that is sure, or unsure."""
    margin = np.asarray(margin, float)
    count, above = len(margin), margin > 0
    return Verdicts(
        class_names=("cat",), class_index=np.zeros(count, np.int32),
        noise=above & sure, unsure=above & (not sure),
        score=margin + 0.5, threshold=np.full(count, 0.5), adapted=np.ones(count, bool),
        top_index=np.zeros((count, 1), np.int32), top_score=np.full((count, 1), 0.9),
        evidence=np.full(count, np.nan), level=np.full(count, np.nan), sure=np.full(count, sure),
        judged=np.zeros(count, bool), sources=sources,
    )  # fmt: skip


def folder(count=400, noise=0.0, sure=False, shift=3.0):
    """Verdicts that flag the upper 30 % of a folder, and what its images are."""
    generator = np.random.default_rng(0)
    truth = np.arange(count) < noise * count
    score = generator.normal(size=count) + shift * truth
    return verdicts(score - np.quantile(score, 0.7), sure), truth

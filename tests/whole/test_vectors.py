"""Decisions of the paper's released code on made-up streams, under `official`."""

from typing import Any

import numpy as np
import pytest
import released

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors import adand, zs_clip
from zsntta_cli.simulation.runs import build_run

CASES = [
    (stream, case)
    for stream, cases in {
        "k10": ("zs-clip", "zs-clip-bs64", "adand", "adand-small", "adand-bs128"),
        "k100": ("zs-clip", "zs-clip-bs64", "adand", "adand-small", "adand-bs128"),
        "clean": ("zs-clip", "adand", "adand-small"),
    }.items()
    for case in cases
]


def run_case(vectors: dict[str, Any], case: str) -> Decisions:
    features, text = vectors["features"], vectors["text_features"]
    scale = float(vectors["logit_scale"])
    injected = vectors["targets"] == -1000
    method = "adand" if case.startswith("adand") else "zs-clip"
    items = np.arange(len(features)) if method == "adand" else np.flatnonzero(~injected)
    data = StreamData.scored(features, text, scale, injected).part(items)
    batch_size, update_every, warmup, queue = (int(p) for p in vectors[f"{case}/params"])
    run = build_run(
        method, "", "", None, "", "official",
        batch_size=batch_size, update_every=update_every, warmup=warmup, queue=queue,
    )  # fmt: skip
    if method == "zs-clip":
        return zs_clip.ZsClip(data, run.options, run.threshold).push(data)
    method = adand.AdaND(data, run.options, run.threshold)
    method.detector = adand.LinearDetector(vectors["detector_weight"], vectors["detector_bias"])
    return method.push(data)


@pytest.mark.parametrize(("stream", "case"), CASES)
def test_every_decision_is_the_released_codes(stream: str, case: str) -> None:
    vectors = released.stream(stream)
    decisions = run_case(vectors, case)
    prediction = np.where(decisions.is_noise, -1, decisions.class_index)
    batch = int(vectors[f"{case}/params"][0])
    whole = min(len(prediction), len(vectors[f"{case}/prediction"])) // batch * batch
    assert whole > 1000
    assert np.array_equal(prediction[:whole], vectors[f"{case}/prediction"][:whole])
    score = vectors[f"{case}/id_score"]
    np.testing.assert_allclose(decisions.id_score[:whole], score[:whole], atol=1e-4)

"""A classifier that learns from the items that a detector calls clean: "adand+tda"."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.settings import ThresholdSettings

Classes = Callable[[StreamData, Any, NDArray[np.bool_]], NDArray[np.int32]]


def run(
    detect: Callable[..., Decisions],
    classify: Classes,
    data: StreamData,
    options: Any,
    threshold: ThresholdSettings,
) -> Decisions:
    """Noise as the detector decides it; classes by what it calls clean, injected noise never.

    `options` are the settings of both.
    """
    decisions = detect(data, options, threshold)
    assert decisions.is_noise is not None
    offered = ~decisions.is_noise & ~data.injected
    return replace(decisions, class_index=classify(data, options, offered))

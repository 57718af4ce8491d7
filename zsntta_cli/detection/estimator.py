"""The detector as scikit-learn's outlier detectors speak: +1 clean, -1 noise."""

import inspect
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.errors import SettingsError


class NoiseEstimator:
    """An `OnlineDetector` to put into pipelines: X (N, D) are raw image features.

    `fit` begins anew and learns X in order, `partial_fit` goes on; labels are not looked at. What
    is asked of it afterwards changes nothing. scikit-learn itself is not needed.

    -1 is whatever is above its threshold, noise or unsure, so that `predict` is the sign of
    `decision_function`; `detector_.predict(X).answer` tells the two apart.
    """

    _estimator_type = "outlier_detector"

    def __init__(
        self,
        text_features: Any = None,
        logit_scale: float = 100.0,
        method: str = "ridge",
        normalized: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """Parameters are those of an `OnlineDetector`; nothing is checked before `fit`."""
        self.text_features, self.logit_scale, self.method = text_features, logit_scale, method
        self.normalized, self.settings = normalized, settings

    def fit(self, X: ArrayLike, y: object = None) -> "NoiseEstimator":  # noqa: ARG002, N803
        """Forget all, and learn features (N, D) in order: SettingsError where they will not do."""
        self._learn(X, anew=True)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> "NoiseEstimator":  # noqa: ARG002, N803
        """Learn more features (N, D), in order."""
        self._learn(X)
        return self

    def fit_predict(self, X: ArrayLike, y: object = None) -> NDArray[np.int64]:  # noqa: ARG002, N803
        """Learn from features (N, D) alone, and give what was decided on each as it came."""
        return _signs(self._learn(X, anew=True))

    def _learn(self, features: ArrayLike, anew: bool = False) -> Verdicts:
        if anew or not hasattr(self, "detector_"):
            self.detector_ = OnlineDetector(
                self.text_features, self.logit_scale, self.method, normalized=self.normalized,
                **(self.settings or {}),
            )  # fmt: skip
        verdicts = self.detector_.update(features)
        self.n_features_in_ = self.detector_.text_features.shape[1]
        return verdicts

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:  # noqa: N803
        """+1 for features (N, D) that are clean, -1 for noise and where it is unsure."""
        return _signs(self._judged(X))

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Higher = more ID: the noise scores (N,) turned round."""
        return -self._judged(X).score

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Above 0 or 0 for what is clean, below for the others (N,): the margins turned round."""
        return -self._judged(X).margin

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The parameters by name."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **params: Any) -> "NoiseEstimator":
        """Set some of the parameters: SettingsError for an unknown name."""
        for name, value in params.items():
            if name not in _PARAMETERS:
                raise SettingsError(f"{name} is none of {', '.join(_PARAMETERS)}.")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of it, which is there then."""
        from sklearn.utils import Tags, TargetTags

        return Tags("outlier_detector", TargetTags(required=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "detector_")

    def _judged(self, features: ArrayLike) -> Verdicts:
        if not hasattr(self, "detector_"):
            raise SettingsError("this estimator is not fitted yet: call fit or partial_fit first.")
        return self.detector_.predict(features)


_PARAMETERS = tuple(inspect.signature(NoiseEstimator).parameters)


def _signs(verdicts: Verdicts) -> NDArray[np.int64]:
    return np.where(verdicts.flagged, -1, 1)

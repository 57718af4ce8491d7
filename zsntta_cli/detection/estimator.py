"""The detector with the interface of scikit-learn's outlier detectors: +1 clean, -1 noise."""

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.flags import Flag, FlagValue, move_of
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.settings.options import check


class NoiseEstimator:
    """An `OnlineDetector` for pipelines: X (N, D) are raw image features.

    `fit` forgets everything and learns X as a whole, in random orders, and `fit_predict` returns
    the decisions on X: the verdicts of `OnlineDetector.decide_all`. `partial_fit` continues with a
    stream, in its order. Labels are ignored. Predictions change nothing.

    -1 means above the threshold, noise or unsure, so that `predict` is the sign of
    `decision_function`; `detector_.predict(X).answer` distinguishes the two.

    Attributes:
        detector_: the `OnlineDetector` that learned.
        classes_: (C,) names of the classes, by the rows of text_features; `predict` does not return
            them.
        offset_: the least score_samples of clean images; 0 without a flag.
        n_features_in_: dims D.
        feature_names_in_: (D,) names of the columns, if X had some.
    """

    _estimator_type = "outlier_detector"

    def __init__(
        self,
        text_features: Any = None,
        logit_scale: float = 100.0,
        method: str = "ridge",
        normalized: bool = False,
        settings: dict[str, Any] | None = None,
        *,
        class_names: Any = None,
        logit_bias: float | None = None,
        flag: FlagValue = None,
        clean: Any = None,
        seed: int = 0,
    ) -> None:
        """Parameters are those of an `OnlineDetector`; nothing is checked before `fit`.

        `flag` says how many of the images of `fit` are -1, as for `decide_all`; with "fpr=1%",
        `clean` (M, D) are features of images known to be clean. `seed` is for the random orders.
        """
        self.text_features, self.logit_scale, self.method = text_features, logit_scale, method
        self.normalized, self.settings = normalized, settings
        self.class_names, self.logit_bias = class_names, logit_bias
        self.flag, self.clean, self.seed = flag, clean, seed

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: N803
        """Forget everything, and learn features (N, D); ValueError if they are invalid."""
        self.fit_predict(X, y)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002, N803
        """Learn more features (N, D), in order; a shift by `flag` in `fit` stays."""
        is_first = not self.__sklearn_is_fitted__()
        check(
            not is_first or self.flag is None,
            "flag needs the images that fit sees: call fit first.",
        )
        rows = self._rows(X, is_first)
        detector = self._begun() if is_first else self.detector_
        detector.update(rows)
        if is_first:
            self._take(detector, 0.0)
        return self

    def fit_predict(self, X: ArrayLike, y: object = None) -> NDArray[np.int64]:  # noqa: ARG002, N803
        """Learn features (N, D) alone, and return the decision on each in hindsight."""
        rows, flag, detector = self._rows(X, reset=True), Flag.of(self.flag), self._begun()
        verdicts = detector.decide_all(
            rows, seed=self.seed, flag=flag, clean=self.clean, learn=True
        )
        clean = None if self.clean is None else detector.predict(self.clean).margin
        moved = None if flag == Flag() else move_of(detector.predict(rows).margin, flag, clean)
        self._take(detector, -(moved or 0.0))
        return np.where(verdicts.flagged, -1, 1)

    def _begun(self) -> OnlineDetector:
        """A detector that has seen nothing."""
        return OnlineDetector(
            self.text_features, self.logit_scale, self.method, normalized=self.normalized,
            **{"class_names": self.class_names, "logit_bias": self.logit_bias,
               **(self.settings or {})},
        )  # fmt: skip

    def _take(self, detector: OnlineDetector, offset: float) -> None:
        """Set the fitted attributes, only after everything succeeded."""
        self.detector_, self.offset_ = detector, offset
        self.classes_ = np.array(detector.class_names, object)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:  # noqa: N803
        """+1 for features (N, D) that are clean, -1 for noise and unsure ones."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Scores (N,), higher = more ID: the threshold minus the noise score."""
        return -self._judged(X).margin

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Scores (N,), score_samples minus `offset_`: at least 0 for clean features."""
        return self.score_samples(X) - self.offset_

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The parameters by name."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **params: Any) -> Self:
        """Set some of the parameters; SettingsError for an unknown name."""
        for name in params:
            check(name in _PARAMETERS, f"{name} is none of {', '.join(_PARAMETERS)}.")
        vars(self).update(params)
        return self

    def __sklearn_tags__(self) -> Any:
        """The tags that scikit-learn asks for, which is then installed."""
        from sklearn.utils import Tags, TargetTags

        return Tags("outlier_detector", TargetTags(required=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "detector_")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(method={self.method!r}, logit_scale={self.logit_scale!r})"

    def _judged(self, features: ArrayLike) -> Verdicts:
        if not self.__sklearn_is_fitted__():
            from zsntta_cli.detection.unfitted import UnfittedEstimator

            raise UnfittedEstimator("this estimator is not fitted yet: call fit or partial_fit.")
        return self.detector_.predict(self._rows(features))

    def _rows(self, features: ArrayLike, reset: bool = False) -> NDArray[np.floating]:
        """Features (N, D) checked by scikit-learn; `reset` takes their number and names."""
        from sklearn.utils.validation import validate_data

        if hasattr(features, "detach"):  # a tensor, wherever it lies
            features = features.detach().cpu().float().numpy()
        return validate_data(self, features, reset=reset)


_PARAMETERS = tuple(inspect.signature(NoiseEstimator).parameters)

"""The error of an estimator that is not fitted: scikit-learn's own, which is imported for it."""

from sklearn.exceptions import NotFittedError

from zsntta_cli.errors import SettingsError


class UnfittedEstimator(SettingsError, NotFittedError):  # type: ignore[misc]
    """An estimator was used before it learned anything."""

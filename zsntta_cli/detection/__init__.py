"""A folder or a stream of one's own -> a verdict an image.

`OnlineDetector` decides on features and needs NumPy alone; `NoiseDetector` is the same on images
and brings its encoder; `NoiseEstimator` speaks as scikit-learn's outlier detectors do.
"""

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.estimator import NoiseEstimator
from zsntta_cli.detection.images import NoiseDetector
from zsntta_cli.detection.verdicts import Verdict, Verdicts

__all__ = ["NoiseDetector", "NoiseEstimator", "OnlineDetector", "Verdict", "Verdicts"]

"""Detect noise in a folder or a stream of the user's own: one verdict for each image.

`OnlineDetector` decides on features and needs only NumPy; `NoiseDetector` does the same on images
and has an encoder.
"""

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.images import NoiseDetector
from zsntta_cli.detection.verdicts import Verdict, Verdicts

__all__ = ["NoiseDetector", "OnlineDetector", "Verdict", "Verdicts"]

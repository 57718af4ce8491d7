"""A folder or a stream of one's own -> a verdict an image.

`OnlineDetector` decides on features and needs NumPy alone; `NoiseDetector` is given images.
"""

from zsntta_cli.detection.online import OnlineDetector
from zsntta_cli.detection.verdicts import Verdict, Verdicts

__all__ = ["OnlineDetector", "Verdict", "Verdicts"]

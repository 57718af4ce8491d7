"""A detector on features, as its stream runs: NumPy alone, no torch, no images."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.hindsight import passes_for, shown_again
from zsntta_cli.detection.inputs import checked_features, checked_text, checked_settings
from zsntta_cli.detection.scoring import Scorer, verdicts_of
from zsntta_cli.detection.verdicts import ADAPTED, WARM_UP, Stage, Verdicts
from zsntta_cli.methods import METHODS

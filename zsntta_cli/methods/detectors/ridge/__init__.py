"""Ridge: our noise detector, which needs no labels, no learning rate and no injected noise.

The frozen model's uncertainty varies at random from image to image, but images of the same kind
have part of it in common. A ridge regression of the uncertainty on the image feature, updated while
the stream runs, gives a view z that separates noise of another kind from the classes. If the stream
shows no such noise, scores of single images decide, and fewer items are called noise. The nearest
published ideas are ETLT, "A Simple Test-Time Method for Out-of-Distribution Detection", arXiv
2207.08210, and RTL, "Test-Time Linear Out-of-Distribution Detection" (CVPR 2024), which regress an
OOD score on the features of a test set and rank by the fit, also online. Ridge regresses three
scores with a large penalty, uses the fit only as far as evidence supports it, and decides.

An item is decided by itself and by what was learned before its block, so items may come one by one.
The detector learns at the end of a block. Its steps have the numbers of docs/detector.md.
"""

from zsntta_cli.methods.detectors.ridge.detector import RidgeDetector
from zsntta_cli.methods.detectors.ridge.stepper import RidgeStepper, run, stepper

__all__ = ["RidgeDetector", "RidgeStepper", "run", "stepper"]

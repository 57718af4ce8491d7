"""Ridge: a noise detector that needs no labels, no learning rate and no injected noise. Ours.

How unsure the frozen model is of an image is noisy; what images of a kind have in common in it is
not. A ridge regression of that doubt on the image feature, kept as the stream runs, is a view z in
which noise of another kind stands apart. Where the stream shows no such noise, scores of the
single image decide, on as few items as the evidence asks for. Nearest published idea: ETLT, "A
Simple Test-Time Method for Out-of-Distribution Detection", arXiv 2207.08210, and RTL, "Test-Time
Linear Out-of-Distribution Detection" (CVPR 2024), which regress an OOD score on the features of a
test set and rank by the fit, also online. Ours: three scores at once, a large penalty, evidence
that says how far the fit is trusted, and a decision.

An item is decided by what was learned before its block and by itself, so items come one by one;
learning is at the end of a block. Steps are numbered as the equations in docs/detector.md.
"""

from zsntta_cli.methods.detectors.ridge.detector import RidgeDetector
from zsntta_cli.methods.detectors.ridge.stepper import RidgeStepper, run, stepper

__all__ = ["RidgeDetector", "RidgeStepper", "run", "stepper"]

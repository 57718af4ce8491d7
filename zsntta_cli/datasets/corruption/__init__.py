"""Any set corrupted as it is read: `svhn:fog:5`, `mine:jpeg:3=PATH`, `cifar10:snow:1:before`.

The fifteen corruptions of Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations (arXiv:1903.12261), each at five severities. An image is brought to 224 x 224 pixels
and then corrupted, which is what CLIP sees and how ImageNet-C was made; with `:before` it is
corrupted at its own size, as CIFAR-10-C was. Sets that are published corrupted (`cifar10-c:fog:1`)
keep their names and are read as they are.

Light: what is in this module knows names alone.
"""

from dataclasses import dataclass

from zsntta_cli.errors import DatasetError, near, short

BEFORE = "before"  # the resize, at the image's own size
SEVERITIES = 5
RULES = 1  # of the pixels: raise it when they change, feature files then say so
ALL = "all"  # of the sets that are published corrupted: the 15 that the benchmark averages over
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
    "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform",
    "pixelate", "jpeg_compression",
)  # fmt: skip
_SHORT = {"jpeg": "jpeg_compression", "elastic": "elastic_transform"}
FORM = f"NAME:CORRUPTION:SEVERITY, as in svhn:fog:5, or with :{BEFORE} at its end"


@dataclass(frozen=True)
class Corruption:
    """One of the fifteen, its severity from 1 to 5, and when it is applied."""

    name: str
    severity: int
    is_before: bool = False  # the resize

    def __str__(self) -> str:
        size = "own size" if self.is_before else "224 px"
        return f"{self.name} {self.severity}, {size}, rules {RULES}"


def parse_corruption(name: str, parameters: str) -> Corruption:
    """The corruption that the name of a set says.

    Raises:
        DatasetError: it says none, or one that there is not.
    """
    kind, _, rest = parameters.partition(":")
    severity, _, moment = rest.partition(":")
    levels = [str(level) for level in range(1, SEVERITIES + 1)]
    if kind == ALL:
        raise DatasetError(f"'{short(name)}': a set is corrupted in one way, not in {ALL}: {FORM}.")
    if kind not in (*CORRUPTIONS, *_SHORT):
        meant = near(kind, (*CORRUPTIONS, *_SHORT))
        raise DatasetError(
            f"'{short(name)}': no corruption '{short(kind)}'{meant}, must be {FORM}, with one of "
            f"{', '.join(CORRUPTIONS)}; {' and '.join(_SHORT)} are short for two."
        )
    if severity not in levels or moment not in ("", BEFORE) or rest.endswith(":"):
        raise DatasetError(
            f"'{short(name)}': after {kind} must come a severity from 1 to {SEVERITIES}, then "
            f"nothing or :{BEFORE} (the resize), as in {kind}:3 or {kind}:3:{BEFORE}."
        )
    return Corruption(_SHORT.get(kind, kind), int(severity), moment == BEFORE)


def is_corruption(parameters: str) -> bool:
    """Whether what follows a set's name says how it is corrupted."""
    try:
        parse_corruption("", parameters)
    except DatasetError:
        return False
    return True

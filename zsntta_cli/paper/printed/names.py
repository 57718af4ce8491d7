"""What the paper calls sets, methods and metrics, and the rows of its tables."""

from zsntta_cli.paper.printed.published import AVERAGE, Printed
from zsntta_cli.paper.printed.tables import BY_ID, BY_OOD, BY_RATIO, BY_STREAM, Table

SETS = {
    "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "cub200": "CUB-200-2011",
    "cars196": "STANFORD-CARS", "food101": "Food-101", "pets37": "Oxford-IIIT Pet",
    "imagenet": "ImageNet", "imagenet-sketch": "ImageNet-K", "imagenet-a": "ImageNet-A",
    "imagenet-v2": "ImageNet-V2", "imagenet-r": "ImageNet-R", "svhn": "SVHN", "lsun": "LSUN",
    "inaturalist": "iNaturalist", "sun": "SUN", "texture": "Texture", "places": "Places",
    "ninco": "NINCO", "cifar10-c": "CIFAR-10-C", "cifar100-c": "CIFAR-100-C",
    "imagenet-c": "ImageNet-C", AVERAGE: "Average", "RN50": "RN50", "ViT-L-14": "ViT-L/14",
    "ViT-B-16": "ViT-B/16",
}  # fmt: skip
METHODS = {
    "zs-clip": "ZS-CLIP", "tent": "Tent", "sotta": "SoTTA", "tpt": "TPT", "tda": "TDA",
    "max-logit": "Max-Logit", "energy": "Energy", "mcm": "MCM", "clipn": "CLIPN",
    "neglabel": "NegLabel",
}  # fmt: skip
METRICS = {
    "acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H", "auroc": "AUROC", "fpr95": "FPR95",
    "time_s": "s", "memory_gib": "GiB",
}  # fmt: skip
LEAD_COLUMN = "against ZS-CLIP"
_PIPELINES = {"gt": "GT", "normal": "Normal", "all": "All-update"}
_NOISES = {"gaussian": "With Gaussian noise", "none": "Without Gaussian noise"}
_STREAMS = {0.0: "Clean Data Stream", 0.5: "Noisy Data Stream"}
_LABELS = {"detector": "Noise Detector", "frozen": "Frozen Model"}


def shown(name: str) -> str:
    """A set or an encoder as the paper calls it; one that it does not know, by its own name."""
    return SETS.get(name, name)


def group_name(table: Table, cell: Printed) -> str:
    """Which part of a table a cell is in; nothing where it has one part."""
    return shown(str(getattr(cell, table.groups))) if table.groups else ""


def column_name(table: Table, cell: Printed) -> str:
    """Which column of its part a cell is in."""
    if table.columns in (BY_OOD, BY_ID):
        return shown(str(getattr(cell, table.columns)))
    ratio = cell.ratio or 0.0
    if table.columns == BY_RATIO:
        return f"{ratio:.0%}"
    return _STREAMS[ratio] if table.columns == BY_STREAM else ""


def row_name(table: Table, cell: Printed) -> tuple[str, ...]:
    """Which row of its part a cell is in: a text for each of the table's heads."""
    settings = cell.settings
    if table.heads == ("Method",):
        return (_method(table, cell),)
    if len(table.heads) == 2:  # the modules of the method
        return (_tick(cell.method == "adand"), _tick(settings["noise"] != "none"))
    [(name, value)] = settings.items()
    return (_LABELS[value] if name == "pseudo_labels" else value.capitalize(),)


def _tick(included: bool) -> str:
    return "✓" if included else "×"


def _method(table: Table, cell: Printed) -> str:
    settings = cell.settings
    if cell.method == "adand+tent":
        return f"{table.ours} (with Tent)"
    name = METHODS.get(cell.method, table.ours)
    said = [
        *(_PIPELINES[v] for k, v in settings.items() if k == "pipeline"),
        *(_NOISES[v] for k, v in settings.items() if k == "noise"),
        *(f"bs={v}" for k, v in settings.items() if k == "batch_size"),
    ]
    return " ".join([name, *(f"({part})" for part in said)])

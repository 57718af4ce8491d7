"""The paper's tables: what each shows, its layout, and its names of sets and rows.

Each table is a line of TABLES; published.csv has the content of its cells. This module does not
import NumPy.
"""

from dataclasses import dataclass
from typing import Any

from zsntta_cli.errors import SettingsError, near
from zsntta_cli.paper.printed.published import AVERAGE, LEAD, Printed

ACCURACIES, DETECTION = ("acc_s", "acc_n", "acc_h"), ("auroc", "fpr95")
LEADS = ("auroc_minus_zs-clip", "fpr95_minus_zs-clip")
BY_OOD, BY_ID, BY_RATIO, BY_STREAM, ONE = "ood_set", "id_set", "ratio", "stream", ""
FIVE_SEEDS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class PaperTable:
    """The layout of a table."""

    number: int
    label: str
    title: str
    metrics: tuple[str, ...] = ACCURACIES
    groups: str = "id_set"  # what its parts differ in: "id_set", "encoder", or nothing
    columns: str = BY_OOD
    heads: tuple[str, ...] = ("Method",)
    ours: str = "AdaND (Ours)"  # the table's name of AdaND
    leads: tuple[str, ...] = ()  # metrics whose difference to ZS-CLIP is beside the average
    seeds: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The label without its prefix."""
        return self.label.rpartition(":")[2]


_ABLATION: dict[str, Any] = {"columns": BY_STREAM, "heads": ("Noise Detector", "Gaussian Noise")}
_AUC: dict[str, Any] = {"metrics": DETECTION, "leads": LEADS}
_ALONE: dict[str, Any] = {"columns": ONE, "ours": "Ours"}
_SEEDS: dict[str, Any] = {
    "seeds": FIVE_SEEDS, "ours": "ZS-NTTA (Ours)",
    "notes": (
        "the paper's ± of an average is the mean of the sets' deviations",
        "the paper calls AdaND 'ZS-NTTA (Ours)' here",
    ),
}  # fmt: skip
_NO_RATIO = "the paper names no noise ratio for this table: 50 % here"
_QUOTED = (
    "the paper quotes MCM, CLIPN and NegLabel from their papers: MCM is run at their temperature "
    "of 1 on cosines, CLIPN and NegLabel are not run (docs/methods.md says what they need)"
)
_SWAPPED = "wrong bold in the paper: "

TABLES = (
    PaperTable(
        1, "tab:failure_case_study", "Failure case study of TTA methods: CIFAR-10", leads=(LEAD,)
    ),
    PaperTable(
        2, "tab:bird200", "Main results: CUB-200-2011, STANFORD-CARS, Food-101, Oxford-IIIT Pet"
    ),
    PaperTable(
        3, "tab:imagenet", "Main results: ImageNet and its variants",
        notes=(f"{_SWAPPED}Acc_N of ImageNet-K and ImageNet-V2 on Places",),
    ),
    PaperTable(
        5, "tab:ood-detection", "Zero-shot OOD detection: ImageNet", metrics=DETECTION,
        notes=(_NO_RATIO, _QUOTED),
    ),
    PaperTable(6, "tab:ablation-module", "Ablation of the modules: ImageNet", **_ABLATION),
    PaperTable(
        10, "tab:CIFAR", "Main results: CIFAR-10 and CIFAR-100",
        notes=(f"{_SWAPPED}Acc_S of CIFAR-10 on LSUN, Texture and Avg",),
    ),
    PaperTable(11, "app-tab:tent-bs1", "Tent item by item: CIFAR-10/100", columns=BY_STREAM),
    PaperTable(12, "tab:NINCO", "ImageNet against NINCO", **_ALONE),
    PaperTable(13, "tab:TDA", "TDA: ImageNet, average over four OOD sets", **_ALONE),
    PaperTable(
        14, "tab:integrating-tent", "AdaND with Tent: CIFAR-10, average over four OOD sets",
        **_ALONE,
    ),
    PaperTable(
        15, "tab:corruption", "CIFAR-10-C, CIFAR-100-C, ImageNet-C: means of 15 corruptions",
        groups="", columns=BY_ID, ours="Ours",
        notes=("severity 1; the row with the sets' names is missing in the paper",),
    ),
    PaperTable(16, "app-tab:ablation-module", "Ablation of the modules: all ID sets", **_ABLATION),
    PaperTable(
        17, "app-tab:CIFAR-inject-noise", "Types of injected noise", columns=BY_STREAM,
        heads=("Noise Type",),
    ),
    PaperTable(
        18, "app-tab:gaussian-rate", "How often noise is injected: every M samples",
        columns=BY_STREAM, heads=("Ratio",),
        notes=("the paper's caption explains a row '-' that is not there",),
    ),
    PaperTable(
        19, "app-tab:rate-of-noise", "Noise ratios", columns=BY_RATIO,
        notes=(
            f"{_SWAPPED}Acc_S of CIFAR-10 at 50 % and 75 %, Acc_N of CUB-200-2011 at 75 % and of "
            "ImageNet-A at 25 %",
        ),
    ),
    PaperTable(20, "app-tab:CIFAR-seed", "Five seeds: CIFAR-10/100", **_SEEDS),
    PaperTable(
        21, "app-tab:CIFAR-seed-auroc", "Five seeds, AUROC and FPR95: CIFAR-10/100",
        metrics=DETECTION, **_SEEDS,
    ),
    PaperTable(22, "app-tab:CIFAR-l", "Queue capacity L: CIFAR-10/100", heads=("L",)),
    PaperTable(
        23, "app-tab:CIFAR-nq", "Length N_q of the scores' queue: CIFAR-10/100", heads=("N_q",)
    ),
    PaperTable(
        24, "app-tab:CIFAR-init-steps", "Initialization steps N: CIFAR-10/100", heads=("N",)
    ),
    PaperTable(25, "app-tab:CIFAR-vlm", "Encoders RN50 and ViT-L/14: CIFAR-10", groups="encoder"),
    PaperTable(
        26, "app-tab:pseudo-labels", "The noise detector's own pseudo-labels", columns=BY_RATIO,
        heads=("Pseudo-label",),
    ),
    PaperTable(
        27, "app:failure_case_study_cifar100_acc", "Failure case study: CIFAR-100", leads=(LEAD,)
    ),
    PaperTable(
        28, "app:failure_case_study_others_CUB", "Failure case study: the nine other ID sets",
        leads=(LEAD,),
    ),
    PaperTable(
        29, "app:failure_case_study_cifar_auc", "Failure case study, AUROC and FPR95: CIFAR-10/100",
        **_AUC,
    ),
    PaperTable(
        30, "app:failure_case_study_others",
        "Failure case study, AUROC and FPR95: the nine other ID sets", **_AUC,
        notes=("the paper's head says SVHN and LSUN where the columns are iNaturalist and SUN",),
    ),
)  # fmt: skip

_NOT_HERE = {
    "4": "it has times, which python benchmarks/timing.py measures",
    **dict.fromkeys(("7", "8", "9"), "it has no numbers to compare"),
}

# The number and the label of each figure, and what it shows.
FIGURES = (
    (1, "fig:setting-diff", "Four settings compared (a sketch)"),
    (2, "fig:violin", "Ranks of five methods by Acc_H over the 44 pairs"),
    (3, "fig:failure_case_score", "ID scores of ZS-CLIP and Tent, and their difference"),
    (4, "fig:failure_case_gradient", "Gradients of clean and noisy samples at the steps of Tent"),
    (5, "fig:framework", "AdaND (a sketch)"),
    (6, "fig: Reliable Baselines", "The adaptive threshold against fixed ones, five methods"),
    (7, "fig:absolute_acc", "Mean accuracies of five methods over the 44 pairs"),
    (8, "app-fig: failure-case-tpt", "As figure 3, of TPT"),
    (9, "app-fig:fail-gradient", "Figure 4 enlarged"),
)


def figure_number(name: str) -> int | None:
    """The number of the figure that a name means: "fig3", "Figure 3" or a label; None if none."""
    text = name.lower().replace(" ", "")
    numbers_by_name = {
        name: number
        for number, label, _ in FIGURES
        for name in (f"fig{number}", f"figure{number}", label.lower().replace(" ", ""))
    }
    return numbers_by_name.get(text)


def parse_names(text: str) -> tuple[list[PaperTable], list[int]]:
    """Parse a list such as "2,3,fig6" into tables and the numbers of figures, each once.

    Raises:
        SettingsError: there is no table or figure of a name.
    """
    tables, figures = dict[PaperTable, None](), dict[int, None]()
    for name in text.split(","):
        if figure := figure_number(name):
            figures[figure] = None
        else:
            tables[find_table(name)] = None
    return list(tables), list(figures)


def find_table(name: str) -> PaperTable:
    """Find a table by its number, or by its label with or without the prefix.

    Raises:
        SettingsError: there is no such table, or two tables have this label without its prefix.
    """
    text = name.strip().lower().removeprefix("table").strip()
    if text in _NOT_HERE:
        raise SettingsError(f"table {text} is not here: {_NOT_HERE[text]}.")
    labels = {table.label.lower(): table for table in TABLES}
    if text in labels:
        return labels[text]
    meant = [table for table in TABLES if text in (str(table.number), table.name.lower())]
    if len(meant) == 1:
        return meant[0]
    if meant:
        both = " and ".join(f"'{table.label}'" for table in meant)
        raise SettingsError(f"table '{text}' is one of two: {both}: zsntta paper lists them")
    suggestion = near(text, [table.name for table in TABLES])
    raise SettingsError(
        f"table is '{name}'{suggestion}, must be a number from 1 to {TABLES[-1].number}, a label, "
        f"or fig1 to fig{len(FIGURES)}: "
        "zsntta paper lists them"
    )


# The paper's names of sets, methods, metrics and rows.

SET_NAMES = {
    "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "cub200": "CUB-200-2011",
    "cars196": "STANFORD-CARS", "food101": "Food-101", "pets37": "Oxford-IIIT Pet",
    "imagenet": "ImageNet", "imagenet-sketch": "ImageNet-K", "imagenet-a": "ImageNet-A",
    "imagenet-v2": "ImageNet-V2", "imagenet-r": "ImageNet-R", "svhn": "SVHN", "lsun": "LSUN",
    "inaturalist": "iNaturalist", "sun": "SUN", "texture": "Texture", "places": "Places",
    "ninco": "NINCO", "cifar10-c": "CIFAR-10-C", "cifar100-c": "CIFAR-100-C",
    "imagenet-c": "ImageNet-C", AVERAGE: "Average", "RN50": "RN50", "ViT-L-14": "ViT-L/14",
    "ViT-B-16": "ViT-B/16",
}  # fmt: skip
METHOD_NAMES = {
    "zs-clip": "ZS-CLIP", "tent": "Tent", "sotta": "SoTTA", "tpt": "TPT", "tda": "TDA",
    "max-logit": "Max-Logit", "energy": "Energy", "mcm": "MCM", "clipn": "CLIPN",
    "neglabel": "NegLabel",
}  # fmt: skip
METRIC_HEADS = {
    "acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H", "auroc": "AUROC", "fpr95": "FPR95(ID+)",
}  # fmt: skip
LEAD_COLUMN = "against ZS-CLIP"
_SETTING_NAMES = {
    "pipeline=gt": "GT", "pipeline=normal": "Normal", "pipeline=all": "All-update",
    "noise=gaussian": "With Gaussian noise", "noise=none": "Without Gaussian noise",
    "batch_size=1": "bs=1", "batch_size=64": "bs=64", "batch_size=128": "bs=128",
}  # fmt: skip
_STREAMS = {0.0: "Clean Data Stream", 0.5: "Noisy Data Stream"}
_LABELS = {"detector": "Noise Detector", "frozen": "Frozen Model"}


def set_name(name: str) -> str:
    """The paper's name of a set or an encoder; a name that it does not use stays as it is."""
    return SET_NAMES.get(name, name)


def group_name(table: PaperTable, cell: Printed) -> str:
    """The name of the part of a table that a cell is in; empty if the table has one part."""
    return set_name(str(getattr(cell, table.groups))) if table.groups else ""


def column_name(table: PaperTable, cell: Printed) -> str:
    """The name of the column that a cell is in."""
    if table.columns in (BY_OOD, BY_ID):
        return set_name(str(getattr(cell, table.columns)))
    ratio = cell.ratio if isinstance(cell.ratio, float) else 0.0
    if table.columns == BY_RATIO:
        return f"{ratio:.0%}"
    return _STREAMS[ratio] if table.columns == BY_STREAM else ""


def row_name(table: PaperTable, cell: Printed) -> tuple[str, ...]:
    """The name of the row that a cell is in: one text for each of the table's heads."""
    settings = cell.settings
    if table.heads == ("Method",):
        return (_method(table, cell),)
    if len(table.heads) == 2:  # the modules of the method
        included = (cell.method == "adand", settings["noise"] != "none")
        return tuple("✓" if is_included else "×" for is_included in included)
    [value] = settings.values()
    return (_LABELS.get(value, value.capitalize()),)


def _method(table: PaperTable, cell: Printed) -> str:
    if cell.method == "adand+tent":
        return f"{table.ours} (with Tent)"
    name, setting = METHOD_NAMES.get(cell.method, table.ours), _SETTING_NAMES.get(cell.setting)
    return f"{name} ({setting})" if setting else name

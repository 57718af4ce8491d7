"""Make the table of published zero-shot accuracies with which the package compares cached features.

    python tools/published_accuracies.py openclip_results.csv zsntta_cli/cache/published.csv

The first argument is docs/openclip_results.csv of github.com/mlfoundations/open_clip (MIT), with
accuracies for CLIP_benchmark's templates. Accuracies for a single template are those of "Test-Time
Prompt Tuning" (Shu et al., NeurIPS 2022, Tables 1 and 2). Rows are checked against the published
averages, and the embedded encoder's accuracies are computed here.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PLAIN = "a photo of a {}."
CIFAR, CARS, IMAGENET = "clip-cifar", "clip-cars", "clip-80"  # ensembles of settings/prompts.py
OPEN_CLIP = "open_clip's openclip_results.csv"
TPT = "Shu et al. 2022 (TPT)"
OURS = "tools/published_accuracies.py"
# open_clip's column, our set, its number of images, and the templates.
COLUMNS = {
    "ImageNet 1k": ("imagenet", 50_000, IMAGENET),
    "ImageNet Sketch": ("imagenet-sketch", 50_889, IMAGENET),
    "ImageNet v2": ("imagenet-v2", 10_000, IMAGENET),
    "ImageNet-A": ("imagenet-a", 7_500, IMAGENET),
    "ImageNet-R": ("imagenet-r", 30_000, IMAGENET),
    "CIFAR-10": ("cifar10", 10_000, CIFAR),
    "CIFAR-100": ("cifar100", 10_000, CIFAR),
    "Food-101": ("food101", 25_250, "a photo of {}, a type of food."),
    "Stanford Cars": ("cars196", 8_041, CARS),
    "Oxford-IIIT Pet": ("pets37", 3_669, "a photo of a {}, a type of pet."),
    "FGVC Aircraft": ("coop-aircraft", 3_333, "clip-aircraft"),
    "Oxford Flowers-102": ("coop-flowers102", 6_149, "a photo of a {}, a type of flower."),
}
ALSO = {
    "imagenet": "coop-imagenet",
    "cars196": "coop-cars",
    "pets37": "coop-pets",
}  # the same images
AVERAGE = "Average perf. on 38 datasets"
TPT_SETS = (
    ("imagenet", 50_000), ("imagenet-a", 7_500), ("imagenet-v2", 10_000), ("imagenet-r", 30_000),
    ("imagenet-sketch", 50_889), ("coop-flowers102", 2_463), ("coop-dtd", 1_692),
    ("coop-pets", 3_669), ("coop-cars", 8_041), ("coop-ucf101", 3_783), ("coop-caltech101", 2_465),
    ("coop-food101", 30_300), ("coop-sun397", 19_850), ("coop-aircraft", 3_333),
    ("coop-eurosat", 8_100),
)  # fmt: skip
TPT_ROWS = {  # the ImageNet sets, then the fine-grained ones, each with the published average
    "ViT-B-16": (
        (66.73, 47.87, 60.86, 73.98, 46.09), (59.11,),
        (67.44, 44.27, 88.25, 65.48, 65.13, 93.35, 83.65, 62.59, 23.67, 42.01), (63.58,),
    ),
    "RN50": (
        (58.16, 21.83, 51.41, 56.15, 33.37), (44.18,),
        (61.75, 40.37, 83.57, 55.70, 58.84, 85.88, 73.97, 58.80, 15.66, 23.69), (55.82,),
    ),
}  # fmt: skip


class Row(NamedTuple):
    """One published accuracy."""

    model: str
    pretrained: str
    set: str
    images: int
    templates: str
    accuracy: str  # percent, with the digits that are published
    source: str


def of_open_clip(path: Path) -> Iterator[Row]:
    """The rows of open_clip's table."""
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            model, pretrained = line.pop("name"), line.pop("pretrained")
            average = float(line.pop(AVERAGE))
            if abs(sum(map(float, line.values())) / len(line) - average) > 5e-5:
                raise SystemExit(f"{model} {pretrained}: the row is not of its average")
            for column, (name, images, templates) in COLUMNS.items():
                accuracy = f"{100 * float(line[column]):.2f}"
                for known in (name, ALSO.get(name)):
                    if known:
                        yield Row(model, pretrained, known, images, templates, accuracy, OPEN_CLIP)


def of_tpt() -> Iterator[Row]:
    """The rows of TPT's tables."""
    for model, (kin, (kin_average,), fine, (fine_average,)) in TPT_ROWS.items():
        for values, average in ((kin, kin_average), (fine, fine_average)):
            if abs(sum(values) / len(values) - average) > 0.0051:
                raise SystemExit(f"{model}: {values} are not of their average")
        for (name, images), accuracy in zip(TPT_SETS, (*kin, *fine), strict=True):
            yield Row(model, "openai", name, images, PLAIN, f"{accuracy:.2f}", TPT)


def of_the_embedded_encoder() -> Iterator[Row]:
    """The rows of the embedded encoder, on the built-in sets that have class names."""
    import tempfile

    from zsntta_cli.cache.accuracy import zero_shots
    from zsntta_cli.cache.store import read
    from zsntta_cli.extraction.plan import ExtractPlan, extract
    from zsntta_cli.progress import Reporter
    from zsntta_cli.settings import EncoderChoice, ExtractSettings

    plan = ExtractPlan(("shapes", "digits"), noise=("none",), partners=False)
    with tempfile.TemporaryDirectory() as folder:
        settings = ExtractSettings(device="cpu", features_dir=Path(folder))
        for extracted in extract(plan, EncoderChoice("tiny"), settings, Reporter()):
            for shot in zero_shots(read(extracted.path)):
                name, accuracy = extracted.path.stem, f"{100 * shot.correct / shot.images:.2f}"
                yield Row("tiny", "embedded", name, shot.images, shot.template, accuracy, OURS)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="open_clip's openclip_results.csv")
    parser.add_argument("table", type=Path, help="the table to write")
    arguments = parser.parse_args()
    rows = [*of_open_clip(arguments.results), *of_tpt(), *of_the_embedded_encoder()]
    with arguments.table.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(sorted(rows))
    print(f"{arguments.table}: {len(rows)} accuracies")


if __name__ == "__main__":
    main()

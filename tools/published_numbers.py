"""Turn a transcription of the paper's tables into the package's own list of published numbers.

    python tools/published_numbers.py FOLDER zsntta_cli/paper/printed/published.csv

FOLDER has a file `tab01-….csv` a table, a row a printed number: table, id_set, ood_set, encoder,
method, setting, noise_ratio, metric, mean, std. Here a line is a printed cell with all its numbers
as they are printed, a space between them.
"""

import csv
import sys
from pathlib import Path

HEAD = """\
# Numbers printed in "Noisy Test-Time Adaptation in Vision-Language Models" (ICLR 2025,
# https://openreview.net/forum?id=iylpeTI0Ql), as its tables have them: facts, to compare with.
# A line is a cell; its values are in the order of the table's metrics (tables.py), in percent,
# "-" where the paper prints one. No encoder: ViT-B-16.
"""
COLUMNS = ("table", "id_set", "ood_set", "encoder", "method", "setting", "ratio", "values")
USUAL = "ViT-B-16"
LEFT_OUT = ("4", "7", "8", "9")  # times, and texts
# What a whole table has in common stands with its layout, and is no setting of a cell.
COMMON = ("seeds", "samples", "device", "severity", "corruptions")


def main(folder: Path, target: Path) -> None:
    """Write the list."""
    cells: dict[tuple[str, ...], list[tuple[bool, str]]] = {}
    for path in sorted(folder.glob("tab[0-9][0-9]-*.csv")):
        number = str(int(path.name[3:5]))
        if number in LEFT_OUT:
            continue
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                setting, value = read(row)
                ratio = row["noise_ratio"]
                encoder = "" if row["encoder"] == USUAL else row["encoder"]
                of = (row["id_set"], row["ood_set"], encoder, row["method"], setting, ratio)
                # Differences are printed behind their average: here behind all averages.
                is_lead = "_minus_" in row["metric"]
                cells.setdefault((number, *of), []).append((is_lead, value))
    with target.open("w", encoding="utf-8", newline="") as file:
        file.write(HEAD)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key, values in cells.items():
            ordered = sorted(values, key=lambda pair: pair[0])
            writer.writerow([*key, " ".join(value for _, value in ordered)])


def read(row: dict[str, str]) -> tuple[str, str]:
    """The setting of a cell and one of its values, as printed."""
    setting = ";".join(
        part
        for part in filter(None, row["setting"].split(";"))
        if part.partition("=")[0] not in COMMON
    )
    return setting, (row["mean"] or "-") + f"±{row['std']}" * bool(row["std"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

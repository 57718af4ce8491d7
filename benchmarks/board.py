"""Write docs/board.md: every cached method on the same streams of real features.

    python benchmarks/board.py FOLDER [--work FOLDER] [--output docs/board.md]

FOLDER has `SET-PART.npz` and `text-SET.npz`, as `benchmarks/real_features.py` reads them. Feature
files and results are written to the folder of `--work`, where an interrupted command can resume, or
by default to a temporary folder. The table has the values that `zsntta simulate` writes, and the
page lists the commands. This takes about eight minutes on one core.
"""

import argparse
import csv
import io
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from zsntta_cli.methods import METHODS

HERE = Path(__file__).parent
ID_SETS, OOD_SETS = ("pets24", "cars"), ("dtd", "sun397")
LITTLE, MUCH = 0.05, 0.25  # of the stream is noise
BASE = "zs-clip"
Rows = Mapping[tuple[str, str, float], Mapping[str, str]]  # by ID set, OOD set, ratio
PAGE = """\
# All methods on the same streams

Every method that replays cached features (`--method all`), on features of OpenAI's ViT-B/32. ID
sets are Oxford Pets (the 24 breeds with an ImageNet name) and Stanford Cars, OOD sets are DTD and
SUN397. Streams are shuffled by seed 0. Values are means over the four pairs, in percent.

- Nothing is injected, because this model's noise images were not available, so AdaND lacks what it
  learns from in the paper.
- Words are the class names of the other sets. `cma` and `csp`, which have texts of their own, are
  left out.
- `cull` was developed on these sets, among others. Its generic text is the mean of ImageNet's class
  texts, and its level is set by hand, because these features are imported.

`python benchmarks/board.py FOLDER` wrote this page with these commands, from feature files of
`benchmarks/real_features.py`. To compare the methods on your own features, type one of them with
your sets and encoder.

<!-- needs: hours -->
```sh
{commands}
```

- Percentages in the head are noise ratios; AUROC is at 25 % noise. A dash means that the method
  gives a score but no decision.
- **Below** counts the cases, of eight (four pairs at 5 and 25 %), in which Acc_H is below that of
  ZS-CLIP. **Worst** is the largest loss, or the smallest gain.
- Classifiers alone (`tda` to `lame`) change only the class; ZS-CLIP decides on noise.

{table}
{notes}
See also [what each method is](methods.md) and [what an item costs](speed.md#what-an-item-costs).
"""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of .npz files")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--output", type=Path, default=Path("docs/board.md"))
    return parser.parse_args()


def command(id_set: str) -> str:
    """The command for all runs of an ID set."""
    return (
        f"zsntta simulate --method all --id {id_set} --ood {','.join(OOD_SETS)} --encoder real "
        f"--set words=not-{id_set} --set cull-low=2 --noise none --ratio 0,{LITTLE},{MUCH} "
        "--seed 0 --format csv --aggregate"
    )


def printed(words: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, check=True, text=True, stdout=subprocess.PIPE
    )
    return done.stdout


def results(folder: Path) -> dict[str, dict[tuple[str, str, float], dict[str, str]]]:
    """The rows of single pairs, by method."""
    by_method: dict[str, dict[tuple[str, str, float], dict[str, str]]] = {}
    for id_set in ID_SETS:
        words = ["-m", "zsntta_cli", *shlex.split(command(id_set))[1:]]
        for row in csv.DictReader(io.StringIO(printed(words, folder))):
            if not row["aggregate"]:
                cell = row["id_set"], row["ood_set"], float(row["ratio"])
                by_method.setdefault(row["method"], {})[cell] = row
    return by_method


def mean(rows: Rows, metric: str, is_wanted: Callable[[float], bool]) -> str:
    values = [row[metric] for (_, _, ratio), row in rows.items() if is_wanted(ratio)]
    return f"{100 * np.mean([float(v) for v in values]):.1f}" if all(values) else "–"


def line(method: str, rows: Rows, base: Rows) -> str:
    """A method's line of the table."""
    cells = [
        mean(rows, "acc_s", lambda ratio: ratio == 0),
        mean(rows, "acc_h", lambda ratio: ratio == LITTLE),
        mean(rows, "acc_h", lambda ratio: ratio == MUCH),
        mean(rows, "auroc", lambda ratio: ratio == MUCH),
    ]
    gains = [
        100 * (float(row["acc_h"]) - float(base[cell]["acc_h"]))
        for cell, row in rows.items()
        if cell[2] and row["acc_h"]
    ]
    below = sum(gain < -0.05 for gain in gains)
    cells += [str(below), f"{min(gains):+.1f}"] if gains and method != BASE else ["–", "–"]
    return f"| `{method}` | {' | '.join(cells)} |"


def own(method: str) -> str:
    """The word list that a method uses by default."""
    return METHODS[method].settings().values().get("words", "")


def main() -> None:
    given = options()
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        if not (work / "features").exists():
            printed([str(HERE / "real_features.py"), str(given.folder.resolve())], work)
        by_method = results(work)
    table = [
        "| method | Acc_S, 0 % | Acc_H, 5 % | Acc_H, 25 % | AUROC | below | worst |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(
            line(method, rows, by_method[BASE])
            for method, rows in by_method.items()
            if not own(method)
        ),
    ]
    offline = [f"`{name}`" for name in by_method if METHODS[name].offline]
    notes = f"\n{', '.join(offline)} sees the whole stream before it decides: a reference.\n"
    text = PAGE.format(
        commands="\n".join(map(command, ID_SETS)),
        table="\n".join(table),
        notes=notes if offline else "",
    )
    given.output.write_text(text, encoding="utf-8")
    print(given.output)


if __name__ == "__main__":
    main()

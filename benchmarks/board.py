"""Write docs/board.md: every cached method on the same streams of the built-in sets.

    python benchmarks/board.py [--output docs/board.md]

The features are made in a folder that is removed afterwards; the page is what `zsntta simulate`
writes about them, below some words on how to read it.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from zsntta_cli.methods import METHODS, WORDS

ID_SET, OOD_SETS = "shapes", ("glyphs", "textures")
ITEMS = 2_500  # of a stream: the page is written in minutes
PAGE = """\
# All methods on the same streams

This page shows every method that replays from cached features, on the built-in sets with the
embedded encoder: `{id_set}` is the ID set, half of each stream is noise, the order is shuffled, the
seed is 0, and a stream has {items:,} items. **It is a demonstration. The numbers are no results of
CLIP**: the [embedded encoder](extract.md#the-embedded-encoder) is a stand-in,
and the numbers
do not say which method is better on other features. All methods have their published settings, so
AdaND's detector learns from injected noise images. Those that need words have the list `drawn`,
the names of 73 things.

`python benchmarks/board.py` wrote this page by these commands:

<!-- needs: hours -->
```sh
{commands}
```

For such a table of your own features, name their sets and encoder, and use five seeds or more.
`zsntta report` then writes a page about the same results. [Marks](results.md#marks) says when a
value is bold or in italics, [methods](methods.md) what each method is, and `benchmarks/methods.py`
measures what an item costs.

{table}"""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/board.md"))
    return parser.parse_args()


def commands() -> list[str]:
    """What is typed: the features of the sets and words, then the runs."""
    sets = " ".join(f"--dataset {name}" for name in (ID_SET, *OOD_SETS))
    oods = ",".join(OOD_SETS)
    return [
        f"zsntta extract --model tiny {sets} --words drawn",
        f"zsntta simulate --model tiny --id {ID_SET} --ood {oods} --method {methods()} "
        f"--limit {ITEMS} --columns acc_h,auroc --format markdown",
    ]


def methods() -> str:
    """All cached methods that need class names alone, or words of any list."""
    return ",".join(
        name
        for name, method in METHODS.items()
        if not method.live
        and (not method.needs or (method.needs == WORDS and not method.settings_class().words))
    )


def typed(command: str, folder: str) -> str:
    """What a command prints, typed in a folder."""
    words = [sys.executable, "-m", "zsntta_cli", *command.split()[1:]]
    return subprocess.run(words, cwd=folder, check=True, text=True, stdout=subprocess.PIPE).stdout


def main() -> None:
    given = options()
    lines = commands()
    with tempfile.TemporaryDirectory() as folder:
        *_, table = [typed(line, folder) for line in lines]
    text = PAGE.format(id_set=ID_SET, items=ITEMS, commands="\n".join(lines), table=table)
    given.output.write_text(text, encoding="utf-8")
    print(given.output)


if __name__ == "__main__":
    main()

"""The demo, whole, through its entry point: it must show the paper's point."""

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from made import ZSNTTA

from zsntta_cli.cli.demo import NEXT_STEPS
from zsntta_cli.results.store import RecordStore

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
NUMBER = r"\d+\.\d\d"


def numbers(text):
    return [float(number) for number in re.findall(NUMBER, text)]


def test_the_demo_shows_the_papers_point(tmp_path, zsntta):
    terminal = {"FORCE_COLOR": "1", "TERM": "dumb"}  # of 80 columns and without colours
    result = subprocess.run(
        [ZSNTTA, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, **terminal},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    table = result.stdout.removesuffix(NEXT_STEPS + "\n")
    assert table != result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    shown = README[README.index("ID: shapes") :].partition("```")[0]
    first = table[: table.index("┘") + 2]
    assert re.sub(NUMBER, "#", shown).split() == re.sub(NUMBER, "#", first).split()
    # Another processor's sums may turn a decision here and there.
    assert numbers(first) == pytest.approx(numbers(shown), abs=0.5)

    again = zsntta("demo")  # in the same folder
    assert sorted(numbers(again.stdout)) == sorted(numbers(table)), "the same table, in one block"
    assert again.stdout.endswith(NEXT_STEPS + "\n")
    assert again.stderr.count("already extracted") == 6
    with RecordStore(Path("features/records.sqlite")) as store_of_runs:
        records = store_of_runs.find().values()
    by_run = defaultdict(list)  # the accuracies of the sets, by method and ratio
    for record in records:
        key = record.settings.method, record.settings.stream.ratio
        by_run[key].append((record.accuracies.acc_s, record.accuracies.acc_h))
    assert set(by_run) == {(m, r) for m in ("zs-clip", "adand", "cull") for r in (0, 0.05, 0.5)}
    assert {len(of) for (_, ratio), of in by_run.items() if ratio} == {4}
    mean = {key: np.mean(of, axis=0) for key, of in by_run.items()}
    assert mean["adand", 0][0] > mean["zs-clip", 0][0] + 0.02, "AdaND keeps clean streams' accuracy"
    assert mean["adand", 0.5][1] > mean["zs-clip", 0.5][1] + 0.01, "and finds noise"
    for ratio in (0.05, 0.5):
        assert mean["cull", ratio][1] > mean["zs-clip", ratio][1] + 0.01, ratio
    assert mean["adand", 0.05][1] < mean["zs-clip", 0.05][1] - 0.01, "README says so"

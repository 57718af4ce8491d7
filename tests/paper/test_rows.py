"""The paper's rows on a report's leaderboard."""

import json
import re

from kept import kept_run

from zsntta_cli.paper.rows import reported
from zsntta_cli.report.page.leaderboard import Reported
from zsntta_cli.results.store import RecordStore


def test_main_results_are_rows_by_hand():
    rows = reported()
    assert len(rows) == 80 + 100 + 40 + 5 + 40
    assert Reported(
        "ZS-CLIP", "cifar10", "svhn", "ViT-B-16-openai", 0.5, 0.8355, 0.9839, 0.9036,
        "ICLR 2025, table 10",
    ) in [Reported(*(round(x, 6) if isinstance(x, float) else x for x in vars(r).values()))
          for r in rows]  # fmt: skip
    assert {row.encoder for row in rows} == {"ViT-B-16-openai", "RN50-openai", "ViT-L-14-openai"}
    assert "AdaND (noise gaussian)" in {row.method for row in rows if row.ood_set == "ninco"}


def test_they_stand_beside_what_was_measured_and_nowhere_else(zsntta, tmp_path):
    with RecordStore(tmp_path / "x.sqlite", create=True) as store:
        store.add([kept_run("zs-clip", "svhn", id_set="cifar10", encoder="ViT-B-16-openai")])
        store.add([kept_run("zs-clip")])
    assert zsntta("report", "x.sqlite").exit_code == 0
    [plain] = re.findall(r'id="board-data">(.*?)</script>', (tmp_path / "report.html").read_text())
    data = json.loads(plain)
    sources = [data["names"][row[-1]] for row in data["rows"]]
    assert sources == ["measured"] * 2 + ["reported, not run: ICLR 2025, table 10"] * 5

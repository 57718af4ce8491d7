"""The paper's rows on a report's leaderboard."""

from kept import kept_run
from parsed import board_rows

from zsntta_cli.paper.reported import reported
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
    rows = board_rows((tmp_path / "report.html").read_text())
    sources = [(row["source"], row["citation"]) for row in rows]
    published = ("published", "ICLR 2025, table 10")
    assert sources == [("measured", None)] * 2 + [published] * 5

import json
import math

import pytest
from rich.console import Console

from zsntta_cli.report.formats import render, rich_tables
from zsntta_cli.report.tables import KINDS, result_tables
from zsntta_cli.simulation.metrics import Measures
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Record

NAN = math.nan


def record(method="adand", ood="svhn", acc=(0.5, 0.25, 1 / 3), det=(NAN, NAN, NAN), **values):
    settings = build_run(method, "tiny", "cifar10", ood, "a photo of a {}.", **values)
    counts = {"id": 10_000, "ood": 10_000, "noise": 0}
    return Record(
        settings, Measures(zip(("acc_s", "acc_n", "acc_h"), acc, strict=True)),
        Measures(zip(("auroc", "fpr95", "aupr"), det, strict=True)), Measures(), counts,
        repeated={},
        digests={}, seconds=0.1, created="now", versions={},
    )  # fmt: skip


def text(records, width=200, colours=False, kind="accuracy"):
    console = Console(width=width, force_terminal=colours, legacy_windows=False)
    with console.capture() as captured:
        for table in result_tables(records, KINDS[kind]):
            for part in rich_tables(table, width):
                console.print(part)
    return captured.get()


ACCURACY, OOD = KINDS["accuracy"], KINDS["ood"]


def test_percent_with_two_digits():
    assert "50.00  25.00  33.33" in text([record()])


def test_seeds_fold_into_mean_and_sample_deviation():
    shown = text([record(seed=0), record(seed=1, acc=(0.6, 0.25, 0.4))])
    assert "  55.00±7.07   25.00±0.00   36.67±4.71" in shown
    assert shown.count("adand") == 1


def test_a_metric_without_samples_is_a_dash():
    assert "50.00      -      -" in text([record(acc=(0.5, NAN, NAN), ratio=0.0)])
    seeds = [record(acc=(0.5, NAN, NAN), ood=o, seed=s) for s in (0, 1) for o in ("a", "b")]
    assert "50.00±0.00            -            -" in text(seeds)


def test_rows_are_what_varies_and_columns_are_ood_sets():
    shown = text([
        record(ood=ood, ratio=ratio, noise_every=4)
        for ood in ("svhn", "lsun") for ratio in (0.0, 0.25)
    ])  # fmt: skip
    assert "Noise" in shown
    assert "25%" in shown
    assert "noise every" not in shown
    assert shown.index("svhn") < shown.index("lsun") < shown.index("Average")


def test_the_average_acc_h_is_the_mean_of_acc_h():
    shown = text([record(acc=(0.2, 0.4, 0.3)), record(ood="lsun", acc=(0.4, 0.8, 0.5))])
    assert "30.00  60.00  40.00" in shown


def test_the_best_of_each_ratio_is_bold():
    shown = text(
        [record(acc=(0.5, 0.2, 0.3), ratio=0.25),
         record("zs-clip", acc=(0.4, 0.3, 0.3), ratio=0.25),
         record(acc=(0.9, 0.9, 0.9), ratio=0.5), record("zs-clip", acc=(0.1, 0.9, 0.1), ratio=0.5)],
        colours=True,
    )  # fmt: skip
    for number in ("50.00", "30.00", "90.00"):
        assert f"\x1b[1m {number}\x1b[0m" in shown
    assert "\x1b[1m 40.00" not in shown


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_table_is_wider_than_the_screen_and_none_is_folded(width):
    records = [record(ood=name) for name in ("svhn", "lsun", "texture", "places", "a", "b")]
    shown = text(records, width)
    assert max(len(line) for line in shown.splitlines()) <= width
    assert shown.count("50.00  25.00  33.33") == 7
    assert "…" not in shown


def test_in_a_notebook_a_table_is_a_plain_text(monkeypatch):
    plain = render([record()], "table", ACCURACY)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as its kernel does
    assert render([record()], "table", ACCURACY) == plain
    assert "\x1b" not in plain


def test_json_holds_what_it_takes_to_run_again():
    [plain] = json.loads(render([record(acc=(0.5, NAN, NAN))], "json", ACCURACY))
    assert plain["accuracies"] == {"acc_s": 0.5, "acc_n": None, "acc_h": None}
    assert plain["settings"]["stream"]["noise"] == "gaussian"


def test_csv_is_a_line_a_record():
    lines = render([record(), record("zs-clip")], "csv", ACCURACY).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("settings.method,settings.encoder,")


def test_the_average_is_folded_over_seeds():
    shown = text([
        record(ood=ood, seed=seed, acc=(acc, acc, acc))
        for ood, seed, acc in (("a", 0, 0.1), ("b", 0, 0.3), ("a", 1, 0.5), ("b", 1, 0.3))
    ])  # fmt: skip
    # Averages of the seeds are 20 % and 40 %.
    assert "30.00±14.14" in shown


def test_ood_detection_and_its_best_values():
    shown = text(
        [record(det=(0.9, 0.2, 0.8)), record("mcm", det=(0.8, 0.1, 0.7))], colours=True, kind="ood"
    )
    for head in ("AUROC", "FPR95", "AUPR"):
        assert head in shown
    assert "\x1b[1m 90.00\x1b[0m" in shown
    assert "\x1b[1m 10.00\x1b[0m" in shown, "a lower FPR95 is better"
    assert "\x1b[1m 20.00" not in shown


def test_markdown():
    lines = render([record(), record("zs-clip", acc=(0.4, 0.5, 0.4))], "markdown", ACCURACY)
    assert lines.splitlines()[2:] == [
        "| Method | svhn Acc_S | svhn Acc_N | svhn Acc_H |",
        "| --- | ---: | ---: | ---: |",
        "| adand | **50.00** | 25.00 | 33.33 |",
        "| zs-clip | 40.00 | **50.00** | **40.00** |",
    ]


def test_latex():
    latex = render([record(), record(seed=1), record("zs-clip", seed=1)], "latex", ACCURACY)
    assert r"\begin{tabular}{l*{3}{c}}" in latex
    assert r"\multicolumn{3}{c}{svhn}" in latex
    assert r"$\text{Acc}_\text{S}$" in latex
    assert r"adand & \textbf{50.00 $\pm$ 0.00} & " in latex
    assert latex.count(r"\\") == 4

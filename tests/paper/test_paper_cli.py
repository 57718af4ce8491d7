"""`zsntta paper` as it is typed: built-in sets, stand-ins under the paper's names, errors."""

import csv
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from made import TINY, fails

from zsntta_cli.cache import store
from zsntta_cli.paper.tables import TABLES

OURS = "ViT-B-16-openai"


def lines(result, head):
    """The cells of the lines of a drawn table that begin with a text."""
    found = (line.split("│")[1:-1] for line in result.stdout.splitlines() if line[:1] == "│")
    return [[" ".join(cell.split()) for cell in row] for row in found if row[0].strip() == head]


def test_published_numbers_are_shown_without_torch_or_numpy(tmp_path):
    code = (
        "import atexit, sys\nfrom zsntta_cli.cli import main\n"
        "atexit.register(lambda: print({'torch', 'numpy', 'scipy', 'h5py'} & {*sys.modules}))\n"
        "main(['paper', '28', '--published'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "b: misprint: +0.55 is printed" in done.stdout, done.stderr
    assert "+0.55b" in done.stdout
    assert done.stdout.endswith("set()\n")


def test_every_table_has_its_published_form(zsntta):
    result = zsntta("paper", ",".join(map(str, TABLES)), "--published")
    assert (result.exit_code, result.stderr) == (0, "")
    for number in TABLES:
        assert f"Table {number} (" in result.stdout
    [birds] = [row for row in lines(result, "AdaND") if "77.05" in "".join(row)][:1]
    assert birds[5].split()[2] == "77.05"
    assert "difference" not in result.stdout


def test_every_layout_works_on_the_built_in_sets(cached):
    here = [str(number) for number in TABLES if number != 17]  # other noise is not extracted here
    result = cached("paper", ",".join(here), *TINY)
    assert result.exit_code == 0, result.output
    assert result.stdout.count(" numbers measured, none of them published") == len(here)
    assert not lines(result, "paper")


def test_measured_published_and_difference(named):
    result = named("paper", "10")
    assert "type zsntta extract --dataset cifar100\n" in result.stderr
    assert "12 live runs left out: add --live" in result.stderr
    here, theirs, difference = (
        [float(number) for number in lines(result, head)[0][1].split()]
        for head in ("ZS-CLIP", "paper", "difference")
    )
    assert theirs == [83.55, 98.39, 90.36]
    assert difference == pytest.approx(np.subtract(here, theirs), abs=0.011)
    assert lines(result, "Tent")[0][1] == "- - -"  # nothing published stands as if it were measured
    assert result.stdout.splitlines()[-1] == "30 of 150 numbers compared, 0 marked !"


@pytest.mark.usefixtures("whole")
def test_what_seeds_do_not_explain_is_marked_where_there_are_several(named):
    one = " ".join(named("paper", "10").stdout.split())
    assert "to judge it by: --seed 0-4 measures five" in one
    five = named("paper", "10", "--seed", "0-4")
    assert lines(five, "difference")[0][1].count("!") == 3
    assert "--seed 0-4" not in five.stdout
    assert "numbers compared, 0 marked" not in five.stdout
    printed = named("paper", "20", "--seed", "0")  # the paper's five seeds say what they explain
    assert "!" in lines(printed, "difference")[0][1]


def test_a_mean_over_fewer_sets_is_none_and_says_which_there_are(named, tmp_path):
    (tmp_path / "features" / OURS / "lsun.h5").unlink()
    result = named("paper", "10")
    assert lines(result, "ZS-CLIP")[0][5] == "- - -"
    assert lines(result, "difference")[0][5] == "- - -"
    assert "no average of ZS-CLIP, AdaND with 3 of 4 sets (cifar10 svhn" in result.stdout
    rows = json.loads(named("paper", "10", "--format", "json").stdout)
    average = {"ood_set": "average", "row": "ZS-CLIP", "id_set": "cifar10", "metric": "acc_h"}
    [row] = [row for row in rows if average.items() <= row.items()]
    assert (row["measured"], row["difference"], row["printed"]) == (None, None, 86.47)
    assert row["note"].startswith("3 of 4 sets")


def test_what_is_kept_of_a_live_method_is_shown_and_the_rest_is_run_when_asked(cached):
    left = cached("paper", "14", *TINY)
    assert lines(left, "Tent")[0][1] == "- - -"
    run = ("--method", "tent", "--ood")
    for ood in ("glyphs", "textures", "other-shapes", "digits"):
        assert cached("simulate", *TINY, *run, ood).exit_code == 0
    shown = cached("paper", "14", *TINY)
    assert "- " not in lines(shown, "Tent")[0][1]
    assert "4 live runs left out" in shown.stderr  # AdaND with Tent


def test_the_list_tells_what_is_kept_to_do_live_and_missing(named):
    named("paper", "22")
    every = named("paper").stdout.splitlines()
    assert max(map(len, every)) <= 80
    [queue] = [line.split() for line in every if line.startswith("  22 ")]
    assert queue[-4:] == ["20", "-", "-", "20"]  # CIFAR-100 is missing
    [main] = [line.split() for line in every if line.startswith("  10 ")]
    assert main[-4:] == ["4", "4", "12", "20"]  # table 22 has AdaND's own L
    some = named("paper", "cifar100").stdout.splitlines()
    assert {line for line in some if line[:4].strip()} <= set(every)
    assert any("cifar100" in line for line in some)
    assert not any("Cars" in line or "fig2" in line for line in some)


def test_a_figure_is_drawn_of_its_runs_and_says_what_is_not_in_it(cached, tmp_path):
    result = cached("paper", "fig2", *TINY, "--output", "ranks.csv")
    assert result.stdout == "ranks.csv\n", result.stderr
    assert "12 live runs left out" in result.stderr
    rows = (tmp_path / "ranks.csv").read_text().splitlines()
    assert rows[0].startswith("panel,series,")
    assert any("measured" in row for row in rows)
    assert not any("published" in row for row in rows)


def test_a_published_figure_needs_nothing(zsntta, tmp_path):
    result = zsntta("paper", "fig7", "--published", "--output", "means.csv")
    assert result.stdout == "means.csv\n", result.stderr
    text = (tmp_path / "means.csv").read_text()
    assert "published" in text
    assert "measured" not in text


def test_a_csv_has_a_row_for_each_number_and_the_means_of_simulate(cached, tmp_path):
    def read(name):
        return list(csv.DictReader((tmp_path / name).read_text().splitlines()))

    asked = (*TINY, "--seed", "0-1")
    assert cached("paper", "10", *asked, "--output", "paper.csv").exit_code == 0
    own = ("--method", "adand", "--aggregate", "--spread", "sets", "--output", "own.csv")
    assert cached("simulate", *asked, *own).exit_code == 0
    rows = read("paper.csv")
    assert " ".join(rows[0]) == (
        "table encoder id_set row method ratio ood_set metric measured measured_std seeds printed "
        "printed_std difference beyond note"
    )
    assert len(rows) == 5 * 5 * 3
    paper = {(row["ood_set"], row["metric"]): row for row in rows if row["method"] == "adand"}
    for row in read("own.csv"):
        for metric in ("acc_s", "acc_n", "acc_h"):
            of = paper[row["ood_set"] or "average", metric]
            assert float(of["measured"]) == pytest.approx(100 * float(row[metric]))
            assert float(of["measured_std"]) == pytest.approx(100 * float(row[f"{metric}_std"]))
            assert (of["seeds"], of["printed"]) == ("0 1", "")


def test_listed_images_are_taken_where_there_is_a_list_and_drawn_elsewhere(named, ours, tmp_path):
    folder = tmp_path / "lists" / "1"
    fails(named("paper", "10", "--ood-items", "lists"), "1/cifar10_svhn.txt", code=2)
    folder.mkdir(parents=True)
    first, *_ = store.read_sample_ids(ours / "svhn.h5")
    (folder / "cifar10_svhn.txt").write_text(f"{first}\n{first}\n")
    result = named("paper", "10", "--ood-items", "lists", "--format", "json")
    rows = [row for row in json.loads(result.stdout) if row["metric"] == "acc_n"]
    place = {"row": "ZS-CLIP", "id_set": "cifar10"}
    measured = {row["ood_set"]: row["measured"] for row in rows if place.items() <= row.items()}
    assert measured["svhn"] in (0, 100)  # of one image
    assert measured["texture"] not in (0, 100)
    shown = named("paper", "10", "--ood-items", "lists").stdout
    assert "because there is no list: cifar10 with lsun" in shown


def test_what_is_not_as_published_is_said(named, cached, tmp_path):
    shutil.copytree(*(tmp_path / "features" / f"{OURS}{end}" for end in ("", "-amp")))
    asked = ("--set", "zs-clip.threshold=0.3", "--seed", "3", "--preset", "official")
    table = named("paper", "10", *asked, "--precision", "amp", "--method", "tda")
    assert f"measured: {OURS}-amp, preset official, seed 3" in table.stdout
    assert "not as published: zs-clip.threshold=0.3" in table.stdout
    assert lines(table, "tda (not in the paper)")[0][5].count("-") == 0
    own = ("--id", "cifar10", "--ood", "svhn", "--threshold", "0.3", "--format", "json")
    simulated = named("simulate", "--method", "zs-clip", *asked[2:], *own, "--precision", "amp")
    [record] = json.loads(simulated.stdout)
    expected = f"{100 * record['accuracies']['acc_h']:.2f}"
    assert lines(table, "ZS-CLIP")[0][1].split()[2] == expected
    fails(named("paper", "10", "--precision", "bf16"), f"by {OURS}-bf16: type zsntta extract")

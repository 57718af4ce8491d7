"""The whole paper by one command, and several tables at once."""

import csv
import json
import random
import re
import signal
import subprocess
import time

import pytest
from made import ZSNTTA

from zsntta_cli.paper.tables import TABLES

ENDINGS = (".md", ".tex", ".csv")


@pytest.fixture
def few(named, ours):
    """Two of CIFAR-10's OOD sets alone."""
    for name in ("texture", "places"):
        (ours / f"{name}.h5").unlink()
    return named


def check_folder(folder):
    """All files of a folder are whole, whatever became of their maker."""
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".csv":
            assert len({len(row) for row in csv.reader(text.splitlines())}) == 1
        elif path.name == "index.html":
            assert text.rstrip().endswith("</html>")
        elif path.suffix == ".jsonl":
            assert all(json.loads(line)["settings"] for line in text.splitlines())


def without_comments(text):
    return [line for line in text.splitlines() if not line.startswith("%")]


@pytest.mark.usefixtures("whole")
def test_all_tables_and_figures_lie_in_a_folder_and_a_broken_set_ends_its_rows_alone(
    few, ours, tmp_path
):
    content = (ours / "lsun.h5").read_bytes()
    (ours / "lsun.h5").write_bytes(content[:-5000])
    folder = tmp_path / "out"
    result = few("paper", "--all", "--output", "out")
    assert result.exit_code == 0, result.output
    assert "note: adand on cifar10 and lsun failed: " in result.stderr
    (ours / "lsun.h5").write_bytes(content)
    result = few("paper", "--all", "--output", "out")
    assert result.exit_code == 0, result.output
    check_folder(folder)
    assert all((folder / f"table{n}{end}").exists() for n in TABLES for end in ENDINGS)
    ten = few("paper", "10", "--format", "latex").stdout
    written = (folder / "table10.tex").read_text()
    assert without_comments(written) == without_comments(ten) != []
    assert "failed" not in result.stderr
    assert "missing: add --extract, which encodes the available sets" in result.stderr
    links = re.findall(r'href="(.+?)"', (folder / "index.html").read_text())
    files = {path.name for path in folder.iterdir() if path.suffix != ".txt"}
    assert {*links} == files - {"index.html"}
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    assert len({json.dumps(record["settings"]) for record in records}) == len(records) > 50
    assert "26 tables, 3 figures; " in result.stdout


@pytest.mark.slow
def test_killed_it_leaves_whole_files_and_goes_on(few, tmp_path):
    generator = random.Random(27)
    command = [ZSNTTA, "paper", "--all", "--output", "out"]
    assert few  # features in the folder
    for _ in range(3):
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(generator.uniform(1.5, 4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (tmp_path / "out").exists():
            check_folder(tmp_path / "out")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_folder(tmp_path / "out")
    stopped = (tmp_path / "out" / "table19.csv").read_text()
    again = few("paper", "19", "--format", "csv").stdout
    assert stopped == again


def test_several_tables_and_figures_at_once(few, tmp_path):
    tables = few("paper", "22,CIFAR", "--format", "json")
    assert tables.exit_code == 0, tables.output
    one_by_one = [json.loads(few("paper", n, "--format", "json").stdout) for n in ("22", "10")]
    assert json.loads(tables.stdout) == one_by_one[0] + one_by_one[1]
    assert "Table 13" in few("paper", "13,fig2", "--published").stdout
    assert (tmp_path / "fig2.pdf").exists()
    text = few("paper", "6,13", "--published", "--format", "markdown").stdout
    assert text.index("Table 6 (") < text.index("Table 13 (")

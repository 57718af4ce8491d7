"""One rule for whatever is written: an ending that is not a format of the command is refused."""

import re
from pathlib import Path

import pytest
from made import TINY, fails

TABLES = (".txt", ".md", ".tex", ".html", ".csv", ".json")
SIMULATE = ("simulate", "--method", "zs-clip", *TINY)
DETECT = ("detect", "pictures", "--classes", "cat,dog", *TINY)
# By the words of a command and its option: what to type before it, and the endings that it knows.
OUTPUTS = {
    ("simulate", "--output"): (SIMULATE, TABLES),
    ("simulate", "--scores"): (SIMULATE, (".csv",)),
    ("paper", "--output"): (("paper", "2", *TINY), TABLES),
    ("report", "--output"): (("report",), (".html", ".htm")),
    ("plot", "--output"): (("plot", "ranks"), (".pdf", ".svg", ".png", ".csv")),
    ("records list", "--output"): (("records", "list"), TABLES),
    ("records export", "--output"): (("records", "export"), (".jsonl", ".json", ".csv")),
    ("methods list", "--output"): (("methods", "list"), TABLES),
    ("methods show", "--output"): (("methods", "show", "magic"), TABLES),
    ("methods check", "--output"): (("methods", "check", "magic.py"), TABLES),
    ("cite", "--output"): (("cite",), (".bib",)),
    ("cache export", "--output"): (("cache", "export", "shapes"), (".npz",)),
    ("cache list", "--output"): (("cache", "list"), TABLES),
    ("datasets list", "--output"): (("datasets", "list"), TABLES),
    ("encoders list", "--output"): (("encoders", "list"), TABLES),
    ("detect", "--output"): (DETECT, (".jsonl", ".csv", ".parquet")),
    ("detect", "--review"): (DETECT, (".html", ".htm")),
}
NEEDS_NOTHING = ("methods list", "datasets list", "encoders list", "cache list")


@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_an_ending_is_known_or_refused_before_any_work(zsntta, tmp_path, output):
    words, known = OUTPUTS[output]
    for ending in (known[0], known[-1].upper(), ".xlsx", ".gz", "."):
        result = zsntta(*words, output[1], f"x{ending}")
        refusal = re.search(r"must end in one of (\S+(?:, \S+)*)\.\n", result.stderr)
        assert (refusal is None) == (ending.lower() in known), result.stderr
        if refusal:
            assert (result.exit_code, {*refusal[1].split(", ")}) == (2, {*known})
        if output[0] not in NEEDS_NOTHING:  # of features and records, which are missing
            assert result.exit_code in (1, 2)
            assert not list(tmp_path.glob("x*"))


def test_the_ending_of_an_output_or_what_is_named_says_its_form(cached, tmp_path):
    for name, start in {
        "t.csv": "method,", "t.json": "[", "t.md": "**ID", "t.tex": "%", "t.TXT": "ID: ",
        "t.html": "<",
    }.items():  # fmt: skip
        assert cached(*SIMULATE, "--output", name).exit_code == 0
        assert (tmp_path / name).read_text().startswith(start)
    assert cached(*SIMULATE, "--format", "csv", "--output", "rows").exit_code == 0
    assert (tmp_path / "rows").read_text().startswith("method,")
    assert cached(*SIMULATE, "--ood", "glyphs", "--scores", "S.CSV").exit_code == 0
    assert (tmp_path / "S.CSV").read_text().startswith("index,")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("pictures --classes-file f.csv", "--output=f.csv"),
        ("*.csv --classes cat", "--output=f.csv"),
        ("pictures f.csv --classes cat", "--output=link.csv"),
        ("pictures --classes cat --learn f.html", "--review=./f.html"),
    ],
)
def test_an_output_is_no_input_of_its_line(pictures, words, output):
    for name in ("f.csv", "f.html"):
        Path(name).write_text("path\n")
    Path("link.csv").symlink_to("f.csv")
    fails(pictures("detect", *words.split(), output, *TINY), "would replace", code=2)
    assert Path("f.csv").read_text() == Path("f.html").read_text() == "path\n"


@pytest.mark.parametrize(
    ("options", "is_below", "is_on_stderr"),
    [
        ((), True, False), (("--format", "latex"), True, False),
        (("--format", "json"), True, True),  # a record has its notes, too
        (("--format", "csv"), False, True), (("--output", "table.md"), False, True),
    ],
)  # fmt: skip
def test_a_note_stands_once_below_a_table_or_on_stderr(cached, options, is_below, is_on_stderr):
    result = cached(*SIMULATE, "--ood", "glyphs", "--ratio", "0.75", *options)
    note = " is smaller than the streams need"
    assert (result.stdout.count(note), result.stderr.count(note)) == (is_below, is_on_stderr)

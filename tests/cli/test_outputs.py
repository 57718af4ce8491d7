"""One rule for whatever is written: an ending that is no form of the command is refused."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import TINY, fails

from zsntta_cli.cli import program

TABLES = (".txt", ".md", ".tex", ".html", ".csv", ".json")
FIGURES = (".pdf", ".svg", ".png", ".csv")
SIMULATE = ("simulate", "--method", "zs-clip", *TINY)
DETECT = ("detect", "pictures", "--classes", "cat,dog", *TINY)
# By the words of a command and its option: what to type before it, and the endings that it knows.
OUTPUTS = {
    ("simulate", "--output"): (SIMULATE, TABLES),
    ("simulate", "--scores"): (SIMULATE, (".csv", ".h5", ".hdf5")),
    ("paper", "--output"): (("paper", "2", *TINY), TABLES),
    ("report", "--output"): (("report",), (".html", ".htm")),
    ("plot", "--output"): (("plot", "ranks"), FIGURES),
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
# What is written where there are neither features nor records.
NEEDS_NOTHING = {
    "methods list",
    "datasets list",
    "encoders list",
}
FIGURE = ("paper", "fig2", "--output"), (("paper", "fig2", *TINY), FIGURES)
ENDINGS = sorted(
    {".xlsx", ".tsv", ".gz", ".", *(one for _, known in OUTPUTS.values() for one in known)}
)


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def test_all_outputs_are_here():
    """A command that gains an output has to say its forms above."""
    names = {"--output", "--scores", "--review"}
    written = {
        (words, next(name for name in parameter.opts if name in names))
        for words, command in commands(program())
        for parameter in command.params
        if names & {*parameter.opts}
    }
    assert written == {*OUTPUTS}


@settings(
    max_examples=80, deadline=None, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    st.sampled_from([*OUTPUTS.items(), FIGURE]),
    st.sampled_from(ENDINGS) | st.from_regex(r"(\.[a-zA-Z0-9]{1,5})?", fullmatch=True),
)
def test_an_ending_is_known_or_refused_before_any_work(zsntta, tmp_path, output, ending):
    (command, *_, option), (words, known) = output
    result = zsntta(*words, option, f"x{ending}")
    if command in NEEDS_NOTHING and ending.lower() in known:
        assert result.exit_code == 0
        (tmp_path / f"x{ending}").unlink()
        return
    assert not list(tmp_path.glob("x*")), "nothing is there to be written"
    if command != "cache list":  # which says so, and that is no error
        assert result.exit_code in (1, 2), "features and records are missing, whatever the ending"
    refusal = re.search(r"must end in one of (\S+(?:, \S+)*)\.(?:\n| See )", result.stderr)
    assert (refusal is None) == (ending.lower() in known), result.stderr
    if refusal:
        assert result.exit_code == 2
        assert {*refusal[1].split(", ")} == {*known}


def test_the_ending_of_an_output_or_what_is_named_says_its_form(cached, tmp_path):
    for name, start in {
        "t.csv": "method,", "t.json": "[", "t.md": "**ID", "t.tex": "%", "t.txt": "ID: ",
        "t.TXT": "ID: ", "t.html": "<",
    }.items():  # fmt: skip
        assert cached(*SIMULATE, "--output", name).exit_code == 0
        assert (tmp_path / name).read_text().startswith(start)
    assert cached(*SIMULATE, "--format", "csv", "--output", "rows").exit_code == 0
    assert (tmp_path / "rows").read_text().startswith("method,")
    for ending in (".xlsx", ".pdf"):
        result = cached(*SIMULATE, "--format", "csv", "--output", f"rows{ending}")
        fails(result, "must end in one of .txt, .md", code=2)
        assert not (tmp_path / f"rows{ending}").exists()
    assert cached(*SIMULATE, "--ood", "glyphs", "--scores", "S.H5").exit_code == 0
    assert (tmp_path / "S.H5").read_bytes().startswith(b"\x89HDF")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("pictures --classes-file f.csv", "--output=f.csv"),
        ("f.csv --classes cat", "--output=f.csv"),
        ("*.csv --classes cat", "--output=f.csv"),
        ("pictures f.csv --classes cat", "--output=link.csv"),
        ("pictures --classes cat --learn f.html", "--review=./f.html"),
    ],
)
def test_an_output_is_no_input_of_its_line(pictures, words, output):
    for name in ("f.csv", "f.html"):
        Path(name).write_text("path\n")
    Path("link.csv").symlink_to("f.csv")
    fails(pictures("detect", *words.split(), output, *TINY), "would replace it", code=2)
    assert Path("f.csv").read_text() == Path("f.html").read_text() == "path\n"


def test_a_note_stands_once_below_a_table_or_on_stderr(cached):
    run = (*SIMULATE, "--ood", "glyphs", "--ratio", "0.75")
    note = " is smaller than the streams need"
    for options, is_below, is_on_stderr in [
        ((), True, False), (("--format", "markdown"), True, False),
        (("--format", "latex"), True, False), (("--format", "html"), True, False),
        (("--format", "json"), True, True),  # a record has its notes, too
        (("--format", "csv"), False, True), (("--output", "table.md"), False, True),
        (("--output", "runs.csv"), False, True),
    ]:  # fmt: skip
        result = cached(*run, *options)
        assert result.stdout.count(note) == is_below, options
        assert result.stderr.count(note) == is_on_stderr, options

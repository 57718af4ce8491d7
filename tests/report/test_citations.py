"""References: all that can be cited has one, and the file is BibTeX as BibTeX takes it."""

import re
from pathlib import Path

import pytest
from made import own_method

from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.report import citations
from zsntta_cli.report.citations import bibtex, encoder_cites, find_reference, references

FILE = Path(citations.__file__).with_name("references.bib")
LINES = {  # all that has a line with references
    **{f"method {name}": line for name, line in METHODS.items()},
    **{f"classifier {name}": line for name, line in CLASSIFIERS.items()},
    **{f"set {name}": line for name, line in CATALOGUE.items()},
}
WANTED = {
    "inproceedings": {"author", "title", "booktitle", "year"},
    "article": {"author", "title", "journal", "year"},
    "techreport": {"author", "title", "institution", "year"},
    "misc": {"title"},
}
ALLOWED = {"eprint", "archivePrefix", "volume", "number", "pages", "url", "doi", "note",
           "howpublished", "publisher", "author", "year"}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_all_that_can_be_cited_has_a_reference(line):
    assert LINES[line].cites
    assert {*LINES[line].cites} <= {*references()}


def test_the_file_is_bibtex():
    text = FILE.read_text(encoding="utf-8")
    parsed = re.findall(r"^@([a-z]+)\{([a-z0-9]+),\n((?:  \w+ = \{.+\},\n)+)\}$", text, re.M)
    assert len(parsed) == text.count("@") == len(references()) > 50
    for kind, key, body in parsed:
        names = re.findall(r"^  (\w+)", body, re.M)
        assert len(names) == len(set(names)), key
        assert WANTED[kind] <= {*names} <= WANTED[kind] | ALLOWED, key
        assert body.count("{") == body.count("}"), key
        assert [*references()[key].fields] == names


def test_a_bibliography_names_each_once_and_what_for(monkeypatch):
    own = "@article{me2030,\n  author = {Me, I.},\n  title = {Mine},\n  year = {2030},\n}"
    monkeypatch.setitem(METHODS, "own", own_method(print, cites=(own,)))
    text, uncited = bibtex(
        ["adand", "adand+tda", "own", "strange"], ["cifar10", "cifar10-c:fog:1", "mine"],
        ["L-SigLIP"],
    )  # fmt: skip
    assert re.findall(r"@\w+\{(\w+)", text) == [
        "zsntta", "cao2025noisy", "radford2021learning", "ilharco2021openclip",
        "karmanov2024efficient", "me2030", "krizhevsky2009learning", "hendrycks2019benchmarking",
        "zhai2023sigmoid",
    ]  # fmt: skip
    assert "% the setting, adand, adand+tda\n@inproceedings{cao2025noisy," in text
    assert "% cifar10, cifar10-c:fog:1\n@techreport{krizhevsky2009learning," in text
    assert find_reference(own).short == "Me, 2030"
    assert uncited == ["strange", "mine"]
    assert encoder_cites("EVA02-B-16-merged2b_s8b_b131k") == ("sun2023eva",)
    assert not encoder_cites("ViT-B-16-openai")

"""References: all that can be cited has one, and the file is BibTeX as BibTeX takes it."""

import re
from pathlib import Path

import pytest
from made import own_method

import zsntta_cli
from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.report import citations
from zsntta_cli.report.citations import (
    _CITES,
    bibtex,
    encoder_cites,
    find_reference,
    references,
)

FILE = Path(citations.__file__).with_name("references.bib")
TEXT = FILE.read_text(encoding="utf-8")
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
    for cited in LINES[line].cites:
        assert cited in references(), cited


def test_and_every_reference_is_of_something():
    of_all = {cited for line in LINES.values() for cited in line.cites}
    of_all |= {cited for cites in _CITES.values() for cited in cites}
    assert {*references()} - of_all == {"radford2021learning", "ilharco2021openclip"}


def entries(text):
    """Read entries with a grammar of one's own: braces that close, and no text of another kind."""
    found, at = [], 0
    while (at := text.find("@", at)) >= 0:
        kind = re.compile(r"@([a-z]+)\{").match(text, at)
        assert kind, text[at : at + 30]
        depth, end = 1, kind.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        key, _, body = text[kind.end() : end - 1].partition(",")
        found.append((kind[1], key, body))
        at = end
    return found


def test_the_file_is_bibtex():
    parsed = entries(TEXT)
    keys = [key for _, key, _ in parsed]
    assert len(keys) == len(set(keys)) > 50
    assert keys == [*references()]
    for kind, key, body in parsed:
        assert re.fullmatch(r"[a-z0-9]+", key)
        lines = [line for line in body.splitlines() if line]
        fields = [re.fullmatch(r"  (\w+) = \{(.+)\},", line) for line in lines]
        assert all(fields), (key, lines)
        names = [field[1] for field in fields]
        assert len(names) == len(set(names)), key
        assert WANTED[kind] <= {*names} <= WANTED[kind] | ALLOWED, key
        assert references()[key].fields == {field[1]: field[2] for field in fields}


def test_the_program_is_cited_as_citation_cff_and_in_its_version():
    cff = (FILE.parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    program, setting = references()["zsntta"], references()["cao2025noisy"]
    assert program.fields["note"] == f"Version {zsntta_cli.__version__}"
    assert f"version: {zsntta_cli.__version__}" in cff
    assert program.title.lower() in cff.lower()
    assert setting.title in cff
    names = re.findall(r"given-names: (.+)\n +family-names: (.+)", cff)
    assert setting.fields["author"] == " and ".join(f"{last}, {first}" for first, last in names)


@pytest.mark.parametrize(
    ("key", "short"),
    [("cao2025noisy", "Cao et al., ICLR 2025"), ("zsntta", "The zsntta authors"),
     ("qian2024online", "Qian and Hu, ECCV 2024, arXiv 2408.13320"),
     ("fan2022simple", "Fan et al., 2022, arXiv 2207.08210"),
     ("krizhevsky2009learning", "Krizhevsky, 2009")],
)  # fmt: skip
def test_in_a_few_words(key, short):
    assert references()[key].short == short


def test_a_bibliography_names_each_once_and_what_for():
    text, uncited = bibtex(
        ["adand", "adand+tda", "strange"], ["cifar10", "cifar10-c:fog:1", "mine"], ["L-SigLIP"]
    )
    keys = [key for _, key, _ in entries(text)]
    assert keys == [
        "zsntta", "cao2025noisy", "radford2021learning", "ilharco2021openclip",
        "karmanov2024efficient", "krizhevsky2009learning", "hendrycks2019benchmarking",
        "zhai2023sigmoid",
    ]  # fmt: skip
    assert "% the setting, adand, adand+tda\n@inproceedings{cao2025noisy," in text
    assert "% cifar10, cifar10-c:fog:1\n@techreport{krizhevsky2009learning," in text
    assert uncited == ["strange", "mine"]


@pytest.mark.parametrize(
    ("name", "cited"),
    [("ViT-B-16-SigLIP2-webli", "tschannen2025siglip"), ("SigLIP-webli", "zhai2023sigmoid"),
     ("EVA02-B-16-merged2b_s8b_b131k", "sun2023eva"), ("ViT-B-16-quickgelu-dfn2b", "fang2024data"),
     ("convnext_base_w-laion2b_s13b_b82k", "liu2022convnet"), ("tiny", "zsntta")],
)  # fmt: skip
def test_what_an_encoder_cites_is_told_by_its_name(name, cited):
    assert encoder_cites(name)[-1] == cited
    assert not encoder_cites("ViT-B-16-openai")
    assert {key for keys in _CITES.values() for key in keys} <= references().keys()


def test_a_method_of_ones_own_brings_its_entry(monkeypatch):
    own = "@article{me2030,\n  author = {Me, I.},\n  title = {Mine},\n  year = {2030},\n}"
    monkeypatch.setitem(METHODS, "mine", own_method(print, cites=(own,)))
    text, uncited = bibtex(["mine"])
    assert "% mine\n@article{me2030," in text
    assert find_reference(own).short == "Me, 2030"
    assert uncited == []

"""What a release has to agree with: versions, references, the wheel's files, the site."""

import re
import sys
from pathlib import Path

import yaml

import zsntta_cli
from zsntta_cli.cli import program
from zsntta_cli.report.citations import PROGRAM, SETTING, find_reference

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))


def test_one_version_is_written_everywhere():
    version = zsntta_cli.__version__
    assert f"## {version} —" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"Version {version}" in find_reference(PROGRAM).text


def test_the_citation_file_has_the_program_and_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == zsntta_cli.__version__
    paper = citation["preferred-citation"]
    assert paper["title"] == find_reference(SETTING).title
    assert all("family-names" in author for author in paper["authors"])
    assert "references" not in citation, "zsntta cite prints those of methods"


def test_the_site_has_every_command_and_every_public_name():
    import site_pages

    commands = site_pages.commands_page()
    headings = set(re.findall(r"^## zsntta (.*)$", commands, re.MULTILINE))
    wanted = set()
    for name, command in program().commands.items():
        subcommands = getattr(command, "commands", {})
        wanted |= {f"{name} {sub}" for sub in subcommands} or {name}
    assert headings == wanted
    assert "--threshold" in commands, "of simulate, all options"
    python = site_pages.python_page()
    assert all(f"::: zsntta_cli.{n}" in python for n in zsntta_cli.__all__ if n[0] != "_")


def test_every_page_of_docs_is_in_the_sites_menu():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert f" {page.relative_to(ROOT / 'docs').as_posix()}\n" in menu, page

"""The tests' own house: rooms as the package has them, small fixtures, no test read by another."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
# Rooms that the package does not have.
OWN = {"fixtures", "reference", "torture", "whole"}


def test_rooms_are_those_of_the_package():
    rooms = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name[0] not in "._"}
    package = {path.name for path in (TESTS.parent / "zsntta_cli").iterdir() if path.is_dir()}
    assert rooms - OWN <= package
    assert not list(TESTS.glob("test_*.py"))


def test_the_quick_ring_has_tests_of_every_room():
    makefile = (TESTS.parent / "Makefile").read_text(encoding="utf-8")
    paths = makefile.partition("QUICK := ")[2].partition("\n\n")[0].replace("\\", "").split()
    assert all((TESTS / path).exists() for path in paths)
    rooms = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert {path.partition("/")[0] for path in paths} == rooms - OWN


def test_no_test_imports_another():
    for path in TESTS.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if re.match(r"\s*(from|import) test_", line)], path


def test_fixtures_are_small():
    sizes = [path.stat().st_size for path in (TESTS / "fixtures").rglob("*") if path.is_file()]
    assert sum(sizes) <= 1_300_000

"""What `make torture` has done: which tests are behind it, and what they tried how often.

The ledger is a file in build/, of lines; it is gone once all tests have passed. The table of
SECURITY.md gets a row for each thing that was tried.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "build" / "torture.jsonl"
PAGE = ROOT / "SECURITY.md"
HEAD = "| tried | number | bad | when |"


def code_digest() -> str:
    """The digest of the package and of these tests: of another one everything is tried again."""
    digest = hashlib.sha256()
    for folder in ("zsntta_cli", "tests/torture"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def lines(code: str, path: Path = LEDGER) -> list[dict]:
    """What was noted of this code, a test a line."""
    if not path.exists():
        return []
    noted = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in noted if line["code"] == code]


def note(code: str, test: str, passed: bool, counts: list, path: Path = LEDGER) -> None:
    """Note how a test ended, and what it tried: (what, how often, how often it was bad)."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        line = {"code": code, "test": test, "passed": passed, "counts": counts}
        file.write(json.dumps(line) + "\n")


def totals(noted: list[dict]) -> dict[str, tuple[int, int]]:
    """How often each thing was tried, and how often it was bad."""
    tried, bad = Counter(), Counter()
    for what, times, failures in (count for line in noted for count in line["counts"]):
        tried[what] += times
        bad[what] += failures
    return {what: (tried[what], bad[what]) for what in sorted(tried)}


def with_totals(page: str, found: dict[str, tuple[int, int]], when: str) -> str:
    """The page with a row of its table for each thing; the rows of others stay."""
    before, head, table = page.partition(HEAD)
    assert head, f"the page has no table {HEAD}"
    rule, *rows = table.strip("\n").split("\n")
    by_name = {row.split("|")[1].strip(): row for row in rows}
    for what, (tried, bad) in found.items():
        by_name[what] = f"| {what} | {tried:,} | {bad:,} | {when} |"
    return f"{before}{head}\n{rule}\n" + "\n".join(by_name.values()) + "\n"

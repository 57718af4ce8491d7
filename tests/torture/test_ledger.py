"""The ledger of `make torture`, by hand."""

from torture import ledger

PAGE = f"# A page\n\n{ledger.HEAD}\n|---|---:|---:|---|\n| kills | 7 | 1, mended | earlier |\n"


def test_counts_of_this_code_are_added_up_and_become_rows(tmp_path):
    path = tmp_path / "made" / "torture.jsonl"
    ledger.note("a", "one", True, [["kills", 1000, 0]], path)
    ledger.note("a", "two", False, [["kills", 234, 2], ["names", 5, 0]], path)
    ledger.note("b", "three", True, [["kills", 50, 0]], path)
    found = ledger.totals(ledger.lines("a", path))
    assert found == {"kills": (1234, 2), "names": (5, 0)}
    page = ledger.with_totals(PAGE, found, "today")
    rows = page.splitlines()[-2:]
    assert rows == ["| kills | 1,234 | 2 | today |", "| names | 5 | 0 | today |"]
    assert ledger.with_totals(page, found, "today") == page
    assert ledger.with_totals(PAGE, {}, "today") == PAGE


def test_the_page_has_the_table():
    page = ledger.PAGE.read_text()
    assert ledger.with_totals(page, {}, "today") == page

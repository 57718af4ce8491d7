"""The paper's main results as rows that a report shows beside measured ones: not run here."""

from zsntta_cli.paper.printed.names import METHODS
from zsntta_cli.paper.printed.published import AVERAGE, Printed, printed
from zsntta_cli.report.page.leaderboard import Reported
from zsntta_cli.settings import EncoderChoice

_TABLES = (2, 3, 10, 12, 25)  # a cell a pair, of the methods as they are


def reported() -> list[Reported]:
    """A row a printed cell of these tables, averages apart."""
    cells = (cell for table in _TABLES for cell in printed(table))
    return [_row(cell) for cell in cells if cell.ood_set != AVERAGE]


def _row(cell: Printed) -> Reported:
    said = ", ".join(f"{name} {value}" for name, value in cell.settings.items())
    name = METHODS.get(cell.method, "AdaND")
    acc_s, acc_n, acc_h = (number.mean / 100 for number in cell.numbers)
    assert cell.ratio is not None
    return Reported(
        f"{name} ({said})" if said else name, cell.id_set, cell.ood_set,
        EncoderChoice(cell.encoder).slug, cell.ratio, acc_s, acc_n, acc_h,
        f"ICLR 2025, table {cell.table}",
    )  # fmt: skip

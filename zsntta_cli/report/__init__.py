"""Records to what people read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record


def table(records: "Sequence[Record]", report: str = "accuracy", form: str = "table") -> str:
    """Records as a text: a table for the terminal, or markdown, latex, csv or json.

    `report` is "accuracy" (Acc_S, Acc_N, Acc_H) or "ood" (AUROC, FPR95, AUPR), in percent.

    Raises:
        SettingsError: an unknown report or form.
    """
    from zsntta_cli.report.formats import FORMATS, TABLE, render
    from zsntta_cli.report.tables import KINDS
    from zsntta_cli.settings.options import check_choice

    check_choice("report", report, tuple(KINDS))
    check_choice("form", form, (TABLE, *FORMATS))
    return render(records, form, KINDS[report])

"""Turn results into what people read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record


def table(
    records: "Sequence[Record]",
    report: str = "accuracy",
    form: str = "table",
    *,
    columns: Sequence[str] = (),
    aggregate: bool = False,
) -> str:
    """Draw records as text: a table for the terminal, or markdown, latex, html, csv or json.

    `report` is one of REPORTS: "accuracy" (Acc_S, Acc_N, Acc_H), "ood" (AUROC, FPR95 and AUPR by
    both definitions), "flags" (both, and metrics of the noise flag), "open-set" (ID accuracy, OSCR,
    what a better threshold could win) or "calibration" (of probabilities), in percent; `columns`
    names single metrics instead of a report. csv has a row for each run, and json has the records;
    with `aggregate` both have what the table shows.

    Raises:
        SettingsError: an unknown report, form or metric.
    """
    from zsntta_cli.report.forms import FORMS
    from zsntta_cli.report.tables import View, render
    from zsntta_cli.settings.options import check_choice
    from zsntta_cli.simulation.metrics import REPORTS

    check_choice("report", report, REPORTS)
    check_choice("form", form, tuple(FORMS))
    view = View(report, metrics=tuple(columns), aggregate=aggregate)
    return render(records, form, view)

"""The options that choose settings on some pairs of sets and report on others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from zsntta_cli.cli.command import misused
from zsntta_cli.cli.options import candidate_settings, under

if TYPE_CHECKING:
    from zsntta_cli.results.grid import Pair
    from zsntta_cli.results.tuning import TuningPlan

_PAIRS = "ID+OOD,…"


@dataclass(frozen=True)
class TuningOptions:
    """What is chosen, on which pairs, and the pairs to report on."""

    tune: Annotated[
        list[str] | None,
        under(
            "Tuning", "Values of a setting to choose from, by --tune-by; METHOD.SETTING for one "
            "method.",
            metavar="SETTING=V1,V2,…",
        ),
    ] = None  # fmt: skip
    tune_on: Annotated[
        list[str] | None,
        under("Tuning", "Pairs of sets on which the value is chosen.", metavar=_PAIRS),
    ] = None
    tune_by: Annotated[
        str | None,
        under("Tuning", "Metric by which the value is chosen: acc_s, auroc, fpr95 … [acc_h]"),
    ] = None
    report_on: Annotated[
        list[str] | None,
        under("Tuning", "Other pairs of sets, on which results are reported.", metavar=_PAIRS),
    ] = None

    def plan(
        self, id_sets: Sequence[str] | None, ood_sets: Sequence[str] | None
    ) -> "TuningPlan | None":
        """What is to be tuned; None where none of the options is given.

        Raises:
            UsageError: options that need each other, or do not go together.
            SettingsError: a setting, a value or a metric that there is not.
        """
        if not any(vars(self).values()):
            return None
        if not self.tune:
            raise misused("say what to choose: --tune SETTING=V1,V2.")
        if not (self.tune_on and self.report_on):
            raise misused(
                "--tune needs the pairs to choose on and those to report on: "
                "--tune-on ID+OOD --report-on ID+OOD."
            )
        if id_sets or ood_sets:
            given = "--id" if id_sets else "--ood"
            raise misused(f"--report-on says which sets are reported: leave {given} out.")
        from zsntta_cli.results.tuning import TuningPlan

        axes, own = candidate_settings(self.tune)
        pairs = _pairs("tune-on", self.tune_on), _pairs("report-on", self.report_on)
        return TuningPlan(*pairs, axes, own, self.tune_by or "acc_h")


def _pairs(option: str, texts: Iterable[str]) -> "list[Pair]":
    """Pairs of sets, of texts such as "shapes+glyphs,shapes+digits"; each once.

    Raises:
        UsageError: a text is none.
    """
    pairs: dict[Pair, None] = {}
    for text in (part for several in texts for part in several.split(",")):
        names = text.split("+")
        if len(names) != 2 or not all(names):
            raise misused(f"--{option} is '{text}', must be ID+OOD, such as shapes+glyphs.")
        pairs[names[0], names[1]] = None
    return list(pairs)

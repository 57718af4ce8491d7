"""Grids: every combination of the values given for each setting, in a fixed order."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import TINY, EncoderChoice, RunSettings, build_run
from zsntta_cli.store import feature_path
from zsntta_cli.vocabulary import prompt_template

ALL = "all"  # every cached set as OOD


@dataclass(frozen=True)
class Grid:
    """What to run; an empty sequence means the default."""

    methods: Sequence[str]
    encoder: EncoderChoice
    id_sets: Sequence[str] = ()
    ood_sets: Sequence[str] = ()
    prompts: Sequence[str] = ()
    presets: Sequence[str] = ()
    axes: Mapping[str, Sequence[Any]] | None = None  # by setting: the values to run

    def runs(self, root: Path) -> list[RunSettings]:
        """All runs, equal ones once: a setting that a method does not have makes no other run.

        Raises:
            SettingsError: a value out of range, or no OOD set for a ratio above 0.
        """
        axes = {name: values for name, values in (self.axes or {}).items() if values}
        if "fixed" in axes:
            axes["fixed"] = [_threshold(value) for value in axes["fixed"]]
        runs = [
            build_run(
                method, self.encoder.slug, id_set, ood_set, prompt, preset,
                **dict(zip(axes, values, strict=True)),
            )
            for id_set in self.id_sets or [default_id_set(self.encoder)]
            for ood_set in self._ood_sets(root, id_set)
            for method in self.methods
            for preset in self.presets or ["paper"]
            for prompt in self._prompts(id_set)
            for values in itertools.product(*axes.values())
        ]  # fmt: skip
        for run in runs:
            id_file = feature_path(root, run.encoder, run.id_set)
            if run.stream.ratio and run.ood_set is None and id_file.exists():
                raise SettingsError(self._no_ood_set(root, run.id_set))
        return list(dict.fromkeys(runs))

    def _prompts(self, id_set: str) -> list[str]:
        return [prompt_template(p) for p in self.prompts] or [datasets.default_prompt(id_set)]

    def _ood_sets(self, root: Path, id_set: str) -> Sequence[str | None]:
        if ALL in self.ood_sets:
            found = sorted(p.stem for p in (root / self.encoder.slug).glob("*.h5"))
            others = [n for n in found if n != id_set and not n.startswith(("noise-", "words-"))]
            return others or [None]
        if self.ood_sets:
            others = [name for name in self.ood_sets if name != id_set]
            if not others:
                raise SettingsError(
                    f"'{id_set}' cannot be its own OOD set: name another with --ood."
                )
            return others
        partners = datasets.partners(id_set)
        cached = [n for n in partners if feature_path(root, self.encoder.slug, n).exists()]
        return cached or [None]

    def _no_ood_set(self, root: Path, id_set: str) -> str:
        partners = datasets.partners(id_set)
        if not partners or self.encoder.folder:
            return f"a noise ratio above 0 needs an OOD set beside '{id_set}': add --ood NAME."
        easy = [name for name in partners if datasets.needs_no_hand(name)]
        command = " ".join(f"--dataset {name}" for name in easy or partners)
        return (
            f"no OOD partner of '{id_set}' is cached in {root / self.encoder.slug}: type "
            + f"zsntta extract {command} {self.encoder.options}".strip()
        )


def _threshold(value: Any) -> float | None:
    """A fixed threshold as a number, the adaptive one as None."""
    if value is None or value == "adaptive":
        return None
    try:
        return float(value)
    except ValueError:
        raise SettingsError(f"threshold is '{value}', must be 'adaptive' or in [0, 1].") from None


def default_id_set(encoder: EncoderChoice) -> str:
    """The ID set that is meant where none is named."""
    return "shapes" if encoder.model == TINY else "cifar10"

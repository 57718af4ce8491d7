"""The parts of a bundle besides its runs: features, sources of methods, tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from zsntta_cli.cache.origin import Origin
from zsntta_cli.methods import find_method
from zsntta_cli.report.tables import View, render
from zsntta_cli.results.bundle import Bundle
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.reproducing import as_recorded
from zsntta_cli.simulation.revision import source_files

_TABLES = {"accuracy.md": ("markdown", "accuracy"), "ood.md": ("markdown", "ood")}


def bundle_of(runs: Sequence[Kept], commands: Sequence[str], command: str) -> Bundle:
    """A bundle of runs; `commands` make their features, `command` made the bundle."""
    digests: dict[str, dict[str, str]] = {}
    for kept in runs:
        digests.setdefault(kept.record.settings.encoder, {}).update(kept.record.digests)
    features: dict[str, Any] = {"digests": digests, "origins": origins_of(runs)}
    views = {name: (form, View(report)) for name, (form, report) in _TABLES.items()}
    tables = {name: render(runs, *view, to_file=True) for name, view in views.items()}
    tables["runs.csv"] = render(runs, "csv", View(), to_file=True)
    return Bundle(runs, features | {"commands": [*commands]}, plugins_of(runs), tables, command)


def origins_of(runs: Sequence[Kept]) -> dict[str, dict[str, Origin]]:
    """The origins of the features that some runs read, by encoder folder and set."""
    origins: dict[str, dict[str, Origin]] = {}
    for run in map(as_recorded, runs):
        origins.setdefault(run.settings.encoder, {}).update(run.origins)
    return origins


def plugins_of(runs: Sequence[Kept]) -> dict[str, bytes]:
    """The sources of those methods from outside the package whose code is available."""
    methods = {kept.record.settings.method for kept in runs}
    files = [source_files(name) for name in sorted(methods) if find_method(name)]
    return {name: path.read_bytes() for of_method in files for name, path in of_method.items()}


def without_source(runs: Sequence[Kept], plugins: Mapping[str, bytes]) -> list[str]:
    """The methods from outside the package whose source is not among the given ones."""
    lacking = {
        kept.record.settings.method
        for kept in runs
        if kept.record.own and not set(kept.record.own.files) <= set(plugins)
    }
    return sorted(lacking | {k.record.settings.method for k in runs if not _is_here(k)})


def _is_here(kept: Kept) -> bool:
    return find_method(kept.record.settings.method) is not None

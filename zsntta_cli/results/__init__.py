"""Results: taken from the store or computed by replays, kept, exchanged and compared."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zsntta_cli.settings import LiveSettings
    from zsntta_cli.simulation.record import Record


def simulate(
    *methods: str,
    id_set: Any = (),
    ood_set: Any = (),
    model: str = "ViT-B-16",
    pretrained: str = "openai",
    precision: str = "fp32",
    encoder: str | None = None,
    preset: Any = (),
    prompt: Any = (),
    features_dir: str | Path = "features",
    jobs: int | None = None,
    engine: str = "local",
    records: str | Path | None = None,
    fresh: bool = False,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    plugins: Sequence[str | Path] = (),
    live: "LiveSettings | None" = None,
    **settings: Any,
) -> "list[Record]":
    """Replay streams as `zsntta simulate` does, and return a record for each run, in order.

    A setting of the stream, the threshold or the methods takes a value or a list of values, and so
    do sets, presets and prompts: `simulate("adand", ratio=[0.25, 0.5], seed=range(5))`. The method
    "all" means every method that needs only what is cached. `own` has settings by method, each for
    that method alone. `encoder` is a folder name of features, instead of a model. `live` says how
    live methods get the images. Results are kept in `records`, by default beside the features, and
    taken from there unless `fresh` is set. What a reader of the numbers must know is given as
    warnings and written to the records.

    Raises:
        ZsnttaError: the error that the command would end with.
    """
    from zsntta_cli.plugins import load_script
    from zsntta_cli.results.grid import Grid
    from zsntta_cli.results.runner import Runner
    from zsntta_cli.results.store import Keeping
    from zsntta_cli.settings import EncoderChoice, LiveSettings
    from zsntta_cli.simulation.notes import notes_before

    for script in plugins:
        load_script(Path(script))
    choice = EncoderChoice(model, pretrained, precision, encoder)
    grid = Grid(
        methods, choice, _several(id_set), _several(ood_set), _several(prompt), _several(preset),
        {name: _several(value) for name, value in settings.items()},
        {of: {k: _several(v) for k, v in values.items()} for of, values in (own or {}).items()},
    )  # fmt: skip
    root = Path(features_dir)
    path = Path(records) if records else None
    keeping = Keeping.beside(root, path, fresh, command="zsntta_cli.simulate")
    runner = Runner(root, jobs, engine, live or LiveSettings(), keeping=keeping)
    runs = grid.runs(root)
    for note in [*grid.notes(root), *notes_before(root, runs)]:
        warnings.warn(note.removeprefix("note: "), stacklevel=2)
    return runner.run(runs)


def _several(value: Any) -> list[Any]:
    """A list of values; a single value becomes a list of one."""
    return [value] if isinstance(value, str) or not hasattr(value, "__iter__") else list(value)


def runs(
    records: str | Path | None = None, features_dir: str | Path = "features"
) -> list[dict[str, Any]]:
    """Kept runs as plain rows, in the order of keeping: `pandas.DataFrame(z.runs())`.

    A row has the key of its run, the columns of every CSV (metrics are fractions), and all settings
    by name; all rows have the same names, and None if a run has no such value. `records` is the
    file with the kept results, by default the one beside the features.

    Raises:
        StoreError: there are no kept results.
    """
    from zsntta_cli.results.frame import all_settings
    from zsntta_cli.results.store import STORE, RecordStore
    from zsntta_cli.results.tidy import run_rows

    root = Path(features_dir)
    with RecordStore(Path(records) if records else root / STORE) as store:
        kept = store.find(curves=False)
    settings = [all_settings(record) for record in kept.values()]
    names = dict.fromkeys(chain(*settings))
    return [
        {"key": key, **names, **of_run, **row}
        for key, of_run, row in zip(kept, settings, run_rows(kept.values()), strict=True)
    ]

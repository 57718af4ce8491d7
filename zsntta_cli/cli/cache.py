"""`zsntta cache`: what is in the features folder, is it whole, take in features made elsewhere."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from zsntta_cli.cli.command import command, group, say
from zsntta_cli.cli.options import (
    EncoderName,
    EncoderOptions,
    FeaturesDir,
    ModelOptions,
    argument,
    option,
)
from zsntta_cli.cli.output import ListForm, ListOutput, put_list
from zsntta_cli.cli.sharing import pull, push
from zsntta_cli.errors import StoreError, counted, short
from zsntta_cli.settings import FEATURES

_NOTHING_CACHED = (
    "type zsntta demo, zsntta extract --dataset cifar10, "
    "or zsntta cache import NAME --features FILE"
)
app = group("List, check, split, import, export and share features.")


@command(app, "list")
def list_files(
    encoder: EncoderName = None,
    features_dir: FeaturesDir = FEATURES,
    form: ListForm = None,
    output: ListOutput = None,
) -> None:
    """List feature files, unfinished extractions, TPT's answers.

    [bold]zsntta cache list[/bold]
    """
    from zsntta_cli.cache.listing import stored, stored_answers
    from zsntta_cli.report.lists import feature_rows, feature_sheets

    if files := stored(features_dir, encoder) + stored_answers(features_dir, encoder):
        rows = feature_rows(files)
        put_list(feature_sheets(rows), rows, form, output)
    else:
        _say_nothing(features_dir, encoder)


@command(app)
def show(
    *,
    name: Annotated[str, argument(help="A cached set.")],
    encoder: EncoderName = None,
    model: ModelOptions,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Show everything about the features of one set.

    [bold]zsntta cache show shapes --model tiny[/bold]

    They are of one encoder, or of all that have the set.
    """
    from zsntta_cli.cache.accuracy import zero_shots
    from zsntta_cli.cache.folder import find, folder_name
    from zsntta_cli.cache.listing import stored_answers
    from zsntta_cli.cache.store import read
    from zsntta_cli.report.lists import feature_facts

    options = EncoderOptions(**vars(model), encoder=encoder)
    choice, is_named = options.choice(), any(vars(options).values())
    folder = folder_name(choice) if is_named else None
    for path in find(features_dir, [name], folder):
        answers, features = stored_answers(features_dir, path.parent.name, [name]), read(path)
        facts = feature_facts(features, answers, zero_shots(features))
        say(str(path))
        width = max(map(len, facts))
        for fact, value in facts.items():  # a line each, so that no digest is broken
            for i, line in enumerate(value.splitlines()):
                say(f"  {'' if i else fact:<{width}}  {line}")


@command(app)
def verify(
    names: Annotated[list[str] | None, argument(help="Sets. [all]")] = None,
    published: Annotated[
        bool,
        option("--published", help="Also compare zero-shot accuracies with the published ones."),
    ] = False,
    encoder: EncoderName = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Read feature files whole and check all that they hold.

    [bold]zsntta cache verify[/bold]

    [bold]zsntta cache verify shapes[/bold]

    The exit code is 1 if any is bad.
    """
    from zsntta_cli.cache import store
    from zsntta_cli.cache.accuracy import ZeroShotAccuracy, zero_shots
    from zsntta_cli.cache.folder import find
    from zsntta_cli.cache.identity import difference, foreign_model
    from zsntta_cli.cache.listing import stored_answers
    from zsntta_cli.datasets import miscounted

    paths, bad, firsts = find(features_dir, names or (), encoder), 0, dict[Path, store.Features]()
    for path in paths:
        shots: list[ZeroShotAccuracy] = []
        if not (wrong := store.problems(path)):
            features = store.read(path, rows=published)
            shots = zero_shots(features) if published else []
            identity, first = features.identity, firsts.setdefault(path.parent, features)
            if model := foreign_model(path.parent.name, identity):
                wrong = [f"is of {short(model)}, so it does not belong into {path.parent.name}/"]
            elif differs := difference(identity, first.identity):
                wrong = [f"is of another encoder than {first.path.name} ({differs})"]
            wrong += [f"{shot.line}: {shot.warning}" for shot in shots if shot.warning]
        bad += bool(wrong)
        say(f"{path}: {'; '.join(wrong or ['ok', *(shot.line for shot in shots)])}")
        if not wrong and (count := miscounted(path.stem, len(features))):
            say(f"note: {path} is not of the published set: it has {count}.", err=True)
    for kept in (answers := stored_answers(features_dir, encoder, names or ())):
        bad += kept.is_bad
        say(f"{kept.path}: {kept.state if kept.is_bad else 'ok'}")
    total = len(paths) + len(answers)
    if bad:
        raise StoreError(f"{bad} of {total} files bad: delete them, extract or import again.")
    if not total:
        _say_nothing(features_dir, encoder)


@command(app)
def split(
    name: Annotated[str, argument(help="Cached set with labels.")],
    id_classes: Annotated[
        str,
        option(metavar="N|FILE", help="Number of classes that are ID, or a list of them."),
    ],
    seed: Annotated[int, option(help="Seed of the random choice.", min=0)] = 0,
    new: Annotated[
        str | None,
        option("--name", help="Name of the split. [NAME-N-sSEED, or NAME-FILE]"),
    ] = None,
    encoder: EncoderName = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Make an ID set and its OOD set of one set's classes.

    [bold]zsntta cache split cars --id-classes 98[/bold]

    This is done for every encoder's features.
    """
    from zsntta_cli.cache.folder import find

    for part in _parts(find(features_dir, [name], encoder), id_classes, seed, new):
        say(str(part))


def _parts(paths: Sequence[Path], id_classes: str, seed: int, new: str | None) -> Iterator[Path]:
    from zsntta_cli.cache import split as splits
    from zsntta_cli.cache import store

    is_number = id_classes.isdecimal()
    stem = f"{id_classes}-s{seed}" if is_number else Path(id_classes).stem
    for path in paths:
        class_names = store.read(path, rows=False).class_names
        chosen = (
            splits.drawn_classes(len(class_names), int(id_classes), seed)
            if is_number
            else splits.named_classes(Path(id_classes), class_names)
        )
        yield from splits.split(path, new or f"{path.stem}-{stem}", chosen)


@command(app)
def join(
    name: Annotated[str, argument(help="A set whose parts zsntta extract --part has made.")],
    encoder: EncoderName = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Make one set of its parts, which stay where they are.

    [bold]zsntta cache join imagenet[/bold]
    """
    from zsntta_cli.cache.parts import join_parts, parts_of

    for path in parts_of(features_dir, name, encoder):
        joined = join_parts(path)
        say(f"{path}: {counted(len(joined), 'image')}, {joined.digest[:16]}")


@command(app, "import")
def import_(
    name: Annotated[str, argument(help="Name of the set.")],
    features: Annotated[
        Path,
        option(help="File of features: .npz, .npy, .pt or .safetensors."),
    ],
    labels: Annotated[Path | None, option(help="File of labels, of the same kinds.")] = None,
    class_names: Annotated[
        Path | None, option(help="File of class names: .npz or .npy of texts.")
    ] = None,
    text: Annotated[Path | None, option(help="File of the classes' text features.")] = None,
    encoder: Annotated[
        str, option(help="Name of the encoder; sets under one name must be of one encoder.")
    ] = "imported",
    logit_scale: Annotated[
        float | None,
        option(help="Logit scale of the encoder, exponentiated. [the export's, or 100]"),
    ] = None,
    logit_bias: Annotated[
        float | None, option(help="Logit bias of a sigmoid model (SigLIP), about -13. [none]")
    ] = None,
    normalized: Annotated[
        bool | None, option(help="Whether features have norm 1. [detected]")
    ] = None,
    prompt: Annotated[
        str | None, option(help="Template of the text features. [the set's own]")
    ] = None,
    overwrite: Annotated[bool, option(help="Replace what is there.")] = False,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Take in features made elsewhere; nothing is ever unpickled.

    [bold]zsntta cache import mine --features features.npz[/bold]
    """
    from zsntta_cli.cache.accuracy import accuracy_lines
    from zsntta_cli.cache.npz import ImportPlan, import_features
    from zsntta_cli.progress import ConsoleReporter

    plan = ImportPlan(
        name, features, labels, class_names, text, encoder, logit_scale, normalized, prompt,
        overwrite, logit_bias,
    )  # fmt: skip
    reporter = ConsoleReporter()
    new = import_features(
        plan, features_dir, lambda text: reporter.note(f"note: {plan.name}: {text}")
    )
    say(
        f"{new.path}: {len(new):,} features of {new.dim} dims, {len(new.class_names)} class names, "
        f"{'text features' if new.texts else 'no text features'}"
    )
    for line in accuracy_lines(new):
        reporter.note(line)


@command(app)
def export(
    name: Annotated[str, argument(help="A cached set.")],
    output: Annotated[
        Path | None, option(metavar="FILE.npz", help="File to write. [SET.npz]")
    ] = None,
    encoder: EncoderName = None,
    without_ids: Annotated[
        bool, option("--without-ids", help="Leave out sample ids, which are names of files.")
    ] = False,
    overwrite: Annotated[bool, option(help="Replace what is there.")] = False,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Write cached features as .npz, for other tools.

    [bold]zsntta cache export shapes --output shapes.npz[/bold]

    `cache import` reads it, and its features are equal to the bit.
    """
    from zsntta_cli.cache.npz import export_features
    from zsntta_cli.cli.output import form_of, is_stream

    form_of(output, {".npz": "npz"}, default="npz")
    target = output or Path(f"{name}.npz")
    features, note = export_features(features_dir, name, encoder, target, without_ids, overwrite)
    if note:
        say(f"note: {name}: {note}.", err=True)
    to_stream = output is not None and is_stream(output)
    say(f"{target}: {len(features):,} features of {features.dim} dims", err=to_stream)


command(app)(push)
command(app)(pull)


def _say_nothing(features_dir: Path, encoder: str | None) -> None:
    say(f"nothing in {features_dir / (encoder or '')}: {_NOTHING_CACHED}.", err=True)

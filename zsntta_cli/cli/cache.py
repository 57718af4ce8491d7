"""`zsntta cache`: list, check, split, import, export and share the features in a folder."""

from pathlib import Path

from zsntta_cli.cli.command import command, group, say
from zsntta_cli.cli.options import (
    ENCODER,
    FEATURES_DIR,
    EncoderOptions,
    Names,
    argument,
    option,
)
from zsntta_cli.cli.output import TableOutput, form_of, is_stream
from zsntta_cli.errors import StoreError, counted
from zsntta_cli.settings import ImportSettings

_NOTHING_CACHED = (
    "type zsntta demo, zsntta extract --dataset cifar10, "
    "or zsntta cache import NAME --features FILE"
)
_SETS = "Sets. [all]"
_WITHOUT_IDS = "--without-ids"
app = group("List, check, split, import, export and share features.")


@command(app, "list")
def list_files(
    encoder: str | None = ENCODER, features_dir: Path = FEATURES_DIR, *, listed: TableOutput
) -> None:
    """List feature files, unfinished extractions and TPT's answers.

    [bold]zsntta cache list[/bold]
    """
    from zsntta_cli.report.lists import feature_rows, feature_sheets

    if rows := feature_rows(features_dir, encoder):
        listed.put(feature_sheets(rows), rows)
    else:
        _say_nothing(features_dir, encoder)


@command(app)
def show(
    name: str = argument(..., "Cached set."),
    *,
    encoder: EncoderOptions,
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Show everything about the features of one set.

    [bold]zsntta cache show shapes --model tiny[/bold]

    If no encoder is named, it shows the features of every encoder.
    """
    from zsntta_cli.cache.accuracy import zero_shots
    from zsntta_cli.cache.folder import find, folder_name
    from zsntta_cli.cache.store import read
    from zsntta_cli.report.lists import feature_facts

    choice = encoder.choice()
    for path in find(features_dir, [name], folder_name(choice) if encoder.given else None):
        features = read(path)
        facts = feature_facts(features, zero_shots(features))
        say(str(path))
        width = max(map(len, facts))
        for fact, value in facts.items():  # a line each, so that no digest is broken
            for i, line in enumerate(value.splitlines()):
                say(f"  {'' if i else fact:<{width}}  {line}")


@command(app)
def verify(
    names: Names = argument(None, _SETS),
    published: bool = option(
        False, "Also compare zero-shot accuracies with the published ones.", "--published"
    ),
    encoder: str | None = ENCODER,
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Read feature files completely and check their contents.

    [bold]zsntta cache verify[/bold]

    [bold]zsntta cache verify shapes[/bold]

    The exit code is 1 if a check fails.
    """
    from zsntta_cli.cache import store
    from zsntta_cli.cache.accuracy import zero_shots
    from zsntta_cli.cache.folder import find
    from zsntta_cli.cache.identity import difference, foreign_model

    paths, bad, firsts = find(features_dir, names or (), encoder), 0, dict[Path, store.Features]()
    for path in paths:
        facts, wrong = ["ok"], store.problems(path)
        if not wrong:
            features = store.read(path, rows=published)
            first = firsts.setdefault(path.parent, features)
            if differs := difference(features.identity, first.identity):
                wrong = [f"made with a different encoder than {first.path.name} ({differs})"]
            elif features is first and (model := foreign_model(first)):
                say(f"note: {path.parent}/ has features of {model}: was it copied?", err=True)
            for shot in zero_shots(features) if published else ():
                facts.append(shot.line)
                wrong += [f"{shot.line}: {shot.warning}"] if shot.warning else []
        bad += bool(wrong)
        say(f"{path}: {'; '.join(wrong or facts)}")
    if bad:
        raise StoreError(
            f"{bad} of {len(paths)} files are bad: delete them, then extract or import again."
        )
    if not paths:
        _say_nothing(features_dir, encoder)


@command(app)
def split(
    name: str = argument(..., "Cached set with labels."),
    id_classes: str = option(
        ..., "Number of ID classes, or a file that lists them.", metavar="N|FILE"
    ),
    seed: int = option(0, "Seed of the random choice.", min=0),
    new: str | None = option(None, "Name of the split. [NAME-N-sSEED, or NAME-FILE]", "--name"),
    encoder: str | None = ENCODER,
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Split the classes of a set into an ID set and an OOD set.

    [bold]zsntta cache split cars --id-classes 98[/bold]

    If no encoder is named, the features of every encoder are split.
    """
    from zsntta_cli.cache import split as splits
    from zsntta_cli.cache.folder import find

    for path in find(features_dir, [name], encoder):
        for part in splits.split(path, id_classes, seed, new):
            say(str(part))


@command(app)
def join(
    name: str = argument(..., "Set whose parts were made by zsntta extract --part."),
    encoder: str | None = ENCODER,
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Join the parts of a set, and keep the parts.

    [bold]zsntta cache join imagenet[/bold]
    """
    from zsntta_cli.cache.parts import join_parts, parts_of

    for path in parts_of(features_dir, name, encoder):
        joined = join_parts(path)
        say(f"{path}: {counted(len(joined), 'image')}, {joined.digest[:16]}")


@command(app, "import")
def import_(
    name: str = argument(..., "Name of the set."),
    *,
    what: ImportSettings,
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Import features made elsewhere; nothing is ever unpickled.

    [bold]zsntta cache import mine --features features.npz[/bold]
    """
    from zsntta_cli.cache.accuracy import accuracy_lines
    from zsntta_cli.cache.npz import import_features
    from zsntta_cli.progress import ConsoleReporter

    note = ConsoleReporter().note
    new = import_features(name, what, features_dir, lambda line: note(f"note: {name}: {line}"))
    say(
        f"{new.path}: {len(new):,} features of {new.dim} dimensions, {len(new.class_names)} "
        f"class names, {'text features' if new.texts else 'no text features'}"
    )
    for line in accuracy_lines(new):
        note(line)


@command(app)
def export(
    name: str = argument(..., "Cached set."),
    output: Path | None = option(None, "File to write. [SET.npz]", metavar="FILE.npz"),
    encoder: str | None = ENCODER,
    without_ids: bool = option(False, "Omit the sample ids, which are file names.", _WITHOUT_IDS),
    overwrite: bool = option(False, "Overwrite an existing file.", "--overwrite"),
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Write cached features as .npz, for other tools.

    [bold]zsntta cache export shapes --output shapes.npz[/bold]

    `cache import` restores the same features, bit for bit.
    """
    from zsntta_cli.cache.npz import export_features

    form_of(output, {".npz": "npz"}, default="npz")
    target = output or Path(f"{name}.npz")
    features = export_features(features_dir, name, encoder, target, without_ids, overwrite)
    to_stream = output is not None and is_stream(output)
    say(f"{target}: {len(features):,} features of {features.dim} dimensions", err=to_stream)


@command(app)
def push(
    repository: str = argument(
        ..., "Data set repository on the Hugging Face hub.", metavar="ORG/NAME"
    ),
    names: Names = argument(None, _SETS),
    encoder: str | None = ENCODER,
    without_ids: bool = option(
        False, "Publish numbers instead of sample ids, which are file names.", _WITHOUT_IDS
    ),
    i_may: bool = option(
        False, "Also publish sets and word lists that are not built in, if allowed.", "--i-may"
    ),
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Publish cached features, never images.

    [bold]zsntta cache push USER/REPO shapes[/bold]
    """
    from zsntta_cli.cache import sharing

    paths, commit = sharing.push(
        repository, features_dir, names or (), encoder, without_ids=without_ids, may=i_may
    )
    for path in paths:
        say(f"{path}: published")
    say(f"to download them: zsntta cache pull {repository}@{commit}")


@command(app)
def pull(
    repository: str = argument(
        ..., "Data set repository on the Hugging Face hub.", metavar="ORG/NAME[@REVISION]"
    ),
    names: Names = argument(None, _SETS),
    encoder: str | None = ENCODER,
    features_dir: Path = FEATURES_DIR,
) -> None:
    """Download published features.

    [bold]zsntta cache pull USER/REPO shapes[/bold]

    Every file is verified, and existing files are never replaced.
    """
    from zsntta_cli.cache import sharing
    from zsntta_cli.progress import ConsoleReporter

    note = ConsoleReporter().note
    for features, is_new in sharing.pull(repository, features_dir, names or (), encoder, note):
        images, words = len(features), len(features.class_names)
        facts = counted(images, "image") if images else counted(words, "word")
        say(f"{features.path}: {facts}" + ", already exists" * (not is_new))


def _say_nothing(features_dir: Path, encoder: str | None) -> None:
    say(f"nothing in {features_dir / (encoder or '')}: {_NOTHING_CACHED}.", err=True)

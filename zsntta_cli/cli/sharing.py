"""`zsntta cache push` and `pull`: features to a repository of the hub, and from there."""

from typing import Annotated

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import EncoderName, FeaturesDir, argument, option
from zsntta_cli.errors import counted
from zsntta_cli.settings import FEATURES

Repository = Annotated[
    str, argument(metavar="ORG/NAME", help="Data set repository of the Hugging Face hub.")
]


def push(
    repository: Repository,
    name: Annotated[
        list[str] | None, option("--set", metavar="SET", help="A cached set. [all]")
    ] = None,
    encoder: EncoderName = None,
    without_ids: Annotated[
        bool,
        option(
            "--without-ids", help="Publish numbers instead of sample ids, which are names of files."
        ),
    ] = False,
    i_may: Annotated[
        bool,
        option("--i-may", help="Also publish sets whose terms do not permit everybody to do so."),
    ] = False,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Publish cached features, never images.

    [bold]zsntta cache push USER/REPO --set shapes[/bold]
    """
    from zsntta_cli import sharing

    paths, commit = sharing.push(
        repository, features_dir, name or (), encoder, without_ids=without_ids, may=i_may
    )
    for path in paths:
        say(f"{path}: published")
    say(f"to read them: zsntta cache pull {repository}@{commit}")


def pull(
    repository: Annotated[
        str,
        argument(
            metavar="ORG/NAME[@REVISION]", help="Data set repository of the Hugging Face hub."
        ),
    ],
    names: Annotated[list[str] | None, argument(help="Sets. [all]")] = None,
    encoder: EncoderName = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Fetch published features.

    [bold]zsntta cache pull USER/REPO shapes[/bold]

    Each file is verified, and nothing that is there is replaced.
    """
    from zsntta_cli import sharing
    from zsntta_cli.progress import ConsoleReporter

    note = ConsoleReporter().note
    for features, is_new in sharing.pull(repository, features_dir, names or (), encoder, note):
        images, words = len(features), len(features.class_names)
        facts = counted(images, "image") if images else counted(words, "word")
        say(f"{features.path}: {facts}" + ", there already" * (not is_new))

"""The preview of `zsntta extract --dry-run`: which files are kept, to make, or lack their images.

Nothing is fetched, read or encoded.
"""

from collections.abc import Iterator
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.datasets.names import SetName, noise_name, words_name
from zsntta_cli.errors import counted
from zsntta_cli.extraction.plan import ExtractPlan, named_words, noise_pools, wanted_partners
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.prompts import lists_of


def foresee(plan: ExtractPlan, choice: EncoderChoice, root: Path, overwrite: bool = False) -> str:
    """Count the feature files of a plan, and name those that are not there.

    Raises:
        DatasetError: a set is not known.
    """
    folder, kept = folder_name(choice), 0
    to_make, missing = list[str](), list[str]()
    for name in _names(plan):
        if feature_path(root, folder, name).exists() and not overwrite:
            kept += 1
        else:
            (missing if _lacks_images(name, plan) else to_make).append(name)
    lists = {"to make": to_make, "missing": missing}
    parts = [
        f"{len(names)} {what}" + (f" ({', '.join(names)})" if names else "")
        for what, names in lists.items()
    ]
    total = counted(kept + len(to_make) + len(missing), "feature file")
    where = f": zsntta datasets show {missing[0]} says where from" if missing else ""
    return f"{root / folder}: {total}: {kept} kept, {', '.join(parts)}{where}"


def _names(plan: ExtractPlan) -> Iterator[str]:
    """The names of the feature files of a plan, in the order in which they would be made."""
    sets = [SetName.parse(spec) for spec in plan.datasets]
    roles = [None if name.says_where else datasets.known(str(name)).role for name in sets]
    yield from map(str, sets)
    for words in map(str, plan.words):
        yield from map(words_name, lists_of(words) or [named_words(words)[0]])
    pools = noise_pools(plan, sum(role != "ood" for role in roles))
    yield from (noise_name(noise_type) for noise_type, _ in pools)
    yield from wanted_partners(plan)


def _lacks_images(name: str, plan: ExtractPlan) -> bool:
    """Whether the images of a set have to be fetched by hand first."""
    entry = datasets.CATALOGUE.get(SetName.parse(name).base)
    if entry is None or not entry.layout or entry.downloads:
        return False
    given = {str(SetName.parse(spec)) for spec in plan.datasets if SetName.parse(spec).says_where}
    return name not in given and not datasets.is_there(name, plan.data_root)

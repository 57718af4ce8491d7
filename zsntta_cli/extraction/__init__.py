"""Encode data sets into feature files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zsntta_cli.extraction.extractor import Extracted
    from zsntta_cli.progress import Reporter


def extract(
    *sets: str,
    model: str = "ViT-B-16",
    pretrained: str = "openai",
    precision: str = "fp32",
    device: str = "auto",
    data_root: str | Path = "data",
    features_dir: str | Path = "features",
    words: Sequence[str | Path] = (),
    limit: int | None = None,
    prompts: Sequence[str] = (),
    noise: Sequence[str] | None = None,
    noise_count: int | None = None,
    partners: bool = True,
    batch_size: int = 128,
    skip_broken: bool = False,
    overwrite: bool = False,
    as_shown: bool = False,
    store: str = "float16",
    reporter: "Reporter | None" = None,
) -> "list[Extracted]":
    """Encode data sets once, as `zsntta extract` does: known sets, NAME=PATH, or the hub's.

    Return the result for each set, in order; its `path` is the feature file. Without a `reporter`
    nothing is printed.

    Raises:
        ZsnttaError: the error with which the command would end.
    """
    from zsntta_cli.extraction import plan
    from zsntta_cli.progress import Reporter
    from zsntta_cli.settings import EncoderChoice, ExtractSettings

    wanted = plan.ExtractPlan(
        sets, Path(data_root), tuple(words), limit, tuple(prompts),
        None if noise is None else tuple(noise), noise_count, partners, as_shown=as_shown,
    )  # fmt: skip
    settings = ExtractSettings(
        batch_size, skip_broken=skip_broken, overwrite=overwrite, store=store, device=device,
        features_dir=Path(features_dir),
    )  # fmt: skip
    choice = EncoderChoice(model, pretrained, precision)
    return list(plan.extract(wanted, choice, settings, reporter or Reporter()))

"""Options of `zsntta detect` to what it is asked for."""

from zsntta_cli.cli.command import say
from zsntta_cli.cli.detection.options import (
    DecisionOptions,
    ImageOptions,
    ResultOptions,
)
from zsntta_cli.detection.class_lists import read_classes, typed_classes
from zsntta_cli.detection.flags import Flag
from zsntta_cli.detection.request import (
    DecisionRule,
    Images,
    Request,
)
from zsntta_cli.errors import short


def request_of(
    images: ImageOptions,
    decision: DecisionOptions,
    result: ResultOptions,
) -> Request:
    """What is asked for: SettingsError where it will not do."""
    return Request(
        images=Images(
            sources=tuple(images.sources or ()),
            set_name=images.set_name,
            fps=images.fps,
            all_folders=images.all_folders,
            without=(result.copy_to,) if result.copy_to else (),
        ),
        classes=_classes(images),
        class_photos=images.class_photos,
        prompt=images.prompt,
        rule=DecisionRule(
            method=decision.method,
            score=decision.score,
            flag=Flag.parse(decision.flag),
            clean=decision.clean,
            decide=decision.decide,
            seed=decision.seed,
            others=decision.others,
        ),
    )


def _classes(images: ImageOptions) -> tuple[str, ...]:
    """The class names that are given; none where the set or photos have them."""
    if images.classes_file:
        return read_classes(images.classes_file)
    names = () if images.classes is None else typed_classes(images.classes)
    if len(names) == 1 and " " in names[0]:
        say(f"note: '{short(names[0])}' is one class: commas separate names.", err=True)
    return names

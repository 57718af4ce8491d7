"""OpenMetrics text, which Prometheus and others scrape: written by hand, as it is short."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from owner import Owner

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Requests = Mapping[tuple[str, int], int]  # by path and status


class Family(NamedTuple):
    """A metric: its samples by their labels."""

    name: str
    kind: str  # counter or gauge
    help: str
    samples: Mapping[str, float]  # labels as they are written: 'path="/health"', or nothing


def openmetrics(owner: Owner, requests: Requests) -> str:
    """All that the service counts, as text."""
    lines = (line for family in _families(owner, requests) for line in _lines(family))
    return "".join(f"{line}\n" for line in (*lines, "# EOF"))


def _lines(family: Family) -> Iterator[str]:
    yield f"# TYPE {family.name} {family.kind}"
    yield f"# HELP {family.name} {family.help}"
    name = family.name + ("_total" if family.kind == "counter" else "")
    for labels, value in family.samples.items():
        yield f"{name}{{{labels}}} {value!r}" if labels else f"{name} {value!r}"


def _families(owner: Owner, requests: Requests) -> Iterator[Family]:
    now = owner.now
    images = {
        f'answer="{answer}",learned="{str(learned).lower()}"': owner.images[answer, learned]
        for answer in ("noise", "unsure", "clean")
        for learned in (True, False)
    }
    asked = {f'path="{path}",status="{code}"': count for (path, code), count in requests.items()}
    errors = sum(count for (_, code), count in requests.items() if code >= 400)
    yield Family("zsntta_images", "counter", "Images that were decided on.", images)
    yield Family("zsntta_requests", "counter", "Requests that were answered.", asked)
    yield Family("zsntta_errors", "counter", "Answers with a status of 400 or more.", {"": errors})
    yield from _plain(
        "counter",
        zsntta_learning_seconds=("Time spent in updates.", owner.seconds_learning),
        zsntta_saves=("State files that were written.", owner.saves),
        zsntta_failed_saves=("State files that could not be written.", owner.failed_saves),
    )
    yield from _plain(
        "gauge",
        zsntta_seen=("Images that the detector learned from.", now.seen),
        zsntta_labelled=("Images that a person said something of.", now.labelled),
        zsntta_adapted=("1 where the method's own rule decides.", int(now.stage == "adapted")),
        zsntta_evidence=("What speaks for noise of another kind, 0 to 1.", now.evidence),
        zsntta_threshold=("Threshold of the last image that taught.", now.threshold),
        zsntta_unsaved=("Images and answers that a crash would take.", owner.unsaved),
        zsntta_last_save_timestamp_seconds=("When the state was written.", owner.last_save),
    )


def _plain(kind: str, **values: tuple[str, float | None]) -> Iterator[Family]:
    """Metrics of one number each; one that is not known is left out."""
    for name, (text, value) in values.items():
        if value is not None:
            yield Family(name, kind, text, {"": value})

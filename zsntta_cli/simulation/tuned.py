"""The files that keep TPT's answers for the images of a run; no torch.

If all answers that a stream needs are kept, a run of TPT is a replay. Otherwise it goes live, and
its answers are kept as they are computed.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.identity import SAME_ENCODER
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.live.settings import BY_IMAGE
from zsntta_cli.methods.live.tuned import AnswerFile, TunedStream, is_known
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library, Sources
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream

CACHED_ANSWERS = "cached answers"  # what a record names as the device of a replay of TPT
_TPT = "tpt"
_ASKED = ("views", "keep", "augmix", "learning_rate", "steps")  # of TPT's settings
_TUNED_ON = {"gt": (ID,), "normal": (ID, OOD), "all": (ID, OOD, NOISE)}  # kinds of images


def tuned_stream(sources: Sources, stream: Stream, data: StreamData) -> TunedStream | None:
    """A stream with the answers that are kept; None for a run whose answers are not kept."""
    if (files := _answer_files(sources)) is None:
        return None
    run, clean, rows = sources.run, truly_clean(sources, stream), sources.rows(stream)
    return TunedStream(data, run.options, run.threshold, clean, [*files.values()], rows)


def _answer_files(sources: Sources) -> dict[int, AnswerFile] | None:
    """The files of the answers for the images of a stream, by the kind of the images.

    They depend on all that is asked here, and on the features of the images. The digest of the ID
    set's text features covers the class names, and how the features are read.
    """
    run, encoder = sources.run, sources.id_set.identity
    if run.method != _TPT or run.options.views_by != BY_IMAGE:
        return None
    asked = {
        "text": sources.digests()[f"text/{run.id_set}"], "prompt": run.prompt,
        "encoder": {key: encoder.get(key) for key in SAME_ENCODER},
        "settings": {name: getattr(run.options, name) for name in _ASKED},
        "revision": METHODS[_TPT].revision,
    }  # fmt: skip
    return {
        kind: AnswerFile(file.path, asked, file.digest, len(file))
        for kind, file in sources.files.items()
    }


def truly_clean(sources: Sources, stream: Stream) -> NDArray[np.bool_] | None:
    """The mask (T,) of ID samples, which only the gt pipeline gets."""
    return stream.kind == ID if sources.run.flat().get("pipeline") == "gt" else None


def live_among(root: Path, runs: Iterable[RunSettings]) -> set[RunSettings]:
    """The runs that need the encoder: of live methods whose answers are not all kept.

    All answers means the answers for every image of the sets that the pipeline may tune on; a
    stream that needs only some of them may be a replay, too.
    """
    library = Library(root, rows=False)
    return {run for run in runs if METHODS[run.method].live and not _is_answered(run, library)}


def _is_answered(run: RunSettings, library: Library) -> bool:
    if isinstance(library.look(run), Exception):
        return False
    files = _answer_files(library.sources(run))
    return files is not None and all(
        is_known(files[kind].read()).all()
        for kind in _TUNED_ON[run.options.pipeline]
        if kind in files
    )

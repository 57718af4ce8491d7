"""`zsntta extract --tpt`: compute TPT's answers for all images of sets, each once, on every device.

It keeps the answers that a live run keeps (tuned.py), but for all images and not only those of one
stream: then every run of TPT on these sets is a replay. After a kill it continues where it was.
"""

import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli import datasets
from zsntta_cli.cache.answers import Answers, RowAnswers
from zsntta_cli.cache.features import DATASET, FeatureSet
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_header
from zsntta_cli.errors import ZsnttaError, counted
from zsntta_cli.extraction.jobs import Advance
from zsntta_cli.extraction.parts import locked
from zsntta_cli.extraction.plan import Failures, devices
from zsntta_cli.extraction.processes import Processes
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.methods.live.tpt import tuned_answers
from zsntta_cli.methods.scores import ZeroShot
from zsntta_cli.progress import Reporter, Silent
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation import live_session
from zsntta_cli.simulation.live import LiveSession, images_of
from zsntta_cli.simulation.runs import RunSettings, build_run
from zsntta_cli.simulation.simulator import raw_features
from zsntta_cli.simulation.sources import Library
from zsntta_cli.simulation.tuned import KeptTuning, answer_file

_PART = 16  # images that a process hands back at a time


@dataclass(frozen=True)
class TptJob:
    """A set of images and what TPT is asked about them; small, so that it can be sent."""

    root: Path  # of feature files
    run: RunSettings  # of TPT on the ID set whose classes are asked for
    name: str  # of the images' set
    live: LiveSettings
    threads: int = 0  # of torch: answers by another number differ in their last bits


@dataclass(frozen=True)
class AnsweredSet:
    """The result for one set."""

    path: Path
    images: int
    tuned: int  # in this run: 0 where all answers were there already
    seconds: float

    @property
    def line(self) -> str:
        """A line about the result."""
        if not self.tuned:
            return f"{self.path}: answers of TPT for {counted(self.images, 'image')}, there already"
        return (
            f"{self.path}: answers of TPT for {counted(self.images, 'image')}, {self.tuned:,} of "
            f"them in {self.seconds:.1f} s ({self.tuned / max(self.seconds, 1e-9):,.2f} images/s)"
        )


def extract_tpt(
    root: Path,
    asked: Iterable[tuple[RunSettings, str]],
    live: LiveSettings,
    reporter: Reporter,
    failures: Failures | None = None,
) -> Iterator[AnsweredSet]:
    """Ask TPT about all images of some sets, each set by the classes of a run's ID set.

    `live.device` may name several devices: each takes a part of the images. With `failures` a set
    that fails is put there, and the others go on.

    Raises:
        StoreError: features are missing, or were not made here. DatasetError: images are missing.
    """
    names = devices(live.device)
    workers = Processes(names, answer_parts) if len(names) > 1 else None
    live = replace(live, device=live.device.split(",")[0])
    try:
        for run, name in asked:
            try:
                answered = _answer_set(TptJob(root, run, name, live), workers, reporter)
            except ZsnttaError as error:
                if failures is None:
                    raise
                failures[f"TPT on {name}"] = error
            else:
                yield answered
    finally:
        if workers:
            workers.close()


def sets_to_ask(
    root: Path, folder: str, names: Sequence[str], named: Sequence[str], prompts: Sequence[str] = ()
) -> list[tuple[RunSettings, str]]:
    """The questions of `extract --tpt`: a run of each ID set, and a set of images.

    The images are those of each ID set, of its OOD partners, and of the OOD sets and the noise that
    the user has named. Without prompts the ID set's default prompt is used.
    """
    headers = {name: read_header(feature_path(root, folder, name)) for name in names}
    id_sets = [n for n in names if headers[n].kind == DATASET and headers[n].templates]
    asked = []
    for id_set in id_sets:
        wanted = {id_set, *datasets.partners(id_set), *(n for n in named if n not in id_sets)}
        for prompt in prompts or [datasets.default_prompt(id_set)]:
            run = build_run("tpt", folder, id_set, None, prompt, ratio=0.0)
            asked += [(run, name) for name in names if name in wanted]
    return asked


def _answer_set(job: TptJob, workers: Processes | None, reporter: Reporter) -> AnsweredSet:
    library = Library(job.root)
    source = library.read(job.run.encoder, job.name)
    file = answer_file(job.root, job.run, source)
    with locked(file.path, reporter.note), closing(KeptTuning([file], [len(source)], True)) as kept:
        todo = np.flatnonzero(~kept.pool.is_answered)
        parts = [todo[start : start + _PART] for start in range(0, len(todo), _PART)]
        started = time.monotonic()
        with reporter.track(f"{job.name}: TPT", len(source)) as advance:
            advance(len(source) - len(todo))
            for rows, answers in _answer(job, parts, workers, advance):
                for i, row in enumerate(rows.tolist()):
                    kept.pool.add(row, answers.at(np.array([i])))
    return AnsweredSet(file.path, len(source), len(todo), time.monotonic() - started)


def _answer(
    job: TptJob, parts: Sequence[NDArray[np.int64]], workers: Processes | None, advance: Advance
) -> Iterator[RowAnswers]:
    """The answers for parts in any order, from this process or from one process for each device."""
    if not parts:
        return iter(())
    if workers and len(parts) > 1:
        return workers.encode(replace(job, threads=torch.get_num_threads()), parts, advance)
    return answer_parts(pickle.dumps(job), job.live.device, parts, advance)


def answer_parts(
    content: bytes, device: str, parts: Sequence[NDArray[np.int64]], advance: Advance
) -> Iterator[RowAnswers]:
    """Answer parts of a pickled job; images and encoder are loaded at the job's first part."""
    job: TptJob = pickle.loads(content)
    data = _load(content, device)
    with closing(tuned_answers(data, job.run.options, np.concatenate(parts))) as answers:
        for rows in parts:
            of_part = []
            for _ in rows:
                of_part.append(next(answers)[1])
                advance(1)
            yield rows, Answers.joined(of_part)


@lru_cache(maxsize=1)
def _load(content: bytes, device: str) -> LiveData:
    """The images of a set as a stream, and the encoder."""
    job: TptJob = pickle.loads(content)
    session = _session(replace(job.live, device=device), job.threads)
    library, run = Library(job.root), job.run
    id_set, source = (library.read(run.encoder, name) for name in (run.id_set, job.name))
    encoder = session.encoder(id_set)
    images = images_of(source, session.settings, encoder.image_size)
    return LiveData(
        _whole_set(source, library, run), encoder, images, id_set.class_names, run.prompt,
        session.settings.workers,
    )  # fmt: skip


def _whole_set(source: FeatureSet, library: Library, run: RunSettings) -> StreamData:
    """All images of a set in order; their zero-shot scores are not needed."""
    text = library.text(run.encoder, run.prompt, run.id_set)
    scale = library.scale(run.encoder, run.prompt, run.id_set)
    unscored = ZeroShot(np.empty(0, np.int32), np.empty(0))
    pool = Pool(raw_features([source]), text, scale, unscored)
    return StreamData(pool, np.arange(len(source)), np.zeros(len(source), bool))


@lru_cache(maxsize=1)
def _session(settings: LiveSettings, threads: int) -> LiveSession:
    """The session that keeps the encoder from set to set."""
    session = live_session(settings, Silent())
    if threads:
        torch.set_num_threads(threads)
    return session

"""The one owner of a detector: it decides, learns, counts and saves. No web here, and no torch.

Whatever learns comes one after another, and the number of images seen afterwards tells the order.
What was learned is written to the state file, whole or not at all: after so many images, after so
many seconds, and at the end.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import NoiseDetector, OnlineDetector, Verdicts
from zsntta_cli.cache.features import difference
from zsntta_cli.cache.hdf5 import read_features
from zsntta_cli.detection.owners import owned
from zsntta_cli.errors import StoreError

Rows = NDArray[np.float32]  # raw image features (N, D)


class Now(NamedTuple):
    """What is known after an update: readers take it whole, and wait for nobody."""

    seen: int
    labelled: int
    stage: str
    evidence: float | None
    threshold: float | None  # of the last image; before the first there is none


@contextlib.contextmanager
def opened(path: Path) -> Iterator[OnlineDetector]:
    """The detector of a state file that nobody else writes until we leave.

    Raises:
        StoreError: there is none, it is broken, or another process writes it.
    """
    if not path.is_file():
        raise StoreError(f"there is no state {path}: save a detector to it first (README.md).")
    with owned(path):
        yield _loaded(path)


def _loaded(path: Path) -> OnlineDetector:
    """On features: of a state that knows its encoder, this goes on being said in it."""
    try:
        return NoiseDetector.load(path).online
    except StoreError:
        return OnlineDetector.load(path)


class Owner:
    """A detector that several threads ask, and the file that it is kept in."""

    def __init__(self, detector: OnlineDetector, path: Path, every: int, seconds: float) -> None:
        self.detector, self.path = detector, path
        self._every, self._seconds = every, seconds
        self._turn, self._saving, self._counting = (threading.Lock() for _ in range(3))
        self._due, self._ended = threading.Event(), False
        self._learned = self._saved = 0  # images and answers since the start
        self.images: Counter[tuple[str, bool]] = Counter()  # by answer, and whether they taught
        self.saves = self.failed_saves = 0
        self.last_save: float | None = None  # seconds since 1970
        self.save_error: str | None = None
        self.seconds_learning = 0.0
        self.now = self._look(None)

    def learn(self, rows: Rows) -> tuple[int, Verdicts]:
        """Decide on images, then learn from them; gives how many were seen then, too."""
        with self._turn:
            began = time.perf_counter()
            verdicts = self.detector.update(rows)
            self.seconds_learning += time.perf_counter() - began
            self.now = self._look(float(verdicts.threshold[-1]))
            self._changed(len(rows))
            seen = self.now.seen
        self._count(verdicts, learned=True)
        return seen, verdicts

    def judge(self, rows: Rows) -> Verdicts:
        """Decide on images by what was learned; nothing changes, and nobody is waited for."""
        verdicts = self.detector.predict(rows)
        self._count(verdicts, learned=False)
        return verdicts

    def hear(self, rows: Rows, noise: bool) -> Now:
        """Learn from a person that images are noise, or that they are not."""
        with self._turn:
            self.detector.feedback(rows, np.full(len(rows), noise))
            self.now = self._look(self.now.threshold)
            self._changed(len(rows))
            return self.now

    def warm(self, path: Path) -> None:
        """Learn from a feature file's images, in an order drawn at random, before anybody asks.

        Raises:
            StoreError: it is of another encoder, or not to be read.
        """
        features, here = read_features(path), self.detector
        if here.identity and (other := difference(features.identity, here.identity)):
            raise StoreError(
                f"{path} is of another encoder than {self.path} ({other.key}: {other.one}, there "
                f"{other.other}): extract it with that one."
            )
        if features.normalized != here.normalized:
            raise StoreError(f"{path} and {self.path} differ in whether features have unit norm.")
        order = np.random.default_rng(0).permutation(len(features))
        for start in range(0, len(order), 1024):
            self.learn(features.image_features[order[start : start + 1024]].astype(np.float32))

    def _look(self, threshold: float | None) -> Now:
        detector, evidence = self.detector, self.detector.evidence
        value = None if evidence is None else float(evidence.value)
        return Now(detector.seen, detector.labelled, detector.stage, value, threshold)

    def _count(self, verdicts: Verdicts, learned: bool) -> None:
        with self._counting:
            self.images.update((answer, learned) for answer in verdicts.answer)

    def _changed(self, count: int) -> None:
        self._learned += count
        if self.unsaved >= self._every:
            self._due.set()

    @property
    def unsaved(self) -> int:
        """How many images and answers a crash would take."""
        return self._learned - self._saved

    def save(self) -> None:
        """Write the state file: StoreError where it cannot be, and the last one stays."""
        with self._saving:
            learned = self._learned  # what comes while it is written is the next one's
            try:
                self.detector.save(self.path)
            except Exception as error:
                self.failed_saves, self.save_error = self.failed_saves + 1, str(error)
                raise
            self._saved, self.save_error = learned, None
            self.saves, self.last_save = self.saves + 1, time.time()

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Save now and then, beside those who ask, and once more at the end."""
        saver = threading.Thread(target=self._save_when_due, daemon=True)
        saver.start()
        try:
            yield
        finally:
            self._ended = True
            self._due.set()
            saver.join()
            if self.unsaved:
                self.save()

    def _save_when_due(self) -> None:
        while not self._ended:
            self._due.wait(self._seconds)
            self._due.clear()
            if self.unsaved and not self._ended:
                with contextlib.suppress(Exception):  # `save_error` has it; it is tried again
                    self.save()

    def health(self) -> dict[str, Any]:
        """What it is and how it is, for people and for workers."""
        here = self.detector
        return {
            "status": "not saving" if self.save_error else "ok",
            "save_error": self.save_error,
            **self.now._asdict(),
            "unsaved": self.unsaved,
            "method": here.method,
            "dim": int(here.text_features.shape[1]),
            "class_names": list(here.class_names),
            "encoder": dict(here.identity),
        }

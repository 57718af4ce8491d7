"""How a set in parts is judged from the command line: in this process, or in several."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.runs import by_part
from zsntta_cli.detection.runs.by_part import JudgedPart, PartsRequest
from zsntta_cli.detection.runs.detecting import Batch, DetectRun, RowSink
from zsntta_cli.detection.verdicts import VerdictAnswer
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Silent
from zsntta_cli.report.verdict_files import rows_file
from zsntta_cli.settings import EncoderChoice


def judge_parts(
    asked: PartsRequest, encoding: Encoding, only: VerdictAnswer | None = None
) -> Iterator[JudgedPart]:
    """Judge the parts that are asked for, in order; those of several processes as they end.

    Raises:
        SettingsError: the set is not in parts. StoreError: features, a state or a verdict file that
            cannot be read or written.
    """
    with encoding.store:
        if asked.request.on_arrival:
            yield from by_part.judge_in_order(asked, encoding, lambda path: _Rows(path, only))
            return
        numbers = by_part.calibrate(asked, encoding)
        if asked.jobs > 1 and len(numbers) > 1:
            yield from _judge_apart(asked, encoding, only, numbers)
            return
        for index in numbers:
            yield by_part.judge_part(asked, encoding, index, lambda path: _Rows(path, only))


def _judge_apart(
    asked: PartsRequest, encoding: Encoding, only: VerdictAnswer | None, numbers: Sequence[int]
) -> Iterator[JudgedPart]:
    """Judge parts in several processes."""
    jobs, processes = min(asked.jobs, len(numbers)), get_context("spawn")
    given = LoadedScripts(), asked, encoding.choice, encoding.root, only
    workers = ProcessPoolExecutor(jobs, processes)
    try:
        for future in [workers.submit(_judge_here, *given, index) for index in numbers]:
            yield future.result()
    finally:
        workers.shutdown(cancel_futures=True)


def _judge_here(
    _scripts: LoadedScripts,
    asked: PartsRequest,
    choice: EncoderChoice,
    root: Path,
    only: VerdictAnswer | None,
    index: int,
) -> JudgedPart:
    """Judge a part as a process of its own."""
    encoding = Encoding(choice, root, "cpu", 1, Silent())
    with encoding.store:
        return by_part.judge_part(asked, encoding, index, lambda path: _Rows(path, only))


class _Rows(RowSink):
    """A verdict file, of one answer alone where that is wanted."""

    def __init__(self, path: Path, only: VerdictAnswer | None) -> None:
        self._file, self._only = rows_file(path), only

    def open(self, run: DetectRun) -> None:
        """Begin."""
        self._file.open(run)

    def take(self, batch: Batch) -> None:
        """Take the next rows."""
        self._file.take(batch.only(self._only) if self._only else batch)

    def complete(self) -> None:
        """Know that all rows were taken."""
        self._file.complete()

    def close(self) -> None:
        """Write the file: StoreError where that cannot be done."""
        self._file.close()

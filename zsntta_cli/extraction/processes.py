"""Encode on several devices of this machine, with one process for each."""

import multiprocessing
import pickle
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from zsntta_cli.children import ctrl_c_ignored, end_with_parent
from zsntta_cli.errors import EncoderError, ZsnttaError
from zsntta_cli.extraction.jobs import Advance, work_on
from zsntta_cli.plugins import LoadedScripts


@dataclass(frozen=True)
class _Worker:
    device: str
    process: SpawnProcess
    connection: Connection


class Processes:
    """One process for each device, each with its own encoder, which is kept from set to set."""

    def __init__(self, names: Sequence[str]) -> None:
        self._devices, self._workers = names, list[_Worker]()

    def encode(
        self, job: Any, parts: Sequence[Any], advance: Advance
    ) -> Generator[Any, None, None]:
        """The features of parts in any order.

        Raises:
            ZsnttaError: a worker raised it. EncoderError: a worker died.
        """
        content, count = pickle.dumps(job), min(len(self._devices), len(parts))
        try:
            self._start(count)
            busy = {worker.connection: worker for worker in self._workers[:count]}
            for i, worker in enumerate(busy.values()):
                with _alive(worker):
                    worker.connection.send((content, parts[i::count]))
            while busy:
                for connection in wait(list(busy)):
                    assert isinstance(connection, Connection)
                    with _alive(busy[connection]):
                        message = connection.recv()
                    if message is None:  # its share is done
                        del busy[connection]
                    elif isinstance(message, int):
                        advance(message)
                    elif isinstance(message, ZsnttaError):
                        raise message
                    else:
                        yield message
        except BaseException:  # Ctrl-C too: no worker goes on with what nobody waits for
            self.close()
            raise

    def close(self) -> None:
        """Stop all workers at once."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers.clear()

    def _start(self, count: int) -> None:
        """Start up to `count` workers; start all anew if one has died since the last job."""
        if not all(worker.process.is_alive() for worker in self._workers):
            self.close()
        context = multiprocessing.get_context("spawn")
        with ctrl_c_ignored():
            for device in self._devices[len(self._workers) : count]:
                connection, end = context.Pipe()
                process = context.Process(
                    target=_serve, args=(LoadedScripts(), device, end), daemon=True
                )
                process.start()
                end.close()
                self._workers.append(_Worker(device, process, connection))


@contextmanager
def _alive(worker: _Worker) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError) as error:
        worker.process.join()
        raise EncoderError(
            f"the process on {worker.device} died (exit code {worker.process.exitcode}; -9 is a "
            f"kill, often for want of memory): what was finished is kept; the same command resumes."
        ) from error


def _serve(_scripts: LoadedScripts, device: str, connection: Connection) -> None:
    """As a worker process, do its share of every job, until it is stopped."""
    end_with_parent()
    while True:
        content, share = connection.recv()
        try:
            for part in work_on(content, device, share, connection.send):
                connection.send(part)
            connection.send(None)
        except ZsnttaError as error:
            connection.send(error)

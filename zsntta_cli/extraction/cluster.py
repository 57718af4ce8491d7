"""Encode parts on a Ray cluster, one task for each part."""

import itertools
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

from zsntta_cli.errors import EncoderError, ZsnttaError
from zsntta_cli.extraction.connection import Connection, last_line, most_cores
from zsntta_cli.extraction.jobs import Advance, Encoded, EncodedPart, EncodingJob, work_on

_IN_FLIGHT = 256  # parts that a cluster has at a time: more than devices, 100 MB of features
_RETRIES = 20  # of a part whose node was lost; one that kills its worker each time must end


class Cluster:
    """The Ray cluster at RAY_ADDRESS, or one started on this machine."""

    def __init__(self) -> None:
        self._connection = Connection()

    def encode(self, job: EncodingJob, parts: Sequence[range], advance: Advance) -> Encoded:
        """The features of parts in any order.

        Raises:
            ZsnttaError: a worker raised it. EncoderError: the cluster cannot be reached or is lost.
        """
        import ray

        try:
            self._connection.open()
            for part in _results(job, parts):
                if isinstance(part, ZsnttaError):
                    raise part
                advance(len(part[0]))
                yield part
        except ray.exceptions.RayError as error:
            self.close()
            raise EncoderError(
                f"the Ray cluster failed ({last_line(error)}): what was finished is kept; the same "
                f"command resumes."
            ) from error
        except BaseException:  # Ctrl-C too: no node goes on with what nobody waits for
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster, or stop the one started on this machine."""
        self._connection.close()


def _results(job: EncodingJob, parts: Sequence[range]) -> Iterator[EncodedPart | ZsnttaError]:
    """The result for each part, in the order in which they end."""
    import ray

    task, content, device = _task(job), pickle.dumps(job), job.encoder["device"]
    upcoming, waiting = iter(parts), list[Any]()
    while True:
        for rows in itertools.islice(upcoming, _IN_FLIGHT - len(waiting)):
            waiting.append(task.remote(content, device, rows))
        if not waiting:
            return
        [done], waiting = ray.wait(waiting)
        yield ray.get(done)


def _task(job: EncodingJob) -> Any:
    """The task that encodes a part: on a GPU, or on as many cores as this process uses."""
    import ray

    if job.encoder["device"] == "cuda":
        return ray.remote(_one_part).options(num_gpus=1, max_retries=_RETRIES)
    cores = min(job.threads, most_cores())
    return ray.remote(_one_part).options(num_cpus=cores, max_retries=_RETRIES)


def _one_part(content: bytes, device: str, rows: range) -> EncodedPart | ZsnttaError:
    """Encode a part as a task; errors that a user can fix are returned, without a traceback."""
    try:
        [part] = work_on(content, device, [rows], lambda _: None)
    except ZsnttaError as error:
        return error
    return part

"""A Ray cluster, a task to a part. The only module that imports ray."""

import itertools
import logging
import os
import pickle
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from zsntta_cli.errors import EncoderError, SettingsError, ZsnttaError
from zsntta_cli.extraction.jobs import Advance, Encoded, EncodedPart, EncodingJob, work_on

_IN_FLIGHT = 256  # parts that a cluster has at a time: more than devices, 100 MB of features
_RETRIES = 20  # of a part whose node was lost; one that kills its worker each time must end


class Cluster:
    """The Ray cluster at RAY_ADDRESS, or one of this machine's own."""

    def __init__(self) -> None:
        if find_spec("ray") is None:
            raise SettingsError("the engine ray needs Ray", remedy="install-ray")
        self._connected = False  # by this engine: a connection of the caller's is left alone

    def encode(self, job: EncodingJob, parts: Sequence[range], advance: Advance) -> Encoded:
        """The features of parts in any order.

        Raises:
            ZsnttaError: what a worker raised. EncoderError: the cluster cannot be reached or is
                lost.
        """
        import ray

        try:
            self._connect()
            for part in _results(job, parts):
                if isinstance(part, ZsnttaError):
                    raise part
                advance(len(part[0]))
                yield part
        except ray.exceptions.RayError as error:
            self.close()
            raise EncoderError(
                f"the Ray cluster failed ({_reason(error)}): what was finished is kept; the same "
                f"command resumes."
            ) from error
        except BaseException:  # Ctrl-C too: no node goes on with what nobody waits for
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster, or stop one of this machine's own."""
        import ray

        if self._connected:
            ray.shutdown()
            self._connected = False

    def _connect(self) -> None:
        import ray

        if ray.is_initialized():
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would phone home
        address = os.environ.get("RAY_ADDRESS") or "local"
        self._connected = True
        try:
            ray.init(
                address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EncoderError(
                f"no Ray cluster at '{address}' ({_reason(error)}): set RAY_ADDRESS, or unset it "
                f"for one on this machine alone."
            ) from error


def _results(job: EncodingJob, parts: Sequence[range]) -> Iterator[EncodedPart | ZsnttaError]:
    """What became of each part, in the order in which they end."""
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
    """What encodes a part: on a GPU, or on as many cores as this process takes."""
    import ray

    if job.encoder["device"] == "cuda":
        return ray.remote(_one_part).options(num_gpus=1, max_retries=_RETRIES)
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    largest = max(int(node["Resources"].get("CPU", 1)) for node in nodes if node["Alive"])
    return ray.remote(_one_part).options(num_cpus=min(job.threads, largest), max_retries=_RETRIES)


def _one_part(content: bytes, device: str, rows: range) -> EncodedPart | ZsnttaError:
    """Encode a part as a task; what a user can mend comes back as a value, without a traceback."""
    try:
        [part] = work_on(content, device, [rows], lambda _: None)
    except ZsnttaError as error:
        return error
    return part


def _reason(error: Exception) -> str:
    """The last line of an error: Ray's are long, and end with what a task raised."""
    return str(error).strip().splitlines()[-1] if str(error).strip() else repr(error)

"""The connection to a Ray cluster, which encoding and whole runs share."""

import contextlib
import logging
import os
from collections.abc import Iterator
from importlib.util import find_spec

from zsntta_cli.errors import EncoderError, SettingsError

_NETWORKED = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # on Linux too, whatever its name says


@contextlib.contextmanager
def connected() -> Iterator[None]:
    """Connect to the Ray cluster at RAY_ADDRESS, or to one that no other machine can reach.

    An existing connection of this process is used, and stays open.

    Raises:
        SettingsError: Ray is not installed. EncoderError: there is no cluster.
    """
    if find_spec("ray") is None:
        raise SettingsError("the engine ray needs Ray: pip install 'zsntta[ray]'")
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would phone home
    address = os.environ.get("RAY_ADDRESS") or "local"
    within = _on_the_loopback() if address == "local" else contextlib.nullcontext()
    try:
        try:
            with within:
                ray.init(
                    address, log_to_driver=False, logging_level=logging.ERROR,
                    include_dashboard=False,
                )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EncoderError(
                f"no Ray cluster at '{address}' ({last_line(error)}): set RAY_ADDRESS, or unset it "
                f"to use this machine alone."
            ) from error
        yield
    finally:  # leave the cluster, or stop the one on this machine
        ray.shutdown()


@contextlib.contextmanager
def _on_the_loopback() -> Iterator[None]:
    """Make Ray and all of its processes listen on 127.0.0.1 only while it starts.

    Otherwise it would listen on every address, and run whatever anybody sends it.
    `_node_ip_address="127.0.0.1"` alone has no effect: Ray replaces it by the machine's own
    address.
    """
    import ray

    constants = ray._private.ray_constants
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    os.environ[_NETWORKED] = "0"  # of the processes that it starts
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        del os.environ[_NETWORKED]


def last_line(error: Exception) -> str:
    """The last line of an error: Ray's errors are long, and end with the task's own error."""
    return str(error).strip().rpartition("\n")[2] or repr(error)


def most_cores() -> int:
    """The number of cores of the largest machine in the connected cluster."""
    import ray

    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return max(int(node["Resources"].get("CPU", 1)) for node in nodes if node["Alive"])

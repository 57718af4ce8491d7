"""The connection to a Ray cluster, which encoding and whole runs share."""

import logging
import os
from importlib.util import find_spec

from zsntta_cli.errors import EncoderError, SettingsError


class Connection:
    """The Ray cluster at RAY_ADDRESS, or one of this machine's own."""

    def __init__(self) -> None:
        """Nothing is connected yet.

        Raises:
            SettingsError: Ray is not installed.
        """
        if find_spec("ray") is None:
            raise SettingsError("the engine ray needs Ray", remedy="install-ray")
        self._is_own = False  # a connection of the caller's is left alone

    def open(self) -> None:
        """Connect, unless this process is connected.

        Raises:
            EncoderError: there is no cluster.
        """
        import ray

        if ray.is_initialized():
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would phone home
        address = os.environ.get("RAY_ADDRESS") or "local"
        self._is_own = True
        try:
            ray.init(
                address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EncoderError(
                f"no Ray cluster at '{address}' ({last_line(error)}): set RAY_ADDRESS, or unset it "
                f"for one on this machine alone."
            ) from error

    def close(self) -> None:
        """Leave the cluster, or stop one of this machine's own."""
        import ray

        if self._is_own:
            ray.shutdown()
            self._is_own = False


def last_line(error: Exception) -> str:
    """The last line of an error: Ray's are long, and end with what a task raised."""
    return str(error).strip().splitlines()[-1] if str(error).strip() else repr(error)


def most_cores() -> int:
    """The cores of the largest machine in the cluster that this process is connected to."""
    import ray

    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return max(int(node["Resources"].get("CPU", 1)) for node in nodes if node["Alive"])

"""Simulate methods on streams, which gives records."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zsntta_cli.progress import Reporter
    from zsntta_cli.settings import LiveSettings
    from zsntta_cli.simulation.live import LiveSession


def live_session(settings: "LiveSettings", reporter: "Reporter | None" = None) -> "LiveSession":
    """A session for live methods on the first device that is named; it imports torch."""
    from zsntta_cli.encoders.clip import wait_passively
    from zsntta_cli.progress import Silent

    wait_passively()
    from zsntta_cli.simulation.live import LiveSession

    first, *_ = settings.device.split(",")
    return LiveSession(replace(settings, device=first), reporter or Silent())


@dataclass(frozen=True)
class LiveDevices:
    """The devices of live runs; calling it gives the session of this process."""

    settings: "LiveSettings"
    reporter: "Reporter | None" = None

    def __call__(self) -> "LiveSession":
        """The session of this process."""
        return live_session(self.settings, self.reporter)

    @property
    def apart(self) -> "list[LiveSettings]":
        """The settings for each of the devices, such as `cuda:0,cuda:1`."""
        return [replace(self.settings, device=name) for name in self.settings.device.split(",")]

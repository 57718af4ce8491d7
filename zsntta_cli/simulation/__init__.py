"""Simulate methods on streams, which gives records; and check whether a method is honest."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zsntta_cli.progress import Reporter
    from zsntta_cli.settings import LiveSettings
    from zsntta_cli.simulation.live import LiveSession


def live_session(settings: "LiveSettings", reporter: "Reporter | None" = None) -> "LiveSession":
    """A session for live methods; it imports torch."""
    from zsntta_cli.encoders.clip import wait_passively
    from zsntta_cli.progress import Reporter

    wait_passively()
    from zsntta_cli.simulation.live import LiveSession

    return LiveSession(settings, reporter or Reporter())


@dataclass(frozen=True)
class LiveDevices:
    """How live runs get their images; calling it gives the session of this process."""

    settings: "LiveSettings"
    reporter: "Reporter | None" = None

    def __call__(self) -> "LiveSession":
        """The session of this process."""
        return live_session(self.settings, self.reporter)

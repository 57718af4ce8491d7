"""Simulate methods on streams, which gives records; and check whether a method is honest."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zsntta_cli.progress import Reporter
    from zsntta_cli.settings import LiveSettings
    from zsntta_cli.simulation.live import LiveSession


@dataclass(frozen=True)
class LiveDevices:
    """How live runs get their images; calling it gives a session, which imports torch."""

    settings: "LiveSettings"
    reporter: "Reporter | None" = None

    def __call__(self) -> "LiveSession":
        """A session for live methods."""
        from zsntta_cli.encoders.clip import wait_passively
        from zsntta_cli.progress import Reporter

        wait_passively()
        from zsntta_cli.simulation.live import LiveSession

        return LiveSession(self.settings, self.reporter or Reporter())

"""Streams x methods -> records."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zsntta_cli.progress import Reporter
    from zsntta_cli.settings import LiveSettings
    from zsntta_cli.simulation.live import LiveSession


def live_session(settings: "LiveSettings", reporter: "Reporter | None" = None) -> "LiveSession":
    """What live methods run in; it imports torch."""
    from zsntta_cli.encoders.clip import wait_passively
    from zsntta_cli.progress import Silent

    wait_passively()
    from zsntta_cli.simulation.live import LiveSession

    return LiveSession(settings, reporter or Silent())

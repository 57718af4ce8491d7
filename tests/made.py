"""What several tests make or look at."""

from zsntta_cli.methods import METHODS


def decisions(data, settings):
    """What the method of a run decides; of a live one, an iterator of its parts."""
    run = METHODS[settings.method].load()
    return run(data, settings.options, settings.threshold)

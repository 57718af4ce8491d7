"""The methods: a file each, `run(data, settings) -> Decisions`; a new one is a line in METHODS."""

from zsntta_cli.methods import adand, zs_clip
from zsntta_cli.methods.base import Method

METHODS: dict[str, Method] = {
    "zs-clip": zs_clip.run,
    "adand": adand.run,
}

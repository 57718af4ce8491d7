"""Methods that pass images through an encoder and change it: a file each, a line in LIVE_METHODS.

`run(data, settings)` yields its decisions on the next items of the stream, in order, as soon as it
has them; what it changed of the encoder is as it was when it ends. Importing this imports torch.
"""

from zsntta_cli.live import adand_tent, sotta, tent, tpt
from zsntta_cli.live.base import LiveMethod

LIVE_METHODS: dict[str, LiveMethod] = {
    "tent": tent.run,
    "sotta": sotta.run,
    "tpt": tpt.run,
    "adand+tent": adand_tent.run,
}

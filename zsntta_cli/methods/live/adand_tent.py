"""AdaND with Tent as its classifier (appendix: AdaND is plug-and-play).

The noise detector is AdaND's: it works on the frozen encoder's features, so its decisions are those
of `adand` on the same stream. From its N-th step on, the samples that it calls clean update Tent,
a batch of the stream at a time; until then, and for what it calls noise, the class is frozen
CLIP's, from the cache.
"""

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zsntta_cli.methods import adand
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live.base import LiveData, in_batches, zero_shot_scores
from zsntta_cli.methods.live.tent import adaptable
from zsntta_cli.methods.settings import AdaNDTentSettings
from zsntta_cli.settings import ThresholdSettings


def run(
    data: LiveData, options: AdaNDTentSettings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item: what the detector does not call clean costs no encoder pass."""
    decisions = adand.run(data.stream, options, threshold)
    decisions = replace(decisions, class_index=decisions.class_index.copy())
    assert decisions.is_noise is not None
    assert decisions.detector_threshold is not None
    adapts = ~np.isnan(decisions.detector_threshold) & ~decisions.is_noise & ~data.stream.injected
    batches = in_batches(np.arange(len(data)), options.tent_batch_size)
    clean = [batch[adapts[batch]] for batch in batches]
    loaded = data.batches([items for items in clean if len(items)])
    with adaptable(data, options.tent) as tent:
        for batch, items in zip(batches, clean, strict=True):
            if len(items):
                _, images = next(loaded)
                everything = np.ones(len(items), bool)
                class_index, _ = zero_shot_scores(tent.predict(images, everything))
                decisions.class_index[items] = class_index
                tent.adapt(items, everything)
            yield decisions.part(slice(batch[0], batch[-1] + 1))

"""The methods: a file each, `run(data, settings) -> Decisions`; a new one is a line in METHODS."""

from zsntta_cli.methods import adand, ood_scores, tda, zs_clip
from zsntta_cli.methods.base import Method

METHODS: dict[str, Method] = {
    "zs-clip": zs_clip.run,
    "adand": adand.run,
    "tda": tda.run,
    "adand+tda": tda.run_behind_adand,
    "max-logit": ood_scores.max_logit,
    "energy": ood_scores.energy,
    "mcm": ood_scores.maximum_concept_matching,
    "neglabel": ood_scores.neglabel,
    "clipn": ood_scores.clipn,
}

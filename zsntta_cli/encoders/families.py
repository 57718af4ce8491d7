"""Families of open_clip's models that were tried, with weights of chance, and what they lack."""

from dataclasses import dataclass

from zsntta_cli.settings import EncoderChoice


@dataclass(frozen=True)
class Family:
    """One line of FAMILIES."""

    example: EncoderChoice
    lacks: tuple[str, ...] = ()  # live methods that refuse it
    sigmoid: bool = False  # trained as SigLIP: `--score match` by its own bias
    installs: str = ""  # what its tokenizer needs besides


_TRANSFORMERS = "transformers"
FAMILIES: dict[str, Family] = {
    "MetaCLIP": Family(EncoderChoice("ViT-B-16-quickgelu", "metaclip_400m")),
    "DFN": Family(EncoderChoice("ViT-B-16-quickgelu", "dfn2b")),
    "EVA-CLIP": Family(EncoderChoice("EVA02-B-16", "merged2b_s8b_b131k")),
    "MobileCLIP": Family(EncoderChoice("MobileCLIP-S1", "datacompdr")),
    "ConvNeXt": Family(EncoderChoice("convnext_base_w", "laion2b_s13b_b82k")),
    "CoCa": Family(EncoderChoice("coca_ViT-B-32", "laion2b_s13b_b90k")),
    "CLIPA": Family(
        EncoderChoice("ViT-L-14-CLIPA", "datacomp1b"), ("tpt",), installs=_TRANSFORMERS
    ),
    "SigLIP": Family(EncoderChoice("ViT-B-16-SigLIP", "webli"), ("tpt",), True, _TRANSFORMERS),
    "SigLIP 2": Family(EncoderChoice("ViT-B-16-SigLIP2", "webli"), ("tpt",), True, _TRANSFORMERS),
}

"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from zsntta_cli.settings import EncoderChoice

Model = Annotated[str, typer.Option(help="open_clip model name; 'tiny' is the embedded encoder.")]
Pretrained = Annotated[
    str, typer.Option(help="Weights: open_clip tag, path of a checkpoint, or 'none' (random).")
]
Precision = Annotated[str, typer.Option(help="fp32, fp16 or bf16.")]
FeaturesDir = Annotated[Path, typer.Option(help="Where feature files lie.")]

ENCODER = EncoderChoice()
FEATURES = Path("features")

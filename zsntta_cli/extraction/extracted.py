"""What became of a data set that was to be extracted."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Extracted:
    """What became of one data set."""

    path: Path
    images: int  # or words
    encoded: int  # in this run: 0 where the file was there already
    seconds: float
    skipped: tuple[str, ...] = ()  # sample ids of images that could not be read
    unit: str = "images"

    @property
    def rate(self) -> float:
        """Images a second of this run."""
        return self.encoded / self.seconds if self.seconds else 0.0


def summary(extracted: Extracted) -> str:
    """One line on what became of a set."""
    if not extracted.encoded:
        return f"{extracted.path}: {extracted.images:,} {extracted.unit}, there already"
    line = (
        f"{extracted.path}: {extracted.images:,} {extracted.unit} in {extracted.seconds:.1f} s "
        f"({extracted.rate:,.1f} {extracted.unit}/s), peak memory {_peak_memory() / 2**20:,.0f} MiB"
    )
    if extracted.skipped:
        line += f"; {len(extracted.skipped)} broken left out: {', '.join(extracted.skipped)}"
    return line


def _peak_memory() -> int:
    """Bytes of resident memory that the process has taken at most."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

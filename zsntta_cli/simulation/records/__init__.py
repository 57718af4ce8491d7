"""Results that are kept: a record of each finished run, its curves, and what each item got."""

from pathlib import Path

NAME = "records.sqlite"  # in the features folder


def store_path(root: Path, named: Path | None = None) -> Path:
    """Where results are kept: in the file that is named, or else beside the features."""
    return named or root / NAME

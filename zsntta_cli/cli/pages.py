"""What help pages show first: commands by what they are for, and the options that most need."""

from collections.abc import Mapping

# Every command stands under one heading.
COMMAND_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Study": ("extract", "simulate", "run", "paper", "board", "detect", "demo"),
    "See": ("report", "plot", "cite", "encoders", "datasets", "methods"),
    "Keep": ("cache", "records", "replay"),
}

# The short pages of commands that have very many options, by heading; `-h --all` shows the rest.
SHORT_PAGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "simulate": {
        "What is run": (
            "--method", "--id", "--ood", "--ratio", "--seed", "--order", "--noise", "--limit",
            "--preset", "--prompt", "--set",
        ),
        "On which features": ("--encoder", "--model", "--features-dir", "--features"),
        "What comes out": (
            "--report", "--columns", "--format", "--output", "--scores", "--jobs", "--records",
            "--fresh", "--dry-run", "--help",
        ),
    },
}  # fmt: skip
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "simulate": (
        "zsntta simulate --model tiny --method zs-clip,adand --ood glyphs",
        "zsntta simulate --model tiny --method adand --ratio 0.25,0.5 --seed 0-2",
        "zsntta simulate --model tiny --method adand --output table.tex",
    ),
}

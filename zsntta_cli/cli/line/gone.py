"""Commands, options and values that 0.3 took out, and what replaces each: for one release.

A name is what follows `zsntta` on the line: a command, or a command with an option or its value.
"""

from collections.abc import Sequence

_RESULTS = "zsntta simulate --from FILE runs its records again and compares"
_TUNING = "choose settings in an experiment file with two blocks (docs/experiments.md)"
_PARTS = (
    "with any scheduler zsntta extract --dataset NAME --part 1/64 makes one part, "
    "and zsntta cache join NAME joins them"
)
_WATCH = "run zsntta detect again: features are kept, so it takes seconds"
_ANSWERS = "--review PAGE.html asks the ten questions first, and --learn FILE reads its answers"
_FOLDERS = "--copy-to DIR copies, and --only noise -0 feeds any other tool, such as xargs -0 mv"
_SET_PARTS = "detect without it judges the whole set"
_FRAMES = "name a folder, a video file, or - for paths on standard input"
_CLEAN = "--flag 5% says how many, and NoiseDetector.decide_all in Python takes clean images"
_ORDERS = "the orders are shuffled, class, burst, late, first and dirichlet:G"
_TURNS = "name each set by itself, as in --ood textures,glyphs"
_RATIO = "name each ratio, such as 0.1,0.3,0.7, or natural"
_RIDGE = "ridge has another rule, without this constant (docs/detector.md)"
_RIDGE_SETTINGS = (
    "block", "penalty", "view", "gate", "gate-errors", "apart", "doubt", "clean", "shape",
    "prior-items",
)  # fmt: skip

GONE = {
    **{f"simulate --ridge-{name}": _RIDGE for name in _RIDGE_SETTINGS},
    "board": "zsntta simulate --method all, then zsntta report",
    "replay": _RESULTS,
    "plot critical": "zsntta plot means draws means over pairs, and zsntta report tests them",
    "records bundle": f"zsntta records export --output FILE.json, then {_RESULTS}",
    "records export --toml": f"zsntta records export --output FILE.json, then {_RESULTS}",
    "records export --format toml": f"zsntta records export --output FILE.json, then {_RESULTS}",
    "methods check --features-dir": "zsntta methods check NAME draws features of its own",
    "cache split --images": "two sets of images, or zsntta cache split --id-classes N by classes",
    "simulate --tune": _TUNING,
    "simulate --tune-on": _TUNING,
    "simulate --tune-by": _TUNING,
    "simulate --report-on": _TUNING,
    "simulate --other-features": "--from says by itself which features differ",
    "simulate --force": "--from runs any number of records",
    "simulate --reset": _TURNS,
    "simulate --protocol": "give its --ratio, --order and --block",
    "simulate --order separate": _ORDERS,
    "simulate --order shuffled-blocks": _ORDERS,
    "simulate --order note": _ORDERS,
    "simulate --order classes": _ORDERS,
    "simulate --ratio steps": _RATIO,
    "simulate --ratio ..": _RATIO,
    "simulate --id +": _TURNS,
    "simulate --ood +": _TURNS,
    "simulate --method ecalp": "its authors' accuracies could not be met (docs/methods.md); "
    "zsntta simulate --method lame smooths classes over neighbours",
    "extract --engine submitit": _PARTS,
    "extract --part auto": 'zsntta extract --dataset NAME --part "$SLURM_ARRAY_TASK_ID/64"',
    "extract --plan": _PARTS,
    "extract --rate": _PARTS,
    "extract --wait": _PARTS,
    "cache export --to npy": "--to npz has the same arrays in one file",
    "cache export --to clip-retrieval": "--to parquet has a row for each image",
    "cache export --to torch": "--to safetensors, which safetensors.torch.load_file reads",
    "detect --watch": _WATCH,
    "detect --state": _WATCH,
    "detect --interval": _WATCH,
    "detect --looks": _WATCH,
    "detect --warm": "zsntta detect photos/ more/ decides all of them together",
    "detect --corrections": "--learn FILE gives these images your verdict, and learns from them",
    "detect --judge": "--learn FILE uses corrections, and the page shows which verdicts were wrong",
    "detect --decide": "images are decided together, and paths that come through a pipe (-) as "
    "they arrive",
    "detect --fps": "one frame a second is judged; for more, make a folder of a video's frames",
    "detect --score": "NoiseDetector in Python has score='match', and so has zsntta simulate "
    "--score match",
    "detect --seed": "NoiseDetector.decide_all in Python shows a folder in the order of a seed",
    "detect --clean": _CLEAN,
    "detect --flag fpr=": _CLEAN,
    "detect --keep-folders": "DIR/verdicts.csv says where each copy is from",
    "detect --dry-run": "no original is touched: --copy-to a new folder shows what is copied where",
    "detect --embed": "the page has 600 pictures in it, and loads the others from their files",
    "detect --workers": "a thread for each core, 16 at most, reads images",
    "detect --ask": _ANSWERS,
    "detect --answers": _ANSWERS,
    "detect --raw": _FRAMES,
    "detect --part": _SET_PARTS,
    "detect --jobs": _SET_PARTS,
    "detect --calibrate-on": _SET_PARTS,
    "detect --link-to": _FOLDERS,
    "detect --move-to": _FOLDERS,
    "detect --undo": "copies may be deleted; DIR/verdicts.csv says where moved images were",
}


def gone(*words: str) -> str:
    """What is said of a command, an option or a value that was taken out; nothing of another."""
    name = " ".join(words)
    return f"zsntta {name} is gone: {GONE[name]}" if name in GONE else ""


# What values had in them that are gone: `0.1..0.7`, `textures+glyphs`, `fpr=1%`.
_WITHIN = ("..", "+", "fpr=")


def gone_value(command: Sequence[str], option: str, value: str) -> str:
    """What is said of a value that an option no longer takes; nothing of another.

    A value may have numbers behind its name, as `note:0.1` has.
    """
    forms = (value, value.partition(":")[0], *(mark for mark in _WITHIN if mark in value))
    return next(filter(None, (gone(*command, option, form) for form in forms)), "")

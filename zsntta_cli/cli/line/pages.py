"""What help pages show: commands by what they are for, the options that most need, examples."""

import re
from collections.abc import Mapping
from typing import Any

# Every command stands under one heading.
COMMAND_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Study": ("extract", "simulate", "run", "paper", "detect", "demo"),
    "See": ("report", "plot", "cite", "encoders", "datasets", "methods"),
    "Keep": ("cache", "records"),
}

# The short pages of commands that have very many options, by heading; `-h --all` shows the rest.
SHORT_PAGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "extract": {
        "What is encoded": (
            "--dataset", "--words", "--class-names", "--limit", "--paper",
        ),
        "By which encoder": ("--model", "--pretrained", "--precision", "--prompt", "--device"),
        "Where from, and where to": (
            "--data-root", "--features-dir", "--skip-broken", "--overwrite", "--part", "--dry-run",
            "--help",
        ),
    },
    "simulate": {
        "What is run": (
            "--method", "--id", "--ood", "--ratio", "--seed", "--order", "--noise", "--limit",
            "--preset", "--set",
        ),
        "On which features": ("--model", "--features-dir"),
        "What comes out": (
            "--report", "--columns", "--format", "--output", "--jobs", "--fresh", "--dry-run",
            "--help",
        ),
    },
    "paper": {
        "What is measured": (
            "name", "--published", "--all", "--seed", "--method", "--preset", "--live",
        ),
        "On which features": ("--model", "--encoder", "--features-dir"),
        "What comes out": (
            "--format", "--output", "--jobs", "--fresh", "--dry-run", "--help",
        ),
    },
}  # fmt: skip
# Every command has an example, of which the tests know that it is understood.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": ("zsntta demo", "zsntta help simulate"),
    "datasets": ("zsntta datasets", "zsntta datasets show svhn"),
    "methods": ("zsntta methods", "zsntta methods show adand"),
    "cache": ("zsntta cache list", "zsntta cache show shapes --model tiny"),
    "records": ("zsntta records", "zsntta records list --method adand"),
    "extract": (
        "zsntta extract --dataset cifar10",
        "zsntta extract --model tiny --dataset mine=photos --dataset glyphs",
    ),
    "simulate": (
        "zsntta simulate --model tiny --method zs-clip,adand --ood glyphs",
        "zsntta simulate --model tiny --method adand --ratio 0.25,0.5 --seed 0-2",
        "zsntta simulate --model tiny --method adand --output table.tex",
    ),
    "run": ("zsntta run experiment.toml --jobs 4",),
    "paper": ("zsntta paper 2", "zsntta paper 2,3,fig6 --seeds 5", "zsntta paper 2 --published"),
    "detect": (
        "zsntta detect photos --model tiny --classes cat,dog",
        "zsntta detect photos --classes cat,dog --review review.html",
        "zsntta detect photos --classes cat,dog --learn corrections.jsonl",
    ),
    "demo": ("zsntta demo", "zsntta demo --live"),
    "report": ("zsntta report --output report.html",),
    "plot": ("zsntta plot ratio --method adand,cull --output ratio.pdf",),
    "cite": ("zsntta cite --method adand,tda --output related.bib",),
    "encoders": ("zsntta encoders",),
    "datasets list": ("zsntta datasets list",),
    "datasets show": ("zsntta datasets show svhn",),
    "datasets get": ("zsntta datasets get svhn",),
    "datasets verify": ("zsntta datasets verify cifar10",),
    "methods list": ("zsntta methods list",),
    "methods show": ("zsntta methods show adand",),
    "methods check": ("zsntta methods check adand",),
    "cache list": ("zsntta cache list",),
    "cache show": ("zsntta cache show shapes --model tiny",),
    "cache verify": ("zsntta cache verify", "zsntta cache verify shapes"),
    "cache split": ("zsntta cache split cars --id-classes 98",),
    "cache join": ("zsntta cache join imagenet",),
    "cache import": ("zsntta cache import mine --features features.npz",),
    "cache export": ("zsntta cache export shapes --output shapes.npz",),
    "cache push": ("zsntta cache push USER/REPO --set shapes",),
    "cache pull": ("zsntta cache pull USER/REPO shapes",),
    "records list": ("zsntta records list --method adand",),
    "records export": ("zsntta records export --method adand --output runs.jsonl",),
    "records import": ("zsntta records import runs.jsonl",),
    "records remove": ("zsntta records remove 3f2a",),
}
REPEATED = "…"  # behind what may be given several times

# What stands for a value: typer's name of its type, and the one word that help pages have for it.
_BOUNDS = re.compile(r"(.+<=)?x(?:>=.+|<=(.+))")
_OF_NAMES = (
    "--method",
    "--id",
    "--ood",
    "--encoder",
    "--model",
    "--preset",
    "--columns",
    "--score",
)
_KINDS = {"str": "TEXT", "int": "INTEGER", "float": "NUMBER", "path": "PATH"}


def notation(name: str) -> str:
    """An option and its values as help pages write them: --seed INTEGER …, --spread seeds|sets."""
    name = re.sub(r"<list\[(\w+)\]>", r"<\1> …", name)  # it may be repeated
    name = re.sub(r"<(.*?)( range)?>", lambda kind: _KINDS.get(kind[1].lower(), kind[1]), name)
    return re.sub(r" TEXT\b", " NAME", name) if name.split()[0] in _OF_NAMES else name


def described(about: str) -> str:
    """What an option is, with its range and its default: "Width (2 to 20). [3.25]".

    typer writes "Width.  [default: 3.25; 2<=x<=20]".
    """
    text, _, notes = about.partition("  [")
    own = []  # notes that are no range
    for note in filter(None, notes.removesuffix("]").split("; ")):
        if bounds := _BOUNDS.fullmatch(note):
            least, most = bounds.groups()
            words = f"{least[:-2]} to {most}" if most else f"{note.removeprefix('x>=')} or more"
            text = re.sub(r"\.?( \[[^]]*\])?$", rf" ({words}).\1", text, count=1)
        else:
            own.append(f" [{note.removeprefix('default: ')}]")
    return text + "".join(own)


def placeholder(argument: Any) -> str:
    """What stands for an argument on help pages: NAME, or KEY … where it may be repeated."""
    name = re.sub(r"[\[\]{}]|\.{3}", "", argument.metavar or argument.name).upper()
    return f"{name} {REPEATED}" if argument.nargs == -1 else name

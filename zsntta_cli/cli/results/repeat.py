"""The command that repeats runs, as the report shows it: a part of what hints.py is for."""

import shlex
from collections.abc import Sequence

from zsntta_cli.datasets import default_prompt
from zsntta_cli.settings import PAPER_ENCODERS, TINY, EncoderChoice
from zsntta_cli.settings.options import option_name
from zsntta_cli.simulation.runs import PRESETS, RunSettings, build_run, declared


def repeat_command(runs: Sequence[RunSettings]) -> str:
    """The command that runs again what differs in seed and OOD set alone, all of it."""
    first = runs[0]
    preset, changed = _nearest_preset(first)
    words = [f"--method={first.method}", *_encoder_words(first.encoder), f"--id={first.id_set}"]
    words += [f"--ood={name}" for name in dict.fromkeys(run.ood_set for run in runs) if name]
    words += [f"--preset={preset}"] * (preset != "paper")
    words += [f"--prompt={first.prompt}"] * (first.prompt != default_prompt(first.id_set))
    words += [f"--ratio={first.stream.ratio}"]
    words += [f"--seed={seed}" for seed in dict.fromkeys(run.stream.seed for run in runs)]
    return shlex.join(["zsntta", "simulate", *_spaced([*words, *changed])])


def _spaced(words: Sequence[str]) -> list[str]:
    """Options apart from their values, as people write them; but for values that look like one."""
    pairs = [word.partition("=") for word in words]
    return [
        word
        for option, _, value in pairs
        for word in ([f"{option}={value}"] if value.startswith("-") else [option, value])
    ]


def _encoder_words(folder: str) -> list[str]:
    known = {choice.slug: choice for choice in (EncoderChoice(TINY), *PAPER_ENCODERS)}
    if folder not in known:
        return [f"--encoder={folder}"]
    default, choice = EncoderChoice(), known[folder]
    return [f"--model={choice.model}"] * (choice.model != default.model)


def _nearest_preset(run: RunSettings) -> tuple[str, list[str]]:
    """The preset that leaves the fewest options to say, and these."""
    said: list[tuple[str, list[str]]] = []
    for name in PRESETS:
        words = _beside(name, run)
        if words == []:
            return name, words
        said += [(name, words)] if words else []
    return min(said, key=lambda one: len(one[1]), default=("paper", []))


def _beside(preset: str, run: RunSettings) -> list[str] | None:
    """The options that make a preset's run this one; None where no option can say a value."""
    stream = {"ratio": run.stream.ratio, "seed": run.stream.seed}
    made = build_run(run.method, "", run.id_set, run.ood_set, run.prompt, preset, **stream).flat()
    words = []
    for name, value in run.flat().items():
        if value != made[name]:
            if value is None and name != "fixed":
                return None
            text = str(value).lower() if isinstance(value, bool) else str(value)
            option = option_name(declared(run.method)[name])
            words.append(f"--{option}={'adaptive' if value is None else text}")
    return words

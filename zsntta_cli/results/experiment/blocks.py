"""Runs as the fewest [[runs]] tables of an experiment file that give these runs and no others.

Each run is a point. Points that differ in one axis alone are joined along it, repeatedly and in
several orders of the axes. Then tables are joined wherever the joined one has the runs of both and
no more, which is checked by building it. The true minimum is a covering by rectangles, which is
NP-hard, so this gives few tables, not always the fewest.
"""

import functools
import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zsntta_cli.datasets import default_prompt
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import method_place
from zsntta_cli.results.experiment import RunBlock, SetPairs
from zsntta_cli.results.frame import set_place
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.options import option_name
from zsntta_cli.simulation.runs import PRESETS, RunSettings, build_run, declared

_SHARED = (
    "ratio",
    "seed",
    "order",
    "limit",
    "ood_fill",
)  # settings that all methods of a table have
_NOWHERE = Path("/nowhere")  # features decide nothing where all sets are named
_ORDERS = (  # of joining
    ("pair", "seed", "ratio"), ("seed", "pair", "ratio"), ("ratio", "pair", "seed"),
    ("seed", "ratio", "pair"),
)  # fmt: skip
_MANY = 60  # tables of which no pairs are tried out: that many are no grid

Axis = tuple[Any, ...]
Box = tuple[tuple[str, Axis], ...]  # by name the values, all combinations


def blocks_of(runs: Iterable[RunSettings]) -> list[RunBlock]:
    """The tables that give exactly these runs."""
    by_method: dict[tuple[str, str], list[RunSettings]] = {}
    for run in dict.fromkeys(runs):
        by_method.setdefault((run.encoder, run.method), []).append(run)
    tables: dict[Any, list[tuple[str, Box]]] = {}
    for (encoder, method), of_method in by_method.items():
        for box in _boxes(of_method):
            shared = tuple((name, values) for name, values in box if _is_shared(name))
            own = tuple((name, values) for name, values in box if not _is_shared(name))
            tables.setdefault((encoder, shared), []).append((method, own))
    blocks = [
        block for (encoder, box), own in tables.items() for block in _blocks(encoder, box, own)
    ]
    return sorted(_joined_blocks(blocks), key=_block_place)


def _is_shared(name: str) -> bool:
    return name in ("pair", "preset", "prompt", *_SHARED)


def _blocks(encoder: str, box: Box, own: Sequence[tuple[str, Box]]) -> list[RunBlock]:
    """The tables of some methods on the same streams: one, unless a method occurs twice."""
    blocks: list[dict[str, Box]] = []
    for method, settings in own:
        free = next((block for block in blocks if method not in block), None)
        if free is None:
            blocks.append(free := {})
        free[method] = settings
    return [_block(encoder, dict(box), block) for block in blocks]


def _block(encoder: str, axes: dict[str, Axis], own: Mapping[str, Box]) -> RunBlock:
    pairs, presets, prompts = (axes.pop(name) for name in ("pair", "preset", "prompt"))
    methods = tuple(sorted(own, key=method_place))
    return RunBlock(
        methods, EncoderChoice(folder=encoder), _by_id_set(pairs),
        presets if presets != ("paper",) else (), tuple(text for text in prompts if text),
        axes, {method: dict(own[method]) for method in methods if own[method]},
    )  # fmt: skip


def _by_id_set(pairs: Iterable[tuple[str, str | None]]) -> tuple[SetPairs, ...]:
    """Pairs by their ID set; a clean stream has no OOD set."""
    by_id: dict[str, list[str]] = {}
    for id_set, ood_set in pairs:
        by_id.setdefault(id_set, []).extend([ood_set] if ood_set is not None else [])
    return tuple(SetPairs(name, tuple(dict.fromkeys(names))) for name, names in by_id.items())


# Runs of one method to boxes.


def _boxes(runs: Sequence[RunSettings]) -> list[Box]:
    """Boxes that hold the runs of one method: the fewest that several orders of joining give."""
    presets = {run: _nearest_preset(run) for run in runs}
    differing = {name for run in runs for name in _changes(run, presets[run])}
    names = [name for name in declared(runs[0].method) if name in {*differing, "ratio", "seed"}]
    points = [_point(run, presets[run], names) for run in runs]
    candidates = (_join(points, (*order, *names, "preset", "prompt")) for order in _ORDERS)
    return min(candidates, key=len)


def _point(run: RunSettings, preset: str, names: Sequence[str]) -> Box:
    """A run as a box with one value on each axis; the set's default prompt is left empty."""
    flat = run.flat()
    prompt = run.prompt if run.prompt != default_prompt(run.id_set) else ""
    values = {"pair": (run.id_set, run.ood_set), "preset": preset, "prompt": prompt}
    values |= {name: flat[name] for name in names}
    return tuple((name, (value,)) for name, value in values.items())


def _join(boxes: Sequence[Box], order: Iterable[str]) -> list[Box]:
    """Join boxes along one axis after the other, until none can be joined."""
    joined, before, axes = list(boxes), -1, tuple(dict.fromkeys(order))
    while len(joined) != before:
        before = len(joined)
        for axis in axes:
            joined = _join_along(joined, axis)
    return joined


def _join_along(boxes: Sequence[Box], axis: str) -> list[Box]:
    """Join the boxes that differ along one axis alone."""
    groups: dict[Any, list[Any]] = {}
    for box in boxes:
        values = dict(box)
        along = values.pop(axis)
        # The set's own prompt cannot stand beside others, nor a clean stream beside noisy ones.
        apart = axis == "prompt" and "" in along
        kind = axis == "pair" and along[0][1] is None
        groups.setdefault((tuple(values.items()), apart, kind), []).extend(along)
    return [
        tuple((name, _in_order(name, groups[key]) if name == axis else dict(key[0])[name])
              for name in (name for name, _ in boxes[0]))
        for key in groups
    ]  # fmt: skip


def _in_order(axis: str, values: Iterable[Any]) -> Axis:
    """Each value once: sets in the order of all tables, numbers rising."""
    different = list(dict.fromkeys(values))
    if axis == "pair":
        return tuple(sorted(different, key=lambda pair: (set_place(pair[0]), _ood_place(pair[1]))))
    if axis == "preset":
        return tuple(sorted(different, key=list(PRESETS).index))
    return tuple(sorted(different, key=lambda v: (v is not None, isinstance(v, str), v)))


def _ood_place(name: str | None) -> tuple[Any, ...]:
    return (0,) if name is None else (1, set_place(name))


def _nearest_preset(run: RunSettings) -> str:
    """The preset from which the run differs in the fewest settings."""
    return min(PRESETS, key=lambda preset: len(_changes(run, preset)))


@functools.lru_cache(maxsize=10_000)
def _changes(run: RunSettings, preset: str) -> tuple[str, ...]:
    """The settings in which a run differs from its preset, without ratio and seed."""
    stream = {"ratio": run.stream.ratio, "seed": run.stream.seed}
    usual = build_run(run.method, "", run.id_set, run.ood_set, run.prompt, preset, **stream).flat()
    return tuple(name for name, value in run.flat().items() if value != usual[name])


# Tables to fewer tables.


def _joined_blocks(blocks: Sequence[RunBlock]) -> list[RunBlock]:
    """Join tables two by two where the joined one has the runs of both and no others."""
    runs_of = {block: _run_set(block) for block in map(_Hashed, blocks)}
    while len(runs_of) <= _MANY:
        for first, second in itertools.combinations(runs_of, 2):
            both = runs_of[first] | runs_of[second]
            if (joined := _union(first.block, second.block)) and _has_runs(joined, both):
                del runs_of[first], runs_of[second]
                runs_of[_Hashed(joined)] = both
                break
        else:
            break
    return [hashed.block for hashed in runs_of]


@dataclass(frozen=True, eq=False)
class _Hashed:
    """A table as a dictionary key, equal to itself alone."""

    block: RunBlock


def _has_runs(block: RunBlock, runs: frozenset[RunSettings]) -> bool:
    """Whether all combinations of a table's values are exactly these runs."""
    try:
        return _run_set(_Hashed(block)) == runs
    except SettingsError:  # as of a protocol beside another ratio than its own
        return False


def _run_set(one: _Hashed) -> frozenset[RunSettings]:
    return frozenset(one.block.runs(_NOWHERE))


def _union(one: RunBlock, other: RunBlock) -> RunBlock | None:
    """A table with the values of both; None where they cannot be joined."""
    is_unlike = one.encoder != other.encoder or bool(one.prompts) != bool(other.prompts)
    if is_unlike or {*one.axes} != {*other.axes}:
        return None
    own = {}
    for method in {*one.methods, *other.methods}:
        axes = [block.own.get(method, {}) for block in (one, other) if method in block.methods]
        if len({frozenset(a) for a in axes}) > 1:
            return None
        own[method] = {k: _in_order(k, itertools.chain(*(a[k] for a in axes))) for k in axes[0]}
    pairs = [(p.id_set, ood) for p in (*one.pairs, *other.pairs) for ood in p.ood_sets or [None]]
    presets = _in_order("preset", (*(one.presets or ["paper"]), *(other.presets or ["paper"])))
    by_id = _by_id_set(_in_order("pair", pairs))
    methods = tuple(sorted(own, key=method_place))
    return replace(
        one, methods=methods, pairs=by_id,
        presets=() if presets == ("paper",) else presets,
        prompts=_in_order("prompt", (*one.prompts, *other.prompts)),
        axes={k: _in_order(k, (*one.axes[k], *other.axes[k])) for k in one.axes},
        own={method: own[method] for method in methods if own[method]},
    )  # fmt: skip


def _block_place(block: RunBlock) -> tuple[Any, ...]:
    """The place of a table in the order of all tables."""
    places = ([set_place(pair.id_set) for pair in block.pairs], list(map(str, block.pairs)))
    return block.encoder.slug, *places, [method_place(m) for m in block.methods], str(block)


# As TOML.


def experiment_text(blocks: Sequence[RunBlock], features: str, records: str = "") -> str:
    """The text of an experiment file with some tables.

    Raises:
        SettingsError: a name in it cannot be written in UTF-8.
    """
    encoders = {block.encoder.slug for block in blocks}
    lines = [f"features = {_value(features)}"]
    lines += [f"records = {_value(records)}"] * bool(records)
    lines += [f"encoder = {_value(*encoders)}"] if len(encoders) == 1 else []
    for block in blocks:
        lines += ["", "[[runs]]", *_block_lines(block, names_encoder=len(encoders) > 1)]
    text = "\n".join([*lines, ""])
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SettingsError("a name that is not UTF-8 cannot be written in TOML.") from error
    return text


def _block_lines(block: RunBlock, names_encoder: bool) -> list[str]:
    lines = [f"encoder = {_value(block.encoder.slug)}"] * names_encoder
    lines += [f"methods = {_list(block.methods)}", *_pair_lines(block.pairs)]
    lines += [f"presets = {_list(block.presets)}"] * bool(block.presets)
    lines += [f"prompts = {_list(block.prompts)}"] * bool(block.prompts)
    lines += ["[runs.settings]", *_setting_lines(block.methods[0], block.axes)]
    for method, axes in block.own.items():
        lines += [f"[runs.own.{_key(method)}]", *_setting_lines(method, axes)]
    return lines


def _pair_lines(pairs: Sequence[SetPairs]) -> list[str]:
    if len({pair.ood_sets for pair in pairs}) > 1:
        tables = [
            f"    {{ id = {_value(name)}" + f", ood = {_list(oods)}" * bool(oods) + " },"
            for name, oods in pairs
        ]
        return ["pairs = [", *tables, "]"]
    id_line = f"id = {_list([pair.id_set for pair in pairs])}"
    return [id_line, *[f"ood = {_list(pairs[0].ood_sets)}"] * bool(pairs[0].ood_sets)]


def _setting_lines(method: str, axes: Mapping[str, Sequence[Any]]) -> list[str]:
    options = {name: option_name(field) for name, field in declared(method).items()}
    return [
        f"{options[name]} = {_list(values, 'adaptive' if name == 'fixed' else 'none')}"
        for name, values in axes.items()
    ]


def _list(values: Sequence[Any], none: str = "none") -> str:
    """A list in TOML; a list of one value is written as that value."""
    texts = [_value(none if value is None else value) for value in values]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _value(value: Any) -> str:
    """A text, a number or a flag in TOML, whose texts differ from JSON's in one character only."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def relative_to(path: Path, folder: Path) -> str:
    """A path as a file in a folder writes it."""
    return os.path.relpath(path.absolute(), folder.absolute())

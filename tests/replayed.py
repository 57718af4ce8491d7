"""Runs that tests replay, as the package keeps them; none of it is a test."""

import json

from made import PROMPT

from zsntta_cli.results.grid import Grid
from zsntta_cli.results.runner import Runner
from zsntta_cli.results.store import Keeping
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.simulator import Simulator

NOWHERE = Keeping()


def grid(features, methods=("zs-clip",), **axes):
    made = EncoderChoice(folder="made")
    return Grid(methods, made, ["pets"], ["sky"], [PROMPT], axes=axes).runs(features)


def kept_run(features, method="zs-clip", **axes):
    [run] = grid(features, [method], **axes)
    return Simulator(features).run(run)


def run_all(root, runs, jobs=1, keeping=NOWHERE, **given):
    return Runner(root, jobs, keeping=keeping, **given).run(runs)


def plain(records):
    """Records without what may differ between two runs of the same."""
    return [
        json.dumps({**r.to_dict(), "seconds": 0, "memory": 0, "created": ""}, default=str)
        for r in records
    ]


def many(features, methods=("zs-clip", "adand")):
    return grid(features, methods, ratio=[0.25, 0.5], seed=[0, 1, 2])


def merged(plain, changes):
    """A tree of objects with some values changed."""
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(plain.get(name), dict)
        plain = {**plain, name: merged(plain[name], value) if both else value}
    return plain

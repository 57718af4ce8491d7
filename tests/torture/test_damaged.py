"""Damaged feature files never give a traceback, a hang or a wrong number."""

import numpy as np
import pytest
from made import PROMPT

from torture.conftest import make_sets
from zsntta_cli.cache.store import problems
from zsntta_cli.errors import ZsnttaError
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

FILES = 2_000


def damaged(content: bytes, generator: np.random.Generator) -> bytes:
    """Flip some bytes, cut, repeat or blank a run of them."""
    data = bytearray(content)
    start = int(generator.integers(len(data)))
    length = int(generator.integers(1, 200))
    match generator.integers(4):
        case 0:
            for place in generator.integers(len(data), size=generator.integers(1, 9)):
                data[place] ^= int(generator.integers(1, 256))
        case 1:
            del data[start:]
        case 2:
            data[start:start] = data[start : start + length]
        case _:
            data[start : start + length] = bytes(length)
    return bytes(data)


@pytest.mark.slow
def test_damaged_files_are_refused_or_give_the_same_numbers(tmp_path):
    make_sets(tmp_path)
    run = build_run("adand", "made", "pets", "sky", PROMPT, noise="none", update_every=8, warmup=2)
    right = Simulator(tmp_path).run(run)
    path = tmp_path / "made" / "pets.h5"
    content = path.read_bytes()
    generator = np.random.default_rng(1)
    refusals = []
    for _ in range(FILES):
        path.write_bytes(damaged(content, generator))
        try:
            found = Simulator(tmp_path).run(run)
        except ZsnttaError as error:
            refusals.append(str(error))
        else:
            assert found.accuracies == right.accuracies
            assert found.detection == right.detection
        problems(path)  # as `cache verify`: says what is wrong, never raises
    assert len(refusals) > FILES / 4
    assert not any("\n" in line for line in refusals)

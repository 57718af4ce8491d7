"""Products take one BLAS thread, also those of a library that a method itself loads."""

import subprocess
import sys

PROBE = """
import sys
from pathlib import Path
from threadpoolctl import threadpool_info
from zsntta_cli.methods.method import Behind
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

simulator, push = Simulator(Path(sys.argv[1])), Behind.push
assert "scipy.linalg" not in sys.modules

def probed(*given):
    threads = (one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
    print(*threads, file=sys.__stdout__)
    return push(*given)

Behind.push = probed
simulator.run(build_run("dota", "made", "pets", "sky", "a photo of a {}."))
"""


def test_a_blas_that_a_method_loads_is_limited_too(features):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, features], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"1"}

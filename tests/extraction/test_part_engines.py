import os
import shutil
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from made import TINY, fails

from zsntta_cli.cache import store
from zsntta_cli.extraction import cluster, connection
from zsntta_cli.extraction.plan import ExtractPlan
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.progress import Silent
from zsntta_cli.settings import EncoderChoice, ExtractSettings

NAMES = ["cat", "dog", "ox"]
OF = 5
CORES = torch.get_num_threads()  # of a worker
SETTINGS = ExtractSettings(batch_size=4, workers=1)


def job_of(pets, root, of=OF):
    plan = ExtractPlan((f"pets={pets}",))
    return PartsJob(plan.datasets[0], of, plan, EncoderChoice("tiny"), "cpu", root, SETTINGS)


@pytest.fixture
def digest(pets, tiny, tmp_path):
    """The digest of the set as this process makes it."""
    maker = PartMaker(job_of(pets, tmp_path / "here"), load=lambda: tiny)
    for _ in maker.make_all():
        pass
    return store.read(maker.join().path, rows=False).digest


def killed_once(content, index):
    """As a worker, be killed before the second part, unless that has happened before."""
    killed = Path(os.environ["KILLED"])
    if index == 2 and not killed.exists():
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return cluster.make_packed_part(content, index)


def command_of(pets, *options):
    return ("extract", "--dataset", f"pets={pets}", *TINY, "--batch-size", 4, "--workers", 1,
            "--device", "cpu", *options)  # fmt: skip


def broken_copy(pets, folder):
    """The set with a shard that is none."""
    broken = folder / "broken" / "pets"
    shutil.copytree(pets, broken)
    (broken / "test" / "3.tar").write_bytes(b"no tar")
    return broken


@pytest.mark.slow
def test_ray_makes_the_same_set_though_a_worker_is_killed(
    zsntta, pets, digest, tmp_path, monkeypatch, capfd
):
    import ray

    monkeypatch.setenv("KILLED", str(tmp_path / "killed"))
    monkeypatch.setattr(cluster, "make_packed_part", killed_once)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    caller = connection.Connection()
    caller.open()
    try:
        parts = list(cluster.extract_parts_on_ray(job_of(pets, tmp_path / "ray"), Silent()))
        assert ray.is_initialized(), "a connection of the caller's is left alone"
        options = command_of(broken_copy(pets, tmp_path), "--parts", 2, "--engine", "ray")
        fails(zsntta(*options), "3.tar", stdout=None)
    finally:
        caller.close()
    assert (tmp_path / "killed").exists()
    assert sum(extracted.images for extracted in parts[:-1]) == 20 == parts[-1].images
    assert store.read(parts[-1].path, rows=False).digest == digest
    assert capfd.readouterr().err == ""


@contextmanager
def ray_of_two_nodes():
    from ray.cluster_utils import Cluster as Nodes

    quickly = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200,
               "health_check_failure_threshold": 3}  # fmt: skip
    head = {"num_cpus": CORES, "_system_config": quickly}  # a death is noticed at once
    nodes = Nodes(initialize_head=True, head_node_args=head)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": nodes.address}
    try:
        yield nodes, nodes.add_node(num_cpus=CORES)
    finally:
        nodes.shutdown()


def lose_a_node(job):
    """Extract on a Ray of two nodes, one of which is killed; the images of each part."""
    import ray

    with ray_of_two_nodes() as (nodes, second):
        parts = cluster.extract_parts_on_ray(job, Silent())
        images = [next(parts).images]
        assert sum(node["Alive"] for node in ray.nodes()) == 2
        nodes.remove_node(second, allow_graceful=False)
        images += [extracted.images for extracted in parts]
    assert not ray.is_initialized()
    return images


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_node(pets, digest, tmp_path):
    """In a process of its own: what is set for one Ray stays for all later ones of a process."""
    job = job_of(pets, tmp_path / "several", of=7)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        *of_parts, whole = pool.submit(lose_a_node, job).result()
    assert sorted(of_parts) == [2, 3, 3, 3, 3, 3, 3]
    assert whole == 20
    [path] = (tmp_path / "several").rglob("pets.h5")
    assert store.read(path, rows=False).digest == digest


def test_ray_that_is_not_installed(zsntta, pets, monkeypatch):
    monkeypatch.setattr(connection, "find_spec", lambda name: None)
    ray = ("--parts", 2, "--engine", "ray")
    fails(zsntta(*command_of(pets, *ray)), "the engine ray needs Ray: pip install", code=2)


def test_a_worker_says_what_is_wrong(pets, tmp_path):
    error = cluster.make_packed_part(cluster.pack(job_of(pets, tmp_path / "features")), 9)
    assert str(error) == f"part is 9/{OF}, must be 1/{OF} to {OF}/{OF}."
    gone = tmp_path / "gone"
    gone.mkdir()
    with chdir(gone):
        content = cluster.pack(job_of(pets, tmp_path / "features"))
        gone.rmdir()
        error = cluster.make_packed_part(content, 1)
    assert str(error).startswith(f"a worker has no folder {gone} (No such file or directory): ")


def test_options_that_need_others(zsntta, pets):
    for options, message in {
        ("--engine", "ray"): "--engine ray makes the parts of a set: add --parts N.",
        ("--part", "1/2", "--engine", "ray"): "--engine ray makes the parts of a set",
        ("--engine", "spark"): "engine is 'spark', must be one of: local, ray",
    }.items():
        fails(zsntta(*command_of(pets, *options)), message, code=2)

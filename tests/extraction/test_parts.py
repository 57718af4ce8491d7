"""`extract --part I/N` and `cache join`: joined parts are what one extraction would have made."""

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made import PROMPT, TINY, fails, refused

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.parts import join_parts, part_path, part_rows
from zsntta_cli.datasets.images import limited
from zsntta_cli.errors import SettingsError
from zsntta_cli.extraction import cluster, connection
from zsntta_cli.extraction.plan import ExtractPlan
from zsntta_cli.settings import EncoderChoice, ExtractSettings

CORES = torch.get_num_threads()  # of a worker


def glyphs(count=70):
    return limited(datasets.load_images("glyphs", Path()), count)


def made(extractor, root, of, images, **options):
    """The path of a set, all parts of which are made, the last one first."""
    for index in range(of, 0, -1):
        extractor(root, **options).dataset(images, [PROMPT], (index, of))
    return feature_path(root, "tiny", images.name)


@given(count=st.integers(1, 3000), of=st.integers(1, 70), size=st.integers(1, 200))
@settings(max_examples=100, deadline=None)
def test_parts_are_whole_batches_of_all_images(count, of, size):
    if of > -(-count // size):
        with refused(f"part is 1/{of}, but", "use at most", error=SettingsError):
            part_rows(count, 1, of, size)
        return
    runs = [part_rows(count, index, of, size) for index in range(1, of + 1)]
    assert [i for run in runs for i in run] == list(range(count))
    assert all(run and run.start % size == 0 for run in runs)
    batches = [-(-len(run) // size) for run in runs]
    assert max(batches) - min(batches) <= 1


@pytest.mark.usefixtures("noon")
@pytest.mark.parametrize("of", [1, 4, 9])
def test_joined_parts_are_the_bytes_of_a_whole_extraction(extractor, tmp_path, of):
    """Seventy images are nine batches."""
    whole = extractor(tmp_path / "whole").dataset(glyphs(), [PROMPT]).path
    joined = made(extractor, tmp_path / "parts", of, glyphs())
    for _ in range(2):
        join_parts(joined)
        assert joined.read_bytes() == whole.read_bytes()
    assert extractor(tmp_path / "parts").dataset(glyphs(), [PROMPT]).encoded == 0


def test_a_part_that_is_there_is_not_made_again_nor_another_set_in_its_place(extractor, tmp_path):
    path = made(extractor, tmp_path, 2, glyphs())
    again = extractor(tmp_path, encoder=None)
    assert again.dataset(glyphs(), [PROMPT], (1, 2)).encoded == 0, "no encoder is needed"
    with refused("is from a different set (images is 70, not 40)", "--overwrite replaces it"):
        extractor(tmp_path).dataset(glyphs(40), [PROMPT], (1, 2))
    assert store.read(part_path(path, 1, 2)).source == glyphs().identity()


def test_broken_images_are_left_out_of_their_part(extractor, picture_folder, tmp_path):
    (picture_folder / "dog" / "0.jpg").write_bytes(b"no image")
    images = datasets.load_images(f"pets={picture_folder}", Path())
    options = {"skip_broken": True, "batch_size": 4}
    whole = extractor(tmp_path / "whole", **options).dataset(images, [PROMPT]).path
    joined = join_parts(made(extractor, tmp_path / "parts", 3, images, **options))
    assert (len(joined), joined.source["skipped"]) == (11, ["dog/0.jpg"])
    assert joined.digest == store.read(whole).digest
    assert store.read_sample_ids(joined.path) == store.read_sample_ids(whole)


def test_what_is_not_joined(extractor, tmp_path):
    path = made(extractor, tmp_path, 3, glyphs())
    second = part_path(path, 2, 3)
    content = second.read_bytes()
    for part, images, options in (
        ("(file names, sizes", replace(glyphs(), fingerprint="other"), {}),
        ("(batch-size is 7, not 8)", glyphs(), {"batch_size": 7}),
        ("(type is float32, not float16)", glyphs(), {"store": "float32"}),
    ):
        other = extractor(tmp_path / part, **options).dataset(images, (), (2, 3))
        second.write_bytes(other.path.read_bytes())
        with refused(str(second), part):
            join_parts(path)
    second.write_bytes(content[:-100])
    with refused("not a complete"):
        join_parts(path)
    second.unlink()
    with refused("lacks 1 of 3 parts", "--part 2/3"):
        join_parts(path)
    second.write_bytes(content)
    extractor(tmp_path).dataset(glyphs(), (), (1, 2))
    with refused("parts of 2 and 3"):
        join_parts(path)
    assert not path.exists()


def test_on_the_command_line(zsntta, pets):
    command = ("extract", "--dataset", f"pets={pets}", *TINY, "--batch-size", 4)
    assert zsntta(*command, "--features-dir", "whole", "--no-partners").exit_code == 0
    assert zsntta(*command, "--part", "1/2").exit_code == 0
    fails(zsntta("cache", "join", "pets"), "lacks 1 of 2 parts", "--part 2/2")
    assert "1 parts, not joined" in " ".join(zsntta("cache", "list").stdout.split())
    assert "pets.parts/00002-of-00002.h5: 12 images" in zsntta(*command, "--part", "2/2").stdout
    assert zsntta("cache", "join", "pets").exit_code == 0
    digests = {store.read(Path(f"{root}/tiny/pets.h5")).digest for root in ("whole", "features")}
    assert len(digests) == 1
    assert "already extracted" in zsntta(*command, "--noise", "none").stdout


# --- the same as tasks of Ray


def job_of(pets, root):
    settings = ExtractSettings(4, workers=1, device="cpu", features_dir=root)
    return ExtractPlan((f"pets={pets}",)), EncoderChoice("tiny"), settings


@contextmanager
def ray_of_two_nodes():
    from ray.cluster_utils import Cluster as Nodes

    quickly = {
        "health_check_initial_delay_ms": 0, "health_check_period_ms": 200,
        "health_check_failure_threshold": 3,
    }  # a death is noticed at once # fmt: skip
    head = {"num_cpus": CORES, "_system_config": quickly}
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
        parts = cluster.extract_on_ray(*job, 5)
        images = [next(parts).images]
        assert sum(node["Alive"] for node in ray.nodes()) == 2
        nodes.remove_node(second, allow_graceful=False)
        images += [extracted.images for extracted in parts]
    assert not ray.is_initialized()
    return images


@pytest.mark.slow
def test_two_nodes_of_which_one_is_lost_make_the_same_set(extractor, pets, tmp_path):
    """In a process of its own: what is set for one Ray stays for all later ones of a process."""
    images = datasets.load_images(f"pets={pets}", Path())
    whole = extractor(tmp_path / "whole", batch_size=4).dataset(images, [PROMPT]).path
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        *of_parts, joined = pool.submit(lose_a_node, job_of(pets, tmp_path / "ray")).result()
    assert of_parts == [4] * 5
    assert joined == 20
    [path] = (tmp_path / "ray").rglob("pets.h5")
    assert store.read(path).digest == store.read(whole).digest


def test_without_ray_it_is_told_what_to_install(zsntta, monkeypatch):
    monkeypatch.setattr(connection, "find_spec", lambda name: None)
    line = ("extract", "--dataset", "glyphs", *TINY, "--engine", "ray")
    fails(zsntta(*line), "the engine ray needs Ray: pip install 'zsntta[ray]'", code=2)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux shows its sockets")
def test_of_a_ray_of_its_own_nothing_listens_but_on_the_loopback(monkeypatch):
    import ray
    from psutil import Process  # which Ray brings

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with connection.connected():
        assert ray.get(ray.remote(lambda: 1).remote()) == 1  # a worker is there
        sockets = [
            socket.laddr.ip
            for process in (Process(), *Process().children(recursive=True))
            for socket in process.net_connections("tcp")
            if socket.status == "LISTEN"
        ]
        assert len(sockets) >= 5, "those of Ray are found"
        assert {*sockets} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    assert ray._private.ray_constants.ENABLE_RAY_CLUSTER, "a later connection is as ever"

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from made import TINY, fails
from web_writer import write_web_set

from zsntta_cli.cache import hdf5
from zsntta_cli.extraction import part_workers, raydata
from zsntta_cli.extraction.connection import Connection
from zsntta_cli.extraction.plan import ExtractPlan
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.progress import Silent
from zsntta_cli.settings import EncoderChoice, ExtractSettings

NAMES = ["cat", "dog", "ox"]
OF = 5
SETTINGS = ExtractSettings(batch_size=4, workers=1)


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """A web data set of seven shards, three images in each but the last."""
    root = tmp_path_factory.mktemp("web") / "pets"
    write_web_set(root, [i % 3 for i in range(20)], NAMES, form="png", a_shard=3)
    return root


def job_of(pets, root, of=OF):
    plan = ExtractPlan((f"pets={pets}",))
    return PartsJob(plan.datasets[0], of, plan, EncoderChoice("tiny"), "cpu", root, SETTINGS)


@pytest.fixture
def digest(pets, tiny, tmp_path):
    """The digest of the set as this process makes it."""
    maker = PartMaker(job_of(pets, tmp_path / "here"), load=lambda: tiny)
    for _ in maker.make_all():
        pass
    return hdf5.read_header(maker.join().path).digest


class Fatal(raydata._Actor):
    """A worker that is killed before its second part, unless that has happened before."""

    def make(self, index):
        killed = Path(os.environ["KILLED"])
        if index == 2 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().make(index)


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
    monkeypatch.setattr(raydata, "_Actor", Fatal)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    connection = Connection()
    with raydata._silent_start():
        connection.open()
    try:
        parts = list(raydata.extract_parts_on_ray(job_of(pets, tmp_path / "ray"), Silent()))
        assert ray.is_initialized(), "a connection of the caller's is left alone"
        options = command_of(broken_copy(pets, tmp_path), "--parts", 2, "--engine", "ray")
        fails(zsntta(*options), "3.tar", stdout=None)
    finally:
        connection.close()
    assert (tmp_path / "killed").exists()
    assert sum(extracted.images for extracted in parts[:-1]) == 20 == parts[-1].images
    assert hdf5.read_header(parts[-1].path).digest == digest
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_the_script_of_a_plan_makes_its_parts(zsntta, pets, digest, tmp_path):
    features = "some 'folder' of $HOME; true"
    options = command_of(pets, "--features-dir", features, "--class-names", "names")
    Path("names").write_text("cat\ndog\nox\n")
    plan = zsntta(*options, "--parts", 5, "--plan", "--rate=50")
    assert plan.exit_code == 0, plan.stderr
    script = tmp_path / "job.sh"
    script.write_text(plan.stdout)
    assert "#SBATCH --array=1-5\n" in plan.stdout
    assert "# pets: 5 parts of 7 shards, " in plan.stdout
    assert "# images: about 21, if every shard has as many as the first\n" in plan.stdout
    assert "# rate: 50.0 images/s, as --rate says\n" in plan.stdout
    assert not Path(features).exists()
    subprocess.run(["bash", "-n", script], check=True)
    array = {"TASK_ID": "3", "TASK_MIN": "1", "TASK_COUNT": "5"}
    array = {f"SLURM_ARRAY_{name}": value for name, value in array.items()}
    subprocess.run(["bash", script], check=True, cwd="/", env=os.environ | array)
    parts = sorted(path.name for path in Path(features, "tiny", "pets.parts").glob("*.h5"))
    assert parts == ["00003.h5"]
    rest = zsntta(*options, "--parts", 5)
    assert rest.stdout.count("there already") == 2
    assert hdf5.read_header(Path(features, "tiny", "pets.h5")).images == 20


def test_the_hours_of_a_plan(zsntta, pets):
    shapes = ("extract", "--dataset", "shapes", "--limit", 1100, *TINY)
    plan = zsntta(*shapes, "--parts", 2, "--plan", "--rate", 0.1).stdout
    assert "# shapes: 2 parts of 3 shards\n# images: 1,100\n" in plan
    assert "# hours: 2.04 a part, 3.06 in all\n" in plan
    assert "#SBATCH --time=245\n" in plan
    measured = zsntta(*command_of(pets, "--parts", 2, "--plan")).stdout
    assert re.search(r"# rate: [\d,.]+ images/s, measured here on cpu\n", measured)


@pytest.mark.slow
def test_a_part_as_a_job(zsntta, pets, digest, monkeypatch):
    monkeypatch.setenv("ZSNTTA_SUBMITIT", "local")
    options = command_of(pets, "--parts", 2, "--engine", "submitit")
    assert zsntta(*command_of(pets, "--part", "1/2")).exit_code == 0
    result = zsntta(*options, "--wait")
    assert result.exit_code == 0, result.stderr
    assert re.match(r"1 job: \d+\n.*/00002.h5: 11 images", result.stdout)
    assert hdf5.read_header(Path("features/tiny/pets.h5")).digest == digest
    again = zsntta(*options)
    assert again.stdout == "all parts are there: no job is needed\n"
    assert "zsntta cache join pets --encoder tiny\n" in again.stderr
    fails(zsntta(*command_of(pets, "--parts", 3, "--engine", "submitit")), "2 parts, not 3")


def test_what_is_wrong_with_a_job(zsntta, pets, tmp_path, monkeypatch):
    monkeypatch.setenv("ZSNTTA_SUBMITIT", "local")
    options = command_of(broken_copy(pets, tmp_path), "--parts", 1, "--engine", "submitit")
    fails(zsntta(*options, "--wait"), "3.tar", stdout=None)
    monkeypatch.delenv("ZSNTTA_SUBMITIT")
    monkeypatch.setenv("PATH", str(tmp_path))
    fails(zsntta(*options), "there is no SLURM here", "--plan", code=2)


def test_a_worker_says_what_is_wrong(pets, tmp_path):
    content = part_workers.pack(job_of(pets, tmp_path / "features"))
    error = pickle.loads(part_workers.make_packed_part(content, 9)["error"])
    assert str(error) == f"part is 9/{OF}, must be 1/{OF} to {OF}/{OF}."
    gone = tmp_path / "gone"
    gone.mkdir()
    with chdir(gone):
        content = part_workers.pack(job_of(pets, tmp_path / "features"))
        gone.rmdir()
        error = pickle.loads(part_workers.make_packed_part(content, 1)["error"])
    assert str(error).startswith(f"a worker has no folder {gone} (No such file or directory): ")


def test_options_that_need_others(zsntta, pets):
    for options, message in {
        ("--plan",): "--plan is of a set in parts: add --parts N.",
        ("--parts", 2, "--rate", 3): "--rate is what --plan counts with",
        ("--engine", "submitit"): "--engine submitit makes the parts of a set: add --parts N.",
        ("--part", "1/2", "--engine", "submitit"): "--engine submitit makes the parts",
        ("--parts", 2, "--wait"): "--wait is of --engine submitit",
        ("--parts", 2, "--plan", "--rate", 0): "0.001",
    }.items():
        fails(zsntta(*command_of(pets, *options)), message, code=2)

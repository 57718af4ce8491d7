import os
import pickle
import signal
import subprocess
import tarfile
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from made import PROMPT, ZSNTTA

from zsntta_cli import datasets
from zsntta_cli.datasets.drawn.builtin import noise_images
from zsntta_cli.datasets.images import limited
from zsntta_cli.errors import DatasetError, EncoderError, SettingsError
from zsntta_cli.extraction import jobs, plan
from zsntta_cli.extraction.processes import Processes
from zsntta_cli.progress import Silent
from zsntta_cli.settings import EncoderChoice, ExtractSettings

TINY = EncoderChoice("tiny")
SETTINGS = ExtractSettings(batch_size=8, workers=1)  # parts of 32


class Watching(Silent):
    """A reporter that does something when images are encoded."""

    def __init__(self, act=lambda done: None):
        self.act, self.encoded = act, -1

    def track(self, _name, _total, _unit="images"):
        return nullcontext(self.advance)

    def advance(self, images, status=""):
        if self.encoded >= 0:  # the first tells what there was
            self.encoded += images
            self.act(self.encoded)
        self.encoded = max(self.encoded, 0)


@pytest.fixture(scope="module")
def two():
    """Two processes on the CPU, started once."""
    processes = Processes(["cpu", "cpu"])
    yield processes
    processes.close()


def glyphs(count=200):
    return limited(datasets.load_images("glyphs", Path()), count)


@pytest.mark.slow
@pytest.mark.usefixtures("noon")
def test_two_processes_give_the_bytes_of_one(extractor, two, picture_folder, tmp_path, monkeypatch):
    with tarfile.open(tmp_path / "pets.tar", "w") as tar:
        tar.add(picture_folder, "pets")
    monkeypatch.chdir(tmp_path)  # a relative path, that workers get as an absolute one
    tar = datasets.load_images("pets=pets.tar", Path())
    folder = datasets.load_images(f"folder={picture_folder}", Path())
    for root, processes in (("one", None), ("several", two)):
        make = partial(extractor, tmp_path / root, processes=processes, workers=1)
        make().dataset(glyphs(), [PROMPT])
        for images in (tar, folder):
            make(batch_size=2).dataset(images, [PROMPT])
        noise = partial(noise_images, "poisson", 70)
        make().noise("poisson", noise, 70)
    files = sorted(path.relative_to("one") for path in Path("one").rglob("*.h5"))
    assert [file.stem for file in files] == ["folder", "glyphs", "noise-poisson", "pets"]
    for file in files:
        assert Path("several", file).read_bytes() == Path("one", file).read_bytes(), file
    assert len(two._workers) == 2, "the processes are kept from set to set"


@pytest.mark.slow
def test_a_worker_says_what_is_wrong(extractor, two, picture_folder):
    (picture_folder / "dog" / "0.jpg").write_bytes(b"no image")
    images = datasets.load_images(f"pets={picture_folder}", Path())
    with pytest.raises(DatasetError, match=r"^cannot read image 'dog/0.jpg' of 'pets'") as error:
        extractor(processes=two, batch_size=1).dataset(images)
    assert error.value.remedy == "skip-broken"
    assert two._workers == [], "no worker goes on"


def test_what_cannot_be_done_elsewhere():
    def work_on(job, device="cpu"):
        list(jobs.work_on(pickle.dumps(job), device, [range(2)], lambda _: None))

    job = jobs.job_for(glyphs(), TINY, SETTINGS)
    with pytest.raises(EncoderError, match="device 'nonsense' cannot be used"):
        work_on(job, "nonsense")
    with pytest.raises(DatasetError, match="images of 'glyphs' have changed"):
        work_on(replace(job, source=glyphs(300).identity()))
    with pytest.raises(DatasetError, match="'glyphs' cannot be loaded by other processes"):
        jobs.job_for(replace(glyphs(), reload=None), TINY, SETTINGS)


@pytest.mark.slow
@pytest.mark.usefixtures("noon")
def test_a_killed_worker_loses_no_finished_part(extractor, two, tmp_path):
    reference = extractor(tmp_path / "one", workers=1).dataset(glyphs(1000)).path

    def kill(done):
        if done == 104:
            os.kill(two._workers[1].process.pid, signal.SIGKILL)

    with pytest.raises(EncoderError, match=r"process on cpu died \(exit code -9.*is kept"):
        extractor(processes=two, reporter=Watching(kill), workers=1).dataset(glyphs(1000))
    resumed = extractor(workers=1).dataset(glyphs(1000))
    assert resumed.encoded < 1000
    assert resumed.path.read_bytes() == reference.read_bytes()


@pytest.mark.slow
def test_ctrl_c_on_the_command_line(tmp_path):
    command = ["extract", "--dataset", "glyphs", "--model", "tiny", "--batch-size", "8"]
    run = subprocess.Popen(
        [ZSNTTA, *command, "--device", "cpu,cpu"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    parts = tmp_path / "features" / "tiny" / ".glyphs.parts"
    while not list(parts.glob("*.npz")):
        time.sleep(0.02)
        assert run.poll() is None
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does it: to all processes
    _, stderr = run.communicate(timeout=60)  # which ends when the last process has ended
    assert run.returncode == 130
    assert "interrupted: what was finished is kept" in stderr
    assert "Traceback" not in stderr


def test_devices(monkeypatch):
    assert plan.devices("cpu") == ["cpu"]
    assert plan.devices("cpu,cpu") == ["cpu", "cpu"]
    with pytest.raises(SettingsError, match="device is 'cuda:0,cpu': all must be of one type"):
        plan.devices("cuda:0,cpu")
    for count, all_of_them in ((3, ["cuda:0", "cuda:1", "cuda:2"]), (1, ["cuda:0"])):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        assert plan.devices("auto") == plan.devices("cuda") == all_of_them
    assert plan.devices("cuda:1,cuda:2") == ["cuda:1", "cuda:2"]
    assert plan.processes_for("cuda") is None, "this process takes the only one"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert plan.devices("auto") == ["auto"]

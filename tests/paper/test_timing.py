"""Runtime and memory of table 4: what is timed, not how long it took."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.detectors.adand import AdaND
from zsntta_cli.paper import timing
from zsntta_cli.paper.timing import TimingJob, live_data, measure, run_job, seconds_a_sample, steps
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.record import resident_peak

TINY = EncoderChoice("tiny")


def job(method, batch_size=1, samples=40):
    return TimingJob(method, batch_size, TINY, "cpu", samples, classes=5)


def test_a_method_that_injects_noise_has_its_images_in_the_stream(tiny):
    data = live_data(tiny, job("adand", samples=40))
    assert len(data) == 45
    assert np.flatnonzero(data.stream.injected).tolist() == [8, 17, 26, 35, 44]
    assert not data.truly_clean[data.stream.injected].any()
    plain = live_data(tiny, job("zs-clip", samples=40))
    assert len(plain) == 40
    assert not plain.stream.injected.any()
    assert plain.truly_clean.sum() == 20


@pytest.mark.parametrize(("method", "batch_size"), [("zs-clip", 1), ("adand", 16), ("tent", 16)])
def test_every_item_is_decided_on_once(tiny, method, batch_size):
    wanted = job(method, batch_size, samples=64)
    data = live_data(tiny, wanted)
    counts = list(steps(data, wanted.settings, batch_size))
    assert sum(counts) == len(data)
    assert set(counts[:-1]) == {batch_size}


def test_each_image_goes_through_the_encoder_once_and_no_cached_feature_is_used(tiny, monkeypatch):
    encoded = []
    encode = tiny.encode_images

    def counting(batch):
        encoded.append(len(batch))
        return encode(batch)

    monkeypatch.setattr(tiny, "encode_images", counting)
    wanted = job("adand", 16, samples=64)
    data = live_data(tiny, wanted)
    encoded.clear()
    list(steps(data, wanted.settings, 16))
    assert encoded == [16, 16, 16, 16, 8]


def test_adand_learns_from_what_was_encoded_just_now(tiny, monkeypatch):
    learned = []
    push = AdaND.push

    def noting(self, data, learn=True):
        learned.append(data.features(slice(None)))
        return push(self, data, learn)

    monkeypatch.setattr(AdaND, "push", noting)
    wanted = job("adand", 16, samples=64)
    data = live_data(tiny, wanted)
    list(steps(data, wanted.settings, 16))
    np.testing.assert_allclose(
        np.concatenate(learned), data.stream.features(slice(0, 72)), atol=1e-4
    )


class Clock:
    """A clock that a step moves on by a second a sample, and the warm-up by a hundred."""

    def __init__(self, monkeypatch, costs):
        self.now = 0.0
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(timing, "steps", self.steps)
        self.costs = costs

    def steps(self, _data, _run, _batch_size):
        for count, seconds in self.costs:
            self.now += seconds
            yield count


def test_the_first_items_do_not_count_and_injected_ones_are_no_samples(tiny, monkeypatch):
    wanted = job("adand", 9, samples=40)  # 18 warm up
    data = live_data(tiny, wanted)  # 45 items, one in nine injected
    Clock(monkeypatch, [(9, 100.0), (9, 100.0), (9, 2.0), (9, 3.0), (9, 7.0)])
    assert seconds_a_sample(data, wanted) == 12 / 24


def test_what_tpt_knows_from_the_cache_is_encoded_beside(tiny, monkeypatch):
    wanted = job("tpt", samples=40)  # two warm up
    data = live_data(tiny, wanted)
    Clock(monkeypatch, [(20, 100.0), (20, 10.0)])
    assert seconds_a_sample(data, wanted) == 10 / 20 + 10 / 20
    assert seconds_a_sample(data, job("tent")) == 10 / 20


@pytest.mark.parametrize("method", ["zs-clip", "adand", "ridge", "tent", "adand+tent"])
def test_a_row_of_each_kind_of_method(method):
    row = run_job(job(method, samples=32))
    assert (row.job, row.problem) == (job(method, samples=32), "")
    assert row.seconds > 0
    assert row.memory > 2**26
    assert row.device.startswith("cpu, ")


@pytest.mark.slow
def test_each_job_has_a_process_of_its_own():
    rows = []
    [row] = measure([job("zs-clip", samples=32)], rows.append)
    assert rows == [row]
    assert row.seconds > 0
    assert row.memory > 2**26


def test_the_peak_of_a_process_is_its_own_and_not_its_parents():
    before = resident_peak()
    held = np.ones(5 * 2**22)  # 160 MiB
    assert resident_peak() >= held.nbytes
    assert resident_peak() >= before
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        assert 2**20 < process.submit(resident_peak).result() < held.nbytes


def test_a_job_without_memory_gets_a_row_that_says_so(monkeypatch):
    def none_left(*_):
        raise MemoryError

    monkeypatch.setattr(timing, "seconds_a_sample", none_left)
    row = run_job(job("zs-clip"))
    assert (row.seconds, row.memory) == (None, None)
    assert row.problem.startswith("out of memory on cpu, ")


def killed(_job):
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


def test_a_job_that_is_killed_gets_a_row_that_says_so(monkeypatch):
    monkeypatch.setattr(timing, "run_job", killed)
    [row] = measure([job("zs-clip")])
    assert (row.seconds, row.problem) == (None, "its process was killed: too little memory?")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("energy", 1), "method is 'energy', must be one of: zs-clip"),
        (("cma", 1), "method is 'cma', must be one of: zs-clip"),
        (("etlt", 1), "method is 'etlt', must be one of: zs-clip, adand, ridge, oodd"),
        (("zs-clip", 16, 40), "samples is 40, must be 49 or more: the first warm up"),
        (("sotta", 1, 60), "samples is 60, must be 68 or more"),
    ],
)
def test_what_cannot_be_timed_is_refused(given, message):
    with pytest.raises(SettingsError, match=message):
        job(*given)


def test_settings_are_the_papers_for_imagenet():
    assert job("tent", 16, 64).settings.options.optimizer == "sgd"
    assert job("tent", 16, 64).settings.options.pipeline == "gt"
    assert not job("tpt").settings.options.augmix
    assert job("sotta", samples=100).settings.options.confidence == 0
    assert job("adand", 16, 64).settings.options.batch_size == 16

import datetime

import numpy as np
import pytest

from torture import ledger
from torture.tool import COUNTED, LONG, Zsntta, count
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, NOISE, Text

PROMPT = "a photo of a {}."
IMAGES, DIM, NAMES = 60, 8, ("cat", "dog", "ox")


def make_sets(root, images=IMAGES, noise=IMAGES) -> None:
    """An ID set, an OOD set and a noise pool, by an encoder that nobody knows."""
    generator = np.random.default_rng(0)
    text = np.linalg.qr(generator.standard_normal((DIM, 3)))[0].T.astype(np.float32)
    for name, size in (("pets", images), ("sky", images), ("noise-gaussian", noise)):
        labels, is_set = np.arange(size, dtype=np.int32) % 3, not name.startswith("noise")
        rows = generator.standard_normal((size, DIM), np.float32)
        rows += 8 * text[labels] * (name == "pets")
        hdf5.write_features(
            root / "made" / f"{name}.h5", kind=DATASET if is_set else NOISE, name=name,
            encoder={"model": "made-up", "logit_scale": 20.0}, source={"images": size},
            blocks=[rows.astype(np.float16)],
            labels=labels if is_set else np.full(size, -1, np.int32),
            sample_ids=[f"{i}.png" for i in range(size)], class_names=NAMES if is_set else (),
            texts=[Text(PROMPT, text)] if is_set else (),
        )  # fmt: skip


@pytest.fixture(scope="module")
def zsntta(request):
    server = Zsntta()
    yield server
    server.close()
    count(request.module.TRIED, server.asked, [])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with features; examples of one test share it."""
    folder = tmp_path_factory.mktemp("place")
    make_sets(folder / "features")
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What a test has counted goes with its report, from a worker to its controller."""
    report = yield
    report.user_properties.append(("counted", COUNTED.copy()))
    COUNTED.clear()
    return report


class Ledger:
    """A plug-in of `make torture`: what is behind it is left out, what is tried is written down."""

    def __init__(self, config):
        self.code = ledger.code_digest()
        self.is_controller = not hasattr(config, "workerinput")

    def pytest_collection_modifyitems(self, config, items):
        done = {line["test"] for line in ledger.lines(self.code) if line["passed"]}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
        items[:] = [item for item in items if item.nodeid not in done]

    def pytest_runtest_logreport(self, report):
        counts = dict(report.user_properties).get("counted", [])
        if self.is_controller and (report.when == "call" or counts or report.failed):
            passed = report.when == "call" and report.passed
            ledger.note(self.code, report.nodeid, passed, counts)

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("tried, bad")
        for what, (tried, bad) in self.found.items():
            terminalreporter.write_line(f"{tried:>10,} {bad:>5,}  {what}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if not self.is_controller:
            return
        self.found = ledger.totals(ledger.lines(self.code))
        today = datetime.date.today().isoformat()
        ledger.PAGE.write_text(ledger.with_totals(ledger.PAGE.read_text(), self.found, today))
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.OK
            ledger.LEDGER.unlink(missing_ok=True)


def pytest_configure(config):
    if LONG:
        config.pluginmanager.register(Ledger(config))

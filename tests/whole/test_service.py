"""examples/service: by its real command, with clients in other processes, and killed."""

import contextlib
import json
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from zsntta_cli import NoiseDetector, OnlineDetector
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "examples" / "service"
DIM, ENCODER = 16, {"model": "made-up", "logit_scale": 20.0}
SMALL = {"queue": 64, "ridge_first": 16, "ridge_block": 32, "ridge_ring": 64}
MODULES = {"open-clip-torch": "open_clip", "scikit-learn": "sklearn"}  # else as the distribution


def world(seed, count):
    rng = np.random.default_rng(seed)
    text = np.linalg.qr(np.random.default_rng(0).normal(size=(DIM, 4)))[0].T
    rows = 8 * text[rng.integers(0, 4, count)] + 1.2 * rng.normal(size=(count, DIM))
    return text[:3], rows.astype(np.float32)  # the fourth is noise


@pytest.fixture
def state(tmp_path):
    """A detector that has seen nothing, in a file."""
    path = tmp_path / "state.h5"
    names = ["cat", "dog", "ox"]
    detector = OnlineDetector(world(0, 0)[0], 20.0, class_names=names, **SMALL)
    detector.identity = ENCODER
    detector.save(path)
    return path


@pytest.fixture(scope="module")
def slim(tmp_path_factory):
    """An environment where nothing can be imported that requirements.txt does not name."""

    def named(lines):
        return {re.match(r"[\w-]+", line)[0].replace("_", "-") for line in lines}

    wanted = (SERVICE / "requirements.txt").read_text().splitlines()
    with (ROOT / "pyproject.toml").open("rb") as file:
        whole = tomllib.load(file)["project"]["dependencies"]
    folder = tmp_path_factory.mktemp("hidden")
    missing = named(whole) - named(line for line in wanted if line[0] != "#")
    missing -= {"pydantic"}  # FastAPI brings it
    assert {"torch", "open-clip-torch"} < missing
    for name in missing:
        module = folder / MODULES.get(name, name.replace("-", "_"))
        module.mkdir()
        text = f"open({str(folder / 'asked')!r}, 'a').write({name!r})\nraise ImportError({name!r})"
        (module / "__init__.py").write_text(text)
    paths = os.pathsep.join([str(folder), str(ROOT)])
    yield {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    asked = folder / "asked"
    assert not asked.exists() or "torch" not in asked.read_text()


@contextlib.contextmanager
def serving(environment, *arguments, command=(sys.executable, SERVICE / "app.py"), cwd=None):
    """A service that answers: its process, and where it is."""
    whole = [*map(str, (*command, *arguments, "--host", "127.0.0.1", "--port", "0"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(whole, env=environment, stderr=pipe, text=True, cwd=cwd) as process:
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if url := re.search(r"running on (http://127\.0\.0\.1:\d+)", line):
                    break
            else:
                raise AssertionError("".join(said))
            yield process, url[1]
        finally:
            process.kill()
            process.communicate()


def stopped(process):
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


@pytest.fixture
def parts(monkeypatch):
    """The example's modules, imported as its own scripts do."""
    monkeypatch.syspath_prepend(str(SERVICE))
    names = ("app", "metrics", "owner", "worker")
    yield lambda name: __import__(name)
    for name in names:
        sys.modules.pop(name, None)


# What another process sends: most of it learns, some only asks, and now and then a person says.
CLIENT = """
import json, sys
import numpy as np
from worker import Client

client, rows, start = Client(sys.argv[1]), np.load(sys.argv[2]), 0
for i, size in enumerate(np.random.default_rng(len(rows)).integers(1, 9, int(sys.argv[3]))):
    part = rows[start : start + size]
    if i % 100 == 70:
        what, answer = "feedback", client.feedback(part, noise=bool(i % 200 == 70))
    else:
        what = "judge" if i % 10 == 5 else "learn"
        answer = client.features(part, learn=what == "learn")
    noise = bool(i % 200 == 70)
    print(json.dumps([what, int(start), int(size), noise, answer]))
    start += size
"""


def sent_by(environment, url, folder, names, count):
    """What clients in processes of their own sent at the same time, and what they were told."""
    paths = os.pathsep.join([str(SERVICE), str(ROOT)])
    processes = []
    for seed, name in enumerate(names):
        np.save(folder / f"{name}.npy", world(seed + 1, 8 * count + seed)[1])
        command = [sys.executable, "-c", CLIENT, url, str(folder / f"{name}.npy"), str(count)]
        processes.append(
            subprocess.Popen(
                command, env={**environment, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True
            )
        )
    logs = {}
    for name, process in zip(names, processes, strict=True):
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        logs[name] = [json.loads(line) for line in output.splitlines()]
    return logs


def as_sent(verdicts):
    """Verdicts after their way through JSON."""
    return json.loads(json.dumps([asdict(verdict) for verdict in verdicts]))


def moments(log):
    """Between which two counts of seen images each question was answered, by its client's log."""
    seen = [answer["seen"] for *_, answer in log]
    for i, (what, start, size, _, answer) in enumerate(log):
        if what == "judge":
            before = next((n for n in reversed(seen[:i]) if n is not None), 0)
            after = next((n for n in seen[i:] if n is not None), np.inf)
            yield before, after, slice(start, start + size), answer["verdicts"]


def replayed(detector, folder, logs):
    """Do in one process what the service did, in its order; all verdicts are to be the same."""
    rows = {name: np.load(folder / f"{name}.npy") for name in logs}
    changes, asked = [], []
    for name, log in logs.items():
        asked += [(name, *moment) for moment in moments(log)]
        for what, start, size, noise, answer in log:
            if what != "judge":
                labelled = answer.get("labelled", -1)  # between two updates, the order of answers
                part = rows[name][start : start + size]
                changes.append((answer["seen"], labelled, part, noise, answer))

    def answer_questions():
        now = detector.seen
        for entry in [e for e in asked if e[1] <= now <= e[2]]:
            name, _, _, part, verdicts = entry
            if as_sent(detector.predict(rows[name][part])) == verdicts:
                asked.remove(entry)

    answer_questions()
    for seen, labelled, part, noise, answer in sorted(changes, key=lambda change: change[:2]):
        if labelled < 0:
            assert as_sent(detector.update(part)) == answer["verdicts"]
            assert detector.seen == seen
        else:
            detector.feedback(part, np.full(len(part), noise))
            assert (detector.seen, detector.labelled) == (seen, labelled)
        answer_questions()
    assert not asked, "what was only asked is not of any moment"


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def parsed_metrics(response):
    """Samples of an OpenMetrics text by name and labels, as strict as its specification."""
    kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert response.headers["content-type"] == kind
    assert response.text.endswith("\n# EOF\n")
    samples, kinds, family = {}, {}, None
    for line in response.text.splitlines()[:-1]:
        if head := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge)", line):
            assert head[1] not in kinds, "a family comes once"
            family, kinds[head[1]] = head[1], head[2]
        elif line.startswith("# HELP"):
            assert line.startswith(f"# HELP {family} ")
        else:
            label = r'[a-z]+="[^"\\\n]*"'
            sample = re.fullmatch(rf"([a-z_]+)(?:\{{({label}(?:,{label})*)\}})? (\S+)", line)
            assert sample, line
            suffix = "_total" if kinds[family] == "counter" else ""
            assert sample[1] == family + suffix
            key = sample[1], sample[2]
            assert key not in samples, line
            samples[key] = float(sample[3])
    return samples


@pytest.mark.slow
def test_a_thousand_requests_of_two_processes(state, slim, tmp_path):
    """All are answered, each image counts once, and what was said is what one process would say."""
    first = tmp_path / "first.h5"
    shutil.copy(state, first)
    with serving(slim, "--state", state) as (process, url):
        logs = sent_by(slim, url, tmp_path, ("left", "right"), 500)
        with httpx.Client(base_url=url) as asking:
            health, metrics = asking.get("/health").json(), asking.get("/metrics")
            second = [sys.executable, SERVICE / "app.py", "--state", state]
            refused = subprocess.run(second, env=slim, capture_output=True, text=True, check=False)
        code, said = stopped(process)
    assert code == 0, said
    assert "Traceback" not in said
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert line.startswith(f"error: {state} is written by another process that runs")

    every = [entry for log in logs.values() for entry in log]
    assert len(every) == 1000
    learned = sum(size for what, _, size, *_ in every if what == "learn")
    heard = sum(size for what, _, size, *_ in every if what == "feedback")
    assert health["seen"] == learned > 3000
    assert health["labelled"] == heard > 10
    assert all(len(log) == 500 for log in logs.values())
    turns = [[entry[4]["seen"] for entry in log if entry[0] == "learn"] for log in logs.values()]
    assert max(turns[0][0], turns[1][0]) < min(turns[0][-1], turns[1][-1]), "they took turns"

    samples = parsed_metrics(metrics)
    answers = Counter(
        (verdict["answer"], what == "learn")
        for what, *_, answer in every
        for verdict in answer.get("verdicts", ())
    )
    for kind in ("noise", "unsure", "clean"):
        for taught in (True, False):
            labels = f'answer="{kind}",learned="{str(taught).lower()}"'
            assert samples["zsntta_images_total", labels] == answers[kind, taught]
    assert {kind for kind, _ in answers} >= {"noise", "clean"}
    requests = samples["zsntta_requests_total", 'path="/features",status="200"']
    requests += samples["zsntta_requests_total", 'path="/feedback",status="200"']
    assert requests == 1000
    assert samples["zsntta_errors_total", None] == 0
    assert samples["zsntta_seen", None] == learned
    assert samples["zsntta_evidence", None] == health["evidence"]
    assert samples["zsntta_threshold", None] == health["threshold"]

    detector = OnlineDetector.load(first)
    replayed(detector, tmp_path, logs)
    assert_same_state(OnlineDetector.load(state).state(), detector.state())


def test_the_page_has_every_file_and_only_options_that_there_are():
    page = (SERVICE / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in SERVICE.iterdir() if path.is_file()}
    assert {name for name in files if f"`{name}`" in page} == files - {
        "README.md", "Dockerfile.dockerignore",
    }  # fmt: skip
    scripts = "".join((SERVICE / name).read_text() for name in ("app.py", "worker.py"))
    of_others = {"--data-binary", "--dataset", "--model", "--stop-timeout", "--watch", "--workers"}
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert options - of_others <= set(re.findall(r'"(--[a-z-]+)"', scripts))
    assert "--warm" in options


def image_command(folder):
    """What the Dockerfile runs, in a folder where it put its files; and its health check."""
    words = (SERVICE / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    lines = [line.split(maxsplit=1) for line in words if line and line[0] != "#"]
    by_name = {name: rest for name, rest in lines if name != "COPY"}
    target = by_name["WORKDIR"]
    for copied in (rest.split() for name, rest in lines if name == "COPY"):
        for source in copied[:-1]:
            assert (ROOT / source).exists(), source
            if copied[-1].rstrip("/") == target:
                shutil.copy(ROOT / source, folder)
    assert by_name["USER"] != "root"
    assert by_name["VOLUME"] == "/state"
    command = json.loads(by_name["ENTRYPOINT"]) + json.loads(by_name["CMD"])
    assert command[:2] == ["python", "app.py"]
    assert command[-2:] == ["--state", "/state/state.h5"]
    return command, json.loads(by_name["HEALTHCHECK"].partition("CMD ")[2])


def written(path, rows, encoder=ENCODER, normalized=False):
    hdf5.write_features(
        path, kind=DATASET, name=path.stem, encoder=encoder, source={}, blocks=[rows],
        labels=np.full(len(rows), -1, np.int32), sample_ids=[str(i) for i in range(len(rows))],
        normalized=normalized,
    )  # fmt: skip
    return path


def test_the_images_command_warms_up_once_and_goes_on_where_it_stopped(
    state, slim, tmp_path, parts
):
    """The command of the Dockerfile, in the files that it copies; the host and port are ours."""
    warm, rows = written(tmp_path / "mine.h5", world(10, 300)[1]), world(7, 200)[1]
    there, worker = tmp_path / "app", parts("worker")
    there.mkdir()
    command, check = image_command(there)
    command = [sys.executable, *command[1:-1], state]
    detector = OnlineDetector.load(state)
    detector.update(world(10, 300)[1][np.random.default_rng(0).permutation(300)])
    for part in np.split(rows, [1]):
        with (
            serving(slim, "--warm", warm, command=command, cwd=there) as (process, url),
            worker.Client(url) as client,
        ):
            health = client.health()
            assert (health["seen"], health["stage"]) == (detector.seen, "adapted")
            with pytest.raises(worker.Refused, match="400: features have 8 dims"):
                client.features(np.ones((2, 8)))
            assert client.features(part)["verdicts"] == as_sent(detector.update(part))
            is_well = [
                sys.executable,
                *(word.replace("http://127.0.0.1:8000", url) for word in check[1:]),
            ]
            assert url in is_well[-1]
            subprocess.run(is_well, check=True, env=slim)
            assert stopped(process)[0] == 0
    assert subprocess.run(is_well, check=False, env=slim, capture_output=True).returncode
    assert_same_state(OnlineDetector.load(state).state(), detector.state())


def test_a_killed_service_leaves_its_last_state_whole_and_one_that_is_stopped_all(
    state, slim, parts
):
    rows, worker = world(8, 4000)[1], parts("worker")
    detector, done = OnlineDetector.load(state), 0

    def send(client, least):
        """Four images at a time, until nobody answers: how many were answered."""
        for i in range(done, len(rows), 4):
            try:
                assert client.features(rows[i : i + 4])["seen"] == i + 4
            except httpx.HTTPError:
                return i
            if i == done + least:
                end.start()
        raise AssertionError("it answers all the same")

    for number in (signal.SIGKILL, signal.SIGTERM):
        with (
            serving(slim, "--state", state, "--save-every", 20) as (process, url),
            worker.Client(url) as client,
        ):
            end = threading.Timer(0.05, process.send_signal, [number])
            assert client.health()["seen"] == done
            with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as rude:
                rude.sendall(b"POST /features?dim=16 HTTP/1.1\r\nHost: a\r\n")
                rude.sendall(b"Content-Length: 64\r\n\r\nhalf of it, and no more")
            answered = send(client, 100)
            process.wait(60)
            assert "Traceback" not in process.stderr.read()
        before, done = done, OnlineDetector.load(state).seen
        assert before < done <= answered + 4 * (number == signal.SIGKILL)
        for i in range(before, done, 4):
            detector.update(rows[i : i + 4])
        assert_same_state(OnlineDetector.load(state).state(), detector.state())
    assert done == answered, "all that was answered, and nothing else"


def asking(parts, state, most=8):
    """A client of a service in this process, and its owner."""
    from starlette.testclient import TestClient

    owner = parts("owner").Owner(OnlineDetector.load(state), state, 1000, 60)
    return TestClient(parts("app").service(owner, most)), owner


def body(rows):
    return np.asarray(rows, "<f4").tobytes()


@pytest.mark.parametrize(
    ("content", "query", "status", "error"),
    [
        (body(np.ones((2, 16))), "", 422, "dim is missing"),
        (body(np.ones((2, 16))), "dim=x", 422, "dim must be a whole number"),
        (body(np.ones((2, 16))), "dim=0", 400, "must be N x 0 numbers in float32"),
        (body(np.ones((2, 16))), "dim=-16", 400, "must be N x -16 numbers"),
        (body(np.ones((2, 16))), "dim=8", 400, "features have 8 dims, text_features have 16."),
        (body(np.ones((2, 16)))[:-1], "dim=16", 400, "has 127 bytes, must be N x 16 numbers"),
        (b"", "dim=16", 400, "the body has 0 bytes"),
        (body([[1.0] * 15 + [np.nan]]), "dim=16", 400, "1 features are not finite"),
        (body([[1.0] * 15 + [np.inf]]), "dim=16", 400, "1 features are not finite"),
        (body(np.ones((9, 16))), "dim=16", 413, "send at most 8 images at a time"),
        (
            body(np.ones((2, 16))),
            "dim=16&learn=perhaps",
            422,
            "learn must be true or false",
        ),
    ],
)
def test_what_will_not_do_is_told_in_one_line_and_changes_nothing(
    state, parts, content, query, status, error
):
    client, owner = asking(parts, state)
    for sent in (content, iter([content[:50], content[50:]])):  # the second says no length
        response = client.post(f"/features?{query}", content=sent)
        assert response.status_code == status
        [(key, said)] = response.json().items()
        assert key == "error"
        assert error in said
        assert "\n" not in said
    assert owner.now.seen == owner.unsaved == 0
    assert parsed_metrics(client.get("/metrics"))["zsntta_errors_total", None] == 2


def test_feedback_wants_to_know_what_the_images_are(state, parts):
    client, owner = asking(parts, state)
    response = client.post("/feedback?dim=16", content=body(np.ones((2, 16))))
    assert (response.status_code, response.json()) == (422, {"error": "noise is missing"})
    assert client.get("/nowhere").json() == {"error": "Not Found"}
    assert client.get("/features").status_code == 405
    client.post("/feedback?dim=16&noise=true", content=body(np.eye(2, 16)))
    assert (owner.now.labelled, owner.unsaved) == (2, 2)
    samples = parsed_metrics(client.get("/metrics"))
    assert samples["zsntta_requests_total", 'path="other",status="404"'] == 1
    assert samples["zsntta_labelled", None] == 2
    assert ("zsntta_threshold", None) not in samples, "there was no image yet"


def test_a_state_that_cannot_be_written_is_told_and_written_later(state, parts, monkeypatch):
    from zsntta_cli.errors import StoreError

    client, owner = asking(parts, state)
    client.post("/features?dim=16", content=body(world(9, 8)[1]))
    save = owner.detector.save

    def full(path):
        raise StoreError(f"cannot write {path}: No space left on device.")

    monkeypatch.setattr(owner.detector, "save", full)
    with pytest.raises(StoreError):
        owner.save()
    health = client.get("/health").json()
    assert (health["status"], health["unsaved"]) == ("not saving", 8)
    assert "No space left" in health["save_error"]
    with pytest.raises(StoreError), owner.saving():
        pass  # at the end it is an error, and the exit code says so
    monkeypatch.setattr(owner.detector, "save", save)
    owner.save()
    assert client.get("/health").json()["status"] == "ok"
    assert parsed_metrics(client.get("/metrics"))["zsntta_failed_saves_total", None] == 2
    assert OnlineDetector.load(state).seen == 8


def test_the_state_is_written_after_so_many_seconds_too(state, parts):
    owner = parts("owner").Owner(OnlineDetector.load(state), state, 1000, 0.02)
    with owner.saving():
        owner.learn(world(9, 8)[1])
        for _ in range(3000):
            if owner.saves:
                break
            time.sleep(0.01)
        assert OnlineDetector.load(state).seen == 8
    assert owner.saves == 1, "nothing came since"


def test_what_cannot_be_served_is_told_in_one_line(state, parts, tmp_path, monkeypatch, capsys):
    def started(*arguments):
        monkeypatch.setattr(sys, "argv", ["app.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SERVICE / "app.py"), run_name="__main__")
        return str(ended.value.code)

    before = signal.getsignal(signal.SIGTERM)
    try:
        other = written(tmp_path / "other.h5", world(0, 20)[1], {**ENCODER, "model": "another"})
        unit = written(tmp_path / "unit.h5", np.eye(16, dtype=np.float32), normalized=True)
        broken = tmp_path / "broken.h5"
        broken.write_bytes(b"no state")
        assert "another encoder" in started("--state", state, "--warm", other)
        assert "unit norm" in started("--state", state, "--warm", unit)
        assert "there is no state" in started("--state", tmp_path / "none.h5")
        assert started("--state", broken).startswith("error: ")
        assert started("--state", state, "--most", "0") == "2"
        assert "--most must be above 0" in capsys.readouterr().err
    finally:
        signal.signal(signal.SIGTERM, before)
    assert OnlineDetector.load(state).seen == 0


def test_a_worker_sends_features_of_images(slim, tiny, tmp_path, parts, monkeypatch, capsys):
    """By its own script; the service's state is still that of a detector with an encoder."""
    state, paths = tmp_path / "state.h5", []
    local = NoiseDetector(["circle", "square", "star"], model="tiny", encoder=tiny)
    local.copy().save(state)  # who saves to a file is its one writer
    for i in range(3):
        pixels = np.random.default_rng(i).integers(0, 256, (40, 50, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
        paths.append(str(tmp_path / f"{i}.png"))
    broken = str(tmp_path / "broken.png")
    Path(broken).write_bytes(b"no image")

    def asked(*arguments):
        monkeypatch.setattr(sys, "argv", ["worker.py", *arguments])
        runpy.run_path(str(SERVICE / "worker.py"), run_name="__main__")
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    with serving(slim, "--state", state) as (process, url):
        *verdicts, error = asked(url, paths[0], broken, *paths[1:])
        assert error == {"source": broken, "error": error["error"]}
        for verdict, mine in zip(verdicts, local.update(paths), strict=True):
            assert (verdict["source"], verdict["answer"]) == (mine.source, mine.answer)
            assert verdict["score"] == pytest.approx(mine.score, abs=1e-4)
        assert len(asked(url, "--no-learn", *paths)) == 3
        assert asked(url, "--noise", paths[0]) == [{"seen": 3, "labelled": 1}]
        assert stopped(process)[0] == 0
    kept = NoiseDetector.load(state)
    assert (kept.seen, kept.labelled) == (3, 1)


def test_a_worker_is_told_that_nobody_answers(parts, monkeypatch):
    with socket.socket() as free:  # nobody listens
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(
            sys, "argv", ["worker.py", f"http://127.0.0.1:{free.getsockname()[1]}", "a.png"]
        )
        with pytest.raises(SystemExit, match="does not answer"):
            parts("worker").main()

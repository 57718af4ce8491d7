"""examples/service: by its real command, with images in order, stopped and started again."""

import contextlib
import io
import os
import pickle
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from PIL import Image

from zsntta_cli import Detector, encode
from zsntta_cli.datasets.drawn.builtin import render

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "examples" / "service"


@pytest.fixture(scope="module")
def pictures():
    """The bytes of 60 built-in pictures, every tenth of them a letter."""
    made = []
    for i in range(60):
        content = io.BytesIO()
        render("glyphs" if i % 10 == 9 else "shapes").read(i).save(content, "PNG")
        made.append(content.getvalue())
    return made


@contextlib.contextmanager
def serving(folder):
    """A service in a process of its own, by a client of it; it is stopped as a system stops it."""
    command = (sys.executable, "-m", "uvicorn", "app:app", "--app-dir", str(SERVICE), "--port", "0")
    environment = {**os.environ, "STATE": "service.pickle", "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=pipe, text=True) as process:
        try:
            said = ""
            while not (url := re.search(r"running on (http://127\.0\.0\.1:\d+)", said)):
                line = process.stderr.readline()
                assert line, said
                said += line
            with httpx.Client(base_url=url[1], timeout=60) as client:
                yield client
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        finally:
            process.kill()


def test_it_decides_in_order_learns_and_goes_on_after_it_was_stopped(tmp_path, pictures, tiny):
    alone = Detector.of(tiny, ["circle", "square", "star"])

    def features(content):
        return encode(tiny, Image.open(io.BytesIO(content)))

    with serving(tmp_path) as client:
        for picture in pictures[:30]:
            [row] = alone.update(features(picture)).rows()
            assert client.post("/images", content=picture).json() == row
        judged = client.post("/images", params={"learn": False}, content=pictures[9])
        assert judged.json() == alone.predict(features(pictures[9])).rows()[0]
        taught = client.post("/feedback", params={"noise": True}, content=pictures[9])
        alone.feedback(features(pictures[9]), [True])
        assert taught.json() == {"labelled": 1}
    with serving(tmp_path) as client:
        assert client.get("/health").json() == {
            "classes": ["circle", "square", "star"], "seen": 30, "ready": False,
        }  # fmt: skip
        for picture in pictures[30:]:
            [row] = alone.update(features(picture)).rows()
            assert client.post("/images", content=picture).json() == row


def test_what_is_no_image_is_one_line_and_teaches_nothing(tmp_path, monkeypatch, pictures):
    from fastapi.testclient import TestClient

    monkeypatch.chdir(tmp_path)
    uploaded = {"files": {"file": ("photo.png", pictures[0], "image/png")}}
    with TestClient(runpy.run_path(str(SERVICE / "app.py"))["app"]) as client:
        for path in ("/images", "/feedback?noise=true"):
            for content in (b"no image", pictures[0][:60], b""):
                refused = client.post(path, content=content)
                assert refused.status_code == 400
                assert "\n" not in refused.json()["error"]
            for sent in (uploaded, {"json": {"image": "iVBO" * 9999}}):
                refused = client.post(path, **sent)
                assert refused.status_code == 415
                assert "--data-binary" in refused.json()["error"]
                assert len(refused.text) < 200
        assert client.post("/feedback", content=pictures[0]).status_code == 422, "no truth"
    assert pickle.loads(Path("service.pickle").read_bytes())[1].seen == 0

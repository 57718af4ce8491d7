"""State files: whole or not at all, versioned, looked at before they are believed."""

import gc
import subprocess
import sys

import h5py
import numpy as np
import pytest
from made import damaged
from small_detectors import COUNT, DIM, NAMES, SMALL, assert_same, detector, world

from zsntta_cli import OnlineDetector
from zsntta_cli.cache.hdf5 import read_state, write_table
from zsntta_cli.detection import kept
from zsntta_cli.errors import StoreError

TEXT, FEATURES, LABELS = world()


@pytest.mark.parametrize("cut", [0, 1, 70, 101])
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("method", SMALL)
def test_what_is_loaded_goes_on_as_if_it_had_never_stopped(tmp_path, method, classes, cut):
    online = detector(method, classes=classes)
    online.identity = {"model": "m", "logit_scale": 20.0}
    online.update(FEATURES[:cut])
    online.feedback(FEATURES[: cut // 2], LABELS[: cut // 2] < 0)
    online.save(tmp_path / "state.h5")
    loaded = OnlineDetector.load(tmp_path / "state.h5")
    resumed = detector(method, classes=classes)
    resumed.resume(tmp_path / "state.h5")
    assert (loaded.class_names, loaded.seen, loaded.labelled) == (NAMES[:classes], cut, cut // 2)
    assert (loaded.identity, loaded.settings) == (online.identity, online.settings)
    for other in (loaded, resumed, online.copy()):
        assert_same(other.predict(FEATURES), online.predict(FEATURES))
        assert_same(other.decide_all(FEATURES), online.decide_all(FEATURES))
    assert_same(resumed.update(FEATURES[cut:]), loaded.copy().update(FEATURES[cut:]))
    assert_same(online.update(FEATURES[cut:]), loaded.update(FEATURES[cut:]))


def test_settings_of_numpy_and_odd_names_are_kept_too(tmp_path):
    names = ("gelbe Tulpe", "\u7334", "\udcff")
    online = detector(class_names=names, queue=np.int64(32), ridge_tail=np.float64(5))
    online.update(FEATURES)
    online.save(tmp_path / "state.h5")
    loaded = OnlineDetector.load(tmp_path / "state.h5")
    assert (loaded.class_names, loaded.settings) == (names, online.settings)
    assert loaded.settings["queue"] == 32


def test_a_state_of_other_classes_encoders_or_settings_is_refused(tmp_path):
    path = tmp_path / "state.h5"
    first = detector()
    first.identity = {"model": "ViT-B-16", "precision": "fp32"}
    first.update(FEATURES)
    first.save(path)
    elsewhere = detector()
    elsewhere.identity = {"model": "RN50", "precision": "fp32"}
    for other, said in [
        (detector(class_names=("a", "b", "c")), "other classes (cat, dog, a horse; here a, b, c)"),
        (elsewhere, "another encoder (model: ViT-B-16, here RN50)"),
        (detector(text=TEXT[::-1]), "other text features: another encoder's, or of another prompt"),
        (detector("zs-clip"), "other settings (method: ridge, here zs-clip)"),
        (detector(scale=21.0), "other settings (logit_scale: 20.0, here 21.0)"),
        (detector(normalized=True), "other settings (normalized: False, here True)"),
        (detector(ridge_ring=65), "other settings (ridge_ring: 64, here 65)"),
        (detector(seed=1), "other settings (seed: 0, here 1)"),
    ]:
        other.update(FEATURES[:20])
        with pytest.raises(StoreError) as refused:
            other.resume(path)
        assert str(refused.value).startswith(f"{path} is of {said}")
        assert str(refused.value).endswith("take another file for these.")
        assert other.seen == 20


def test_a_file_is_there_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "state.h5"
    online = detector()
    online.update(FEATURES[:50])
    online.save(path)
    before = path.read_bytes()
    online.update(FEATURES[50:])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StoreError, match=r"cannot write .*state.h5: No space left"):
        online.save(path)
    assert path.read_bytes() == before
    names = {path.name for path in tmp_path.iterdir()}
    assert names - {".state.h5.lock"} == {"state.h5"}
    assert OnlineDetector.load(path).seen == 50


def test_no_file_and_files_of_another_kind(tmp_path, cache):
    with pytest.raises(StoreError, match=r"no state at .*nothing.h5"):
        OnlineDetector.load(tmp_path / "nothing.h5")
    (tmp_path / "text.h5").write_text("hello")
    for path in (tmp_path / "text.h5", cache / "tiny" / "shapes.h5"):
        with pytest.raises(StoreError, match="is not a whole zsntta state file") as refused:
            OnlineDetector.load(path)
        assert "\n" not in str(refused.value)
    with pytest.raises(StoreError, match=r"cannot read .*: Is a directory|no regular file"):
        OnlineDetector.load(tmp_path)


def test_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "state.h5"
    detector().save(path)
    with h5py.File(path, "r+") as file:
        assert file.attrs["state_format"] == 1
        file.attrs["state_format"] = 2
    with pytest.raises(StoreError, match="state_format is 2, of a newer version, must be 1"):
        OnlineDetector.load(path)


def test_what_other_rules_learned_is_refused_in_a_line_that_says_what_to_do(tmp_path):
    path = tmp_path / "s.h5"
    for method in SMALL:
        detector(method).save(path)
        header, columns = read_state(path)
        header.pop("revision")  # as it was before it was said
        signed(path, header, columns)
        if method != "ridge":
            assert OnlineDetector.load(path).method == method
            continue
        with pytest.raises(StoreError, match=r"revision 1, here \d\).*begin anew with another"):
            OnlineDetector.load(path)


def test_a_changed_number_is_seen(tmp_path):
    path = tmp_path / "state.h5"
    online = detector()
    online.update(FEATURES)
    online.save(path)
    with h5py.File(path, "r+") as file:
        file["learned.method.sums.mass"][0] += 1
    with pytest.raises(StoreError, match="is damaged: its content does not match its digest"):
        OnlineDetector.load(path)


def signed(path, header, columns):
    """A file as a stranger may write it, digest and all."""
    header = {k: v for k, v in header.items() if k != "digest"}
    arrays = {k: np.array(v, object) if isinstance(v, tuple) else v for k, v in columns.items()}
    write_table(path, arrays, {**header, "digest": kept._digest(header, arrays)})


@pytest.mark.parametrize("form", [1, 3, "x" * 999, None, [2]])
def test_another_form_is_refused_and_left_as_it_is(tmp_path, form):
    path = tmp_path / "state.h5"
    detector().save(path)
    header, columns = read_state(path)
    signed(path, {**header, "form": form}, columns)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="which cannot be continued: begin anew") as refused:
        OnlineDetector.load(path)
    assert len(str(refused.value)) < 400
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        ({"method": "tent"}, {}, "method is 'tent', must be one of"),
        ({"method": None}, {}, "method is 'None'"),
        ({"settings": []}, {}, "its settings are no JSON object"),
        ({"settings": {"x": 1}}, {}, "x is no setting of ridge"),
        ({"settings": {"class_names": ["a"]}}, {}, "class_names"),
        ({"logit_scale": "100"}, {}, "logit_scale is '100'"),
        ({"normalized": 1}, {}, "it does not say whether features are normalised"),
        ({"encoder": 3}, {}, "its encoder are no JSON object"),
        ({"more": 3}, {}, "its more are no JSON object"),
        ({"numbers": {}}, {}, "is missing"),
        ({}, {"class_names": ("a", "b")}, "2 class names for 3 rows"),
        ({}, {"class_names": np.zeros(3)}, "it has no classes"),
        ({}, {"text_features": np.zeros((3, DIM))}, "text_features have a row of zeros"),
        ({}, {"x": np.zeros(3)}, "'x' is nothing that a detector learns"),
        ({}, {"learned.x": np.zeros(3)}, "not the state of such a detector: x is unknown"),
        (
            {},
            {"learned.method.sums.seen": np.zeros(3)},
            "method.sums.seen is there twice",
        ),
    ],
)
def test_what_a_stranger_says_is_looked_at(tmp_path, header, columns, message):
    path = tmp_path / "state.h5"
    online = detector()
    online.update(FEATURES)
    online.save(path)
    known = read_state(path)
    signed(path, *known)
    assert OnlineDetector.load(path).seen == COUNT
    signed(path, {**known[0], **header}, {**known[1], **columns})
    with pytest.raises(StoreError, match="holds no detector: ") as refused:
        OnlineDetector.load(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_damaged_files_are_refused_in_a_line(tmp_path):
    path, generator = tmp_path / "state.h5", np.random.default_rng(0)
    online = detector("adand")
    online.update(FEATURES)
    online.save(path)
    content, refused = path.read_bytes(), 0
    for _ in range(150):
        path.write_bytes(damaged(content, generator))
        try:
            assert OnlineDetector.load(path).seen == COUNT  # bytes that say nothing
        except StoreError:
            refused += 1
    assert refused > 50


OWNING = """
import sys
from zsntta_cli import OnlineDetector, ZsnttaError
detector = OnlineDetector([[1.0, 0.0], [0.0, 1.0]], 100.0)
try:
    detector.save(sys.argv[1])
except ZsnttaError as error:
    sys.exit(str(error))
print("saved", flush=True)
sys.stdin.readline()
"""


def owner(path):
    command = [sys.executable, "-c", OWNING, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def test_one_process_writes_a_state_at_a_time(tmp_path):
    path = tmp_path / "s.h5"
    wrong = "is written by another process that runs"
    with owner(path) as first:
        assert first.stdout.readline() == "saved\n"
        with owner(path) as second:
            assert wrong in second.communicate(timeout=60)[1]
        before = path.read_bytes()
        with pytest.raises(StoreError, match=wrong):
            detector().save(path)
        assert path.read_bytes() == before
        assert OnlineDetector.load(path).seen == 0, "reading is for all"
        first.kill()
    one, other = detector(), detector()
    one.save(path)
    other.save(path)  # another of this process
    with owner(path) as third:
        assert wrong in third.communicate(timeout=60)[1]
    del one, other
    gc.collect()
    with owner(path) as last:
        assert last.stdout.readline() == "saved\n", "nobody owns it any more"
        last.kill()

"""Arrays as other tools keep them: taken with a note, or refused with the likely reason."""

import h5py
import numpy as np
import pytest
from made import TINY

N, C, D = 60, 5, 16


@pytest.fixture
def arrays():
    generator = np.random.default_rng(0)
    text = generator.normal(size=(C, D)).astype("f4")
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    labels = np.arange(N) % C
    features = (text[labels] * 3 + generator.normal(size=(N, D)) * 0.2).astype("f4")
    return features, labels, text


def take_in(zsntta, name="own", *options, features="f.npz", text="t.npz", encoder="my"):
    texts = ("--text", text) if text else ()
    asked = ("--encoder", encoder, "--features", features, *texts)
    return zsntta("cache", "import", name, *asked, *options)


def save(arrays, turn_text=False, **changed):
    features, labels, text = arrays
    np.savez("f.npz", **{"features": features, "labels": labels} | changed)
    np.savez("t.npz", text_features=text.T if turn_text else text, class_names=list("abcde"))


@pytest.mark.parametrize(("form", "said"), [
    (lambda y: {"labels": y[:, None]}, "a column (N, 1)"),
    (lambda y: {"labels": np.eye(C, dtype="i4")[y]}, "one-hot"),
    (lambda y: {"labels": np.eye(C, dtype="f4")[y]}, "one-hot"),
    (lambda y: {"labels": np.eye(C, dtype=bool)[y]}, "one-hot"),
    (lambda y: {"labels": y[:0], "targets": y}, ""),
])  # fmt: skip
def test_labels_that_are_unambiguous_are_taken(zsntta, arrays, form, said):
    save(arrays, **form(arrays[1]))
    result = take_in(zsntta)
    assert result.exit_code == 0, result.output
    assert "100.00 %" in result.stderr
    assert said in result.stderr


@pytest.mark.parametrize(("form", "reason"), [
    (lambda x, y: {"labels": y + 1}, "seem to be counted from 1"),
    (lambda x, y: {"features": x.T.copy()}, "seem to be (D, N), must be (N, D)"),
    (lambda x, y: {"labels": np.ones((N, C), "i4")}, "one for each feature"),
    (lambda x, y: {"features": np.where(np.arange(N)[:, None] == 7, x * 1e6, x)},
     "1 row of 60 have norms far from"),
    (lambda x, y: {"features": np.where(np.arange(N)[:, None] == 7, x / 1e6, x)}, "row 7 has"),
])  # fmt: skip
def test_what_is_not_is_refused_with_the_likely_reason(zsntta, arrays, form, reason):
    save(arrays, **form(*arrays[:2]))
    result = take_in(zsntta)
    assert result.exit_code == 1
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
    if "row" in reason:
        again = take_in(zsntta, "own", "--as-is")
        assert again.exit_code == 0, again.output
        assert "own: 1 row of 60" in again.stderr


def test_text_of_the_other_way_round_is_turned(zsntta, arrays):
    save(arrays, turn_text=True)
    result = take_in(zsntta)
    assert "(D, C), taken transposed" in result.stderr
    assert "100.00 %" in result.stderr


def test_a_second_set_has_the_scale_of_its_folder(zsntta, arrays):
    save(arrays)
    assert take_in(zsntta, "own", "--logit-scale", "50").exit_code == 0
    second = take_in(zsntta, "other", text=None)
    assert second.exit_code == 0, second.output
    assert "other: logit scale 50, as features/my/own.h5 has it" in second.stderr
    third = take_in(zsntta, "third", "--logit-scale", "100", text=None)
    assert "logit_scale: 50.0, not 100.0" in third.stderr


def test_hdf5_of_other_tools_is_offered_by_name(zsntta, arrays):
    features, labels, _ = arrays
    save(arrays)
    with h5py.File("f.h5", "w") as file:
        file["deep/embeddings"], file["y"], file["names"] = features, labels, ["a", "b"]
    refused = take_in(zsntta, features="f.h5", text=None)
    assert refused.exit_code == 1
    assert "name a data set in it, as f.h5:deep/embeddings." in refused.stderr
    result = take_in(zsntta, "own", "--labels", "f.h5:y", features="f.h5:deep/embeddings")
    assert result.exit_code == 0, result.output
    assert "100.00 %" in result.stderr
    wrong = take_in(zsntta, features="f.h5:x")
    assert "'x' is no data set of it: it has deep/embeddings, y" in wrong.stderr


def test_a_feature_file_is_read_as_one(zsntta, arrays):
    save(arrays)
    assert take_in(zsntta).exit_code == 0
    again = take_in(zsntta, "copy", features="features/my/own.h5", text=None, encoder="my2")
    assert again.exit_code == 0, again.output
    assert zsntta("cache", "show", "copy", *TINY[:0], "--encoder", "my2").exit_code == 0

"""Published features: what is pushed comes back to the bit, and nothing else is taken for it."""

import shutil
from types import SimpleNamespace

import huggingface_hub
import numpy as np
import pytest
from feature_files import write_features
from huggingface_hub import constants
from made import refused
from web_hub import REVISION, local_hub

from zsntta_cli.cache import store
from zsntta_cli.cache.sharing import pull, push
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.errors import StoreError

REPOSITORY = "someone/features"
SETS = {"pets", "birds", "sky", "sand", "noise-gaussian", "words-nouns"}


@pytest.fixture
def uploads(tmp_path, monkeypatch):
    """What is uploaded is in `published`."""

    class Api:
        def create_repo(self, name, *, repo_type, exist_ok):
            assert (name, repo_type, exist_ok) == (REPOSITORY, "dataset", True)

        def upload_folder(self, *, repo_id, repo_type, folder_path, commit_message):
            assert (repo_id, repo_type, bool(commit_message)) == (REPOSITORY, "dataset", True)
            shutil.copytree(folder_path, tmp_path / "published", dirs_exist_ok=True)
            return SimpleNamespace(oid=REVISION)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    return tmp_path / "published"


@pytest.fixture
def serve(uploads, tmp_path, monkeypatch):
    """Serves what was uploaded, to a library of the hub whose cache is empty."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    return lambda: local_hub(monkeypatch, {REPOSITORY: uploads})


@pytest.fixture
def hub(serve, features):
    """A repository with all of the made-up features."""
    pushed(features)
    with serve() as server:
        yield server


def pushed(root, names=(), **values):
    return push(REPOSITORY, root, names, may=True, **values)


def pulled(root, names=(), encoder=None, at=""):
    return list(pull(REPOSITORY + at, root, names, encoder, print))


def write(root, name, ids=("0", "1"), source=(), **encoder):
    """A file of two images of no class."""
    write_features(
        root / f"made/{name}.h5", kind=DATASET, name=name, source=dict(source),
        encoder={"model": "made-up", "logit_scale": 20.0} | encoder,
        blocks=[np.eye(2, 16, dtype=np.float16)], labels=np.full(2, -1, np.int32), sample_ids=ids,
    )  # fmt: skip


def test_all_that_a_file_holds_comes_back(hub, features, tmp_path):
    done = pulled(tmp_path / "here")
    assert {one.path.stem for one, is_new in done if is_new} == SETS
    for one, _ in done:
        before, after = store.read(features / "made" / one.path.name), store.read(one.path)
        assert store.read_sample_ids(before.path) == store.read_sample_ids(after.path)
        for name in ("seal", "kind", "source", "machine", "created"):  # a seal covers the rest
            assert getattr(before, name) == getattr(after, name)
    again = pulled(tmp_path / "here", at=f"@{REVISION}")
    assert not any(is_new for _, is_new in again)


def test_nothing_is_replaced_or_mixed_in(hub, features, tmp_path):
    root = tmp_path / "here"
    (root / "made").mkdir(parents=True)
    shutil.copy(features / "made/birds.h5", root / "made/pets.h5")
    before = (root / "made/pets.h5").read_bytes()
    with refused("pets.h5 holds different features", error=StoreError):
        pulled(root, ["pets"])
    assert (root / "made/pets.h5").read_bytes() == before
    (root / "made/pets.h5").unlink()
    write(root, "own", logit_scale=21.0)
    with refused("encoder (logit_scale is 21.0, not 20.0)", error=StoreError):
        pulled(root, ["pets"])
    assert [path.name for path in (root / "made").glob("*.h5")] == ["own.h5"]


@pytest.mark.parametrize("where", ["features", "name", "end"])
def test_a_file_that_fails_its_digest_is_not_kept(serve, features, uploads, tmp_path, where):
    pushed(features, ("pets",))
    path = uploads / "made" / "pets.h5"
    content = bytearray(path.read_bytes())
    if where == "features":
        content[content.index(store.read(path).image_features[7:8].tobytes())] ^= 1
    elif where == "name":
        content = (features / "made/birds.h5").read_bytes()
    else:
        content = content[:-2000]
    path.write_bytes(content)
    with serve(), pytest.raises(StoreError, match=r"does not match|of 'birds'|not a complete"):
        pulled(tmp_path / "here")
    assert not list((tmp_path / "here").rglob("*.h5"))


def test_without_a_network_the_hubs_copy_serves_and_else_a_line(hub, tmp_path, monkeypatch):
    pulled(tmp_path / "here", ["pets"])
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert pulled(tmp_path / "there", ["pets"])
    with refused("cannot reach other/one on the hub", error=StoreError):
        list(pull("other/one", tmp_path, (), None, print))


def test_a_second_push_keeps_the_first(uploads, features, tmp_path):
    with refused("the terms of", "pets", "--i-may", error=StoreError):
        push(REPOSITORY, features)
    assert not uploads.exists()
    push(REPOSITORY, features, ("noise-gaussian",))  # of our own making
    write(tmp_path, "shapes")
    push(REPOSITORY, tmp_path)
    paths, commit = pushed(features, ("sky",))
    assert ([path.name for path in paths], commit) == (["sky.h5"], REVISION)
    assert {p.name for p in uploads.rglob("*.*")} == {"noise-gaussian.h5", "shapes.h5", "sky.h5"}


def test_without_ids_no_name_is_in_any_byte(serve, uploads, tmp_path):
    root = tmp_path / "mine"
    ids = [f"/home/someone/{name}.jpg" for name in ("holiday", "wedding")]
    write(
        root, "own", ids, {"images": 2, "skipped": ["/home/someone/broken.jpg"]},
        model="local-dir:/home/someone/clip", pretrained="/home/someone/w.pt",
    )  # fmt: skip
    with refused("name folders of this machine", "--without-ids", error=StoreError):
        pushed(root)
    pushed(root, without_ids=True)
    content = (uploads / "made/own.h5").read_bytes()
    assert b"/home" not in content
    assert b"wedding" not in content
    with serve():
        ((done, _),) = pulled(tmp_path / "here")
        assert done.digest == store.read(root / "made/own.h5", rows=False).digest
        assert store.read_sample_ids(done.path) == ("00000", "00001")
        assert store.read(done.path).identity["pretrained"] == "w.pt"
        assert not pulled(root)[0][1], "the model in its folder is the same one elsewhere"


def test_the_commands(hub, features, zsntta):
    result = zsntta("cache", "push", REPOSITORY, "sky", "--i-may", "--features-dir", features)
    assert result.stdout.endswith(f"to download them: zsntta cache pull {REPOSITORY}@{REVISION}\n")
    for there in ("", ", already exists"):
        result = zsntta("cache", "pull", REPOSITORY, "sky")
        assert result.stdout == f"features/made/sky.h5: 300 images{there}\n"
    result = zsntta("cache", "pull", REPOSITORY, "dogs")
    assert (result.exit_code, result.stdout) == (1, "")

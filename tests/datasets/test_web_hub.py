"""CLIP_benchmark's sets from the hub: fetched once, of one revision, filed under a known name."""

import pytest
from made import fails, refused
from web_hub import REVISION, local_hub
from web_writer import write_web_set

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.datasets.names import SetName

LABELS, NAMES = [1, 0, 1, 0, 2], ["car", "bus", "van"]
CARS = "clip-benchmark/wds_cars"


def fetched(hub):
    """The files that were fetched so far, after their revision."""
    paths = (path.partition("/resolve/")[2] for way, path in hub.asked if way == "GET")
    return {path for path in paths if path}


@pytest.fixture
def published(tmp_path):
    root = tmp_path / "published"
    write_web_set(root, LABELS, NAMES, ["a photo of a {c}.", "a {c}."], a_shard=2)
    (root / "train").mkdir()
    (root / "train" / "0.tar").write_bytes(b"nobody asks for it")
    (root / "README.md").write_text("nor for this")
    return root


@pytest.mark.parametrize(
    ("spec", "name"),
    [(CARS, "wds_cars"), ("clip-benchmark/wds_vtab-cifar10", "cifar10"),
     ("clip-benchmark/wds_imagenet_sketch", "imagenet-sketch"),
     ("djghosh/wds_food101_test", "wds_food101_test"), ("djghosh/wds_food101", "wds_food101")],
)  # fmt: skip
def test_the_name_that_a_repository_is_filed_under(spec, name):
    assert str(SetName.parse(spec)) == name
    assert SetName.parse(spec).says_where


def test_extract_fetches_a_set_once(zsntta, tmp_path, published, monkeypatch):
    extract = ("extract", "--model", "tiny", "--noise", "none", "--dataset", CARS)
    with local_hub(monkeypatch, {CARS: published}) as hub:
        result = zsntta(*extract, "--dry-run")
        assert "1 to make (wds_cars)" in result.stdout
        assert not hub.asked
        assert zsntta(*extract).exit_code == 0
        assert fetched(hub) == {
            f"{REVISION}/{file}"
            for file in ("classnames.txt", "zeroshot_classification_templates.txt",
                         "test/nshards.txt", "test/0.tar", "test/1.tar", "test/2.tar")
        }  # fmt: skip
        hub.asked.clear()
        assert "already extracted" in zsntta(*extract).stdout
        assert "1 to make (wds_cars)" in zsntta(*extract, "--overwrite", "--dry-run").stdout
        assert not hub.asked
    live = ("simulate", "--model", "tiny", "--method", "tent", "--id", "wds_cars", "--ratio", "0")
    fails(zsntta(*live), "--dataset NAME=PATH")
    assert zsntta(*live, "--dataset", CARS).exit_code == 0
    features = store.read(tmp_path / "features/tiny/wds_cars.h5")
    assert features.labels.tolist() == LABELS
    assert list(features.class_names) == NAMES
    assert features.source["hub"] == f"{CARS}@{REVISION}"
    own = datasets.load_images(f"mine={published}", tmp_path)
    assert own.identity()["digest"] == features.source["digest"]


def test_a_fetch_that_was_cut_off_goes_on(tmp_path, published, monkeypatch):
    shards = tmp_path / "data" / CARS / "test"
    with local_hub(monkeypatch, {CARS: published}) as hub:
        hub.refuses = ("1.tar",)
        with refused("cannot be fetched"):
            datasets.load_images(CARS, tmp_path / "data")
        arrived = {path.name for path in shards.glob("*.tar")}
        assert "1.tar" not in arrived
        hub.refuses = ("nothing",)
        hub.asked.clear()
        assert len(datasets.load_images(CARS, tmp_path / "data")) == 5
        tars = {path.rpartition("/")[2] for path in fetched(hub) if path.endswith(".tar")}
        assert tars == {"0.tar", "1.tar", "2.tar"} - arrived
    assert len(datasets.load_images(CARS, tmp_path / "data")) == 5, "the hub is gone"


def test_what_cannot_be_fetched_is_one_line(tmp_path, published, monkeypatch):
    (published / "test" / "nshards.txt").rename(published / "test" / "n.txt")
    with local_hub(monkeypatch, {CARS: published}):
        with refused("test/nshards.txt"):
            datasets.load_images(CARS, tmp_path)
        with refused("RepositoryNotFound"):
            datasets.load_images("org/wds_none", tmp_path)
    with refused("(Connect"):  # the hub is gone
        datasets.load_images(CARS, tmp_path)

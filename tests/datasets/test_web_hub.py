"""CLIP_benchmark's sets from the hub: fetched once, of one revision, filed under a known name."""

import pytest
from made import refused
from web_hub import REVISION, local_hub
from web_writer import write_web_set

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.datasets.names import SetName
from zsntta_cli.errors import DatasetError

LABELS, NAMES = [1, 0, 1, 0, 2], ["car", "bus", "van"]
CARS = "clip-benchmark/wds_cars"


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
        result = zsntta(*extract)
        assert result.exit_code == 0, result.output
        fetched = {path.partition("/resolve/")[2] for way, path in hub.asked if way == "GET"}
        files = {name.partition("/")[2] for name in fetched if name}
        assert files == {
            "classnames.txt", "zeroshot_classification_templates.txt", "test/nshards.txt",
            "test/0.tar", "test/1.tar", "test/2.tar",
        }  # fmt: skip
        assert all(name.startswith(REVISION) for name in fetched if name)
        hub.asked.clear()
        assert "already extracted" in zsntta(*extract).stdout
        assert "1 to make (wds_cars)" in zsntta(*extract, "--overwrite", "--dry-run").stdout
        assert not hub.asked
    result = zsntta("datasets", "get", CARS)
    assert f"{CARS} is on the hub: zsntta datasets verify {CARS} fetches it" in result.stderr
    live = ("simulate", "--model", "tiny", "--method", "tent", "--id", "wds_cars", "--ratio", "0")
    assert "whose location is unknown" in zsntta(*live).stderr
    result = zsntta(*live, "--dataset", CARS)
    assert result.exit_code == 0, result.output
    features = store.read(tmp_path / "features/tiny/wds_cars.h5")
    assert features.labels.tolist() == LABELS
    assert list(features.class_names) == NAMES
    assert features.source["hub"] == f"{CARS}@{REVISION}"
    own = datasets.load_images(f"mine={published}", tmp_path)
    assert own.identity()["digest"] == features.source["digest"]


def told(*said, spec=CARS, data):
    with refused(*said, error=DatasetError):
        datasets.load_images(spec, data)


def test_a_fetch_that_was_cut_off_goes_on(tmp_path, published, monkeypatch):
    from huggingface_hub import constants

    data = tmp_path / "data"
    with local_hub(monkeypatch, {CARS: published}) as hub:
        hub.refuses = ("1.tar",)
        told("cannot be fetched (", data=data)
        assert not (data / CARS / "test" / "1.tar").exists()
        there = {path.name for path in (data / CARS / "test").glob("*.tar")}
        hub.refuses = ("nothing",)
        hub.asked.clear()
        assert len(datasets.load_images(CARS, data)) == 5
        fetched = {path.rpartition("/")[2] for way, path in hub.asked if way == "GET"}
        assert {name for name in fetched if name.endswith(".tar")} == {
            "0.tar", "1.tar", "2.tar"
        } - there  # fmt: skip
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # it is there: nobody is asked
        assert len(datasets.load_images(CARS, data)) == 5


def test_what_cannot_be_fetched_is_one_line(tmp_path, published, monkeypatch):
    from huggingface_hub import constants

    (published / "test" / "nshards.txt").rename(published / "test" / "n.txt")
    with local_hub(monkeypatch, {CARS: published}):
        told("has no test/nshards.txt", data=tmp_path)
        told("cannot be fetched (RepositoryNotFoundError", spec="org/wds_none", data=tmp_path)
    told("is incomplete in ", "and cannot be fetched (Connect", data=tmp_path)  # the hub is gone
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    told("cannot be fetched (OfflineModeIsEnabled", data=tmp_path)

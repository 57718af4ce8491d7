"""Features in a repository of the hub, by a server on this machine that answers as the hub does."""

from types import SimpleNamespace

import httpx
import huggingface_hub
import pytest
from huggingface_hub import constants, file_download
from made import Notes
from web_hub import REVISION, local_hub

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.origin import origin_of
from zsntta_cli.errors import StoreError
from zsntta_cli.sharing.index import read_index
from zsntta_cli.sharing.pull import chosen, pull
from zsntta_cli.sharing.push import PushPlan, push
from zsntta_cli.sharing.stores import MissingAtStore, open_store

REPOSITORY = "someone/features"
ADDRESS = f"hf://{REPOSITORY}"


@pytest.fixture
def hub(tmp_path, features, monkeypatch):
    """The made-up features in a repository, and a cache of the hub's library that is empty."""
    list(push(open_store(f"file://{tmp_path}/published"), PushPlan(features, may=True), Notes()))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    with local_hub(monkeypatch, {REPOSITORY: tmp_path / "published"}) as server:
        yield server


def pulled(address, root, names=()):
    store = open_store(address)
    index = read_index(store)
    return list(pull(store, index, root, chosen(index, address, names), Notes()))


def test_a_set_is_fetched_of_the_commit_that_the_index_is_of(hub, features, tmp_path):
    (done,) = pulled(ADDRESS, tmp_path / "here", ["pets"])
    assert done.entry.digest == hdf5.read_header(features / "made/pets.h5").digest
    assert origin_of(hdf5.read_features(done.path))["pulled"] == f"{ADDRESS}@{REVISION}"
    read = {path.partition("/resolve/")[2] for way, path in hub.asked if "/resolve/" in path}
    assert read == {"main/index.json", f"{REVISION}/made/pets.h5"}
    assert {p.name for p in done.path.parent.iterdir()} == {
        "pets.h5", ".pets.lock", ".pets.pulled.json",
    }  # fmt: skip


def test_the_list_of_a_repository_is_its_index_alone(hub, zsntta):
    result = zsntta("cache", "list", ADDRESS)
    assert result.exit_code == 0, result.output
    assert "pets" in result.stdout
    assert len([path for way, path in hub.asked if way == "GET" and "/resolve/" in path]) == 1


@pytest.mark.parametrize("revision", ["main", REVISION])
def test_a_revision_can_be_named(hub, tmp_path, revision):
    assert pulled(f"{ADDRESS}@{revision}", tmp_path / "here", ["pets"])[0].is_new


@pytest.mark.parametrize(
    ("address", "answers", "said"),
    [
        (f"{ADDRESS}@v9", [], r"hf://someone/features has no revision v9\."),
        ("hf://no/body", [], r"the hub has no data set hf://no/body.*hf auth login"),
        (ADDRESS, [401], "hf auth login"),
        (ADDRESS, [403], "hf auth login"),
        (ADDRESS, [500], r"cannot reach hf://someone/features/index\.json \("),
    ],
)
def test_what_the_hub_refuses_is_told_in_a_line(hub, address, answers, said):
    hub.statuses = answers
    with pytest.raises(StoreError, match=said) as told:
        read_index(open_store(address))
    assert "\n" not in str(told.value)


def test_a_repository_without_features(hub):
    hub.repositories[REPOSITORY] = {"README.md": b""}
    with pytest.raises(MissingAtStore, match=r"it has no index\.json"):
        read_index(open_store(ADDRESS))


def test_a_connection_that_breaks_off_goes_on(hub, tmp_path):
    store = open_store(ADDRESS)
    index = read_index(store)
    hub.cuts = [5_000, 3_000]
    (done,) = pull(store, index, tmp_path / "here", [("made", "pets")], Notes())
    assert done.is_new
    assert not hub.cuts
    ranges = [path for way, path in hub.asked if way == "GET" and path.endswith("pets.h5")]
    assert len(ranges) == 3


def test_a_second_command_goes_on_where_the_first_gave_up(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(file_download.time, "sleep", lambda _: None)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1_000)  # what is cut within is lost
    store = open_store(ADDRESS)
    index = read_index(store)
    size = index.files["made/pets.h5"].size
    hub.cuts = [5_000, *[0] * 20]
    with pytest.raises(StoreError, match=r"cannot reach hf://someone/features/made/pets\.h5"):
        list(pull(store, index, tmp_path / "here", [("made", "pets")], Notes()))
    (part,) = (tmp_path / "here/made").glob("*.part")
    assert part.stat().st_size == 5_000
    hub.cuts, hub.ranges = [], []
    assert pulled(ADDRESS, tmp_path / "here", ["pets"])[0].path.stat().st_size == size
    assert hub.ranges[-1] == "bytes=5000-"


def test_what_is_larger_than_its_index_says_is_not_fetched(hub, tmp_path):
    store = open_store(ADDRESS)
    index = read_index(store)
    hub.repositories[REPOSITORY]["made/pets.h5"] += bytes(10_000_000)
    asked = len(hub.asked)
    with pytest.raises(StoreError, match="must have"):
        list(pull(store, index, tmp_path / "here", [("made", "pets")], Notes()))
    assert not [way for way, _ in hub.asked[asked:] if way == "GET"]


def test_an_index_that_is_no_small_file_is_not_read(hub):
    hub.repositories[REPOSITORY]["index.json"] = bytes(2**25 + 1)
    with pytest.raises(StoreError, match=r"index\.json has more than 33,554,432 bytes"):
        read_index(open_store(ADDRESS))
    assert not [way for way, path in hub.asked if way == "GET" and "index.json" in path]


@pytest.mark.parametrize("is_longer", [False, True])  # of a push that is under way
def test_other_bytes_than_its_index_says_are_refused(hub, tmp_path, is_longer):
    files = hub.repositories[REPOSITORY]
    files["made/pets.h5"] = files["made/pets.h5"] + b"more" if is_longer else files["made/sky.h5"]
    with pytest.raises(StoreError, match="is not what its index says"):
        pulled(ADDRESS, tmp_path / "here", ["pets"])
    assert not (tmp_path / "here/made/pets.h5").exists()


def test_a_file_that_one_may_not_read(hub, tmp_path):
    hub.refuses = "pets.h5"
    with pytest.raises(StoreError, match=r"cannot reach|you may not see"):
        pulled(ADDRESS, tmp_path / "here", ["pets"])


def test_without_a_network_the_hubs_copy_serves_and_else_a_line(hub, monkeypatch):
    read_index(open_store(ADDRESS))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    before = len(hub.asked)
    assert read_index(open_store(ADDRESS)).names("made")
    with pytest.raises(StoreError, match="no network, or HF_HUB_OFFLINE is set"):
        read_index(open_store("hf://some/other"))
    assert len(hub.asked) == before


def test_no_network_is_told_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match="no network"):
        read_index(open_store(ADDRESS))


def test_a_repository_that_there_is_not_yet_can_be_pushed_to(hub, features, monkeypatch):
    calls = []
    store = open_store("hf://some/new")
    monkeypatch.setattr(store, "publish", lambda folder: calls.append(folder))
    assert [done.is_new for done in push(store, PushPlan(features, ("sky",), may=True), Notes())]
    assert calls


class Uploads:
    """Stands in for the hub's library: remembers what it is asked to upload."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, **_):
        return self

    def dataset_info(self, *_, **__):
        response = httpx.Response(404, request=httpx.Request("GET", "http://127.0.0.1"))
        raise huggingface_hub.errors.RepositoryNotFoundError("none yet", response=response)

    def create_repo(self, name, **values):
        self.calls.append(("create_repo", name, values))

    def upload_folder(self, *, folder_path, allow_patterns=None, ignore_patterns=None, **values):
        files = sorted(p.relative_to(folder_path).as_posix() for p in folder_path.rglob("*.*"))
        self.calls.append(("upload_folder", files, allow_patterns, ignore_patterns, values))
        return SimpleNamespace(oid=REVISION)


def test_an_upload_brings_files_before_what_names_them(features, monkeypatch):
    """No upload can be tried here: these are the calls to the hub's library."""
    calls = []
    monkeypatch.setattr(huggingface_hub, "HfApi", Uploads(calls))
    store = open_store(ADDRESS)
    monkeypatch.setattr(store, "read", no_index)
    list(push(store, PushPlan(features, ("pets",), may=True), Notes()))
    files = ["README.md", "index.json", "made/pets.h5"]
    repository = {"repo_id": REPOSITORY, "repo_type": "dataset", "revision": None}
    assert calls[0] == ("create_repo", REPOSITORY, {"repo_type": "dataset", "exist_ok": True})
    for call, chosen_files in zip(calls[1:], (("*.h5", None), (None, "*.h5")), strict=True):
        assert call[:4] == ("upload_folder", files, *chosen_files)
        assert repository.items() <= call[4].items()
    assert store.revision == REVISION


def no_index(_path):
    raise MissingAtStore("none yet")

"""Published features: what is pushed comes back to the bit, and nothing else is taken for it."""

import contextlib
import json
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from made import PROMPT, Notes

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.cache.origin import note_path, origin_of
from zsntta_cli.errors import StoreError
from zsntta_cli.sharing.index import Index, parse_index, read_index
from zsntta_cli.sharing.pull import chosen, pull
from zsntta_cli.sharing.push import PushPlan, push
from zsntta_cli.sharing.stores import MissingAtStore, open_store

SETS = {"pets", "birds", "sky", "sand", "noise-gaussian", "words-nouns"}


@pytest.fixture
def place(tmp_path, features):
    """A folder with all of the made-up features."""
    store = open_store(f"file://{tmp_path}/published")
    pushed(store, features)
    return store


def pushed(store, root, names=(), **values):
    return list(push(store, PushPlan(root, names, may=True, **values), Notes()))


def pulled(store, root, names=(), encoder=None):
    index = read_index(store)
    files = chosen(index, store.address, names, encoder)
    return list(pull(store, index, root, files, Notes()))


def write(root, name, ids=("0", "1"), source=(), **encoder):
    """A file of two images of no class."""
    hdf5.write_features(
        root / f"made/{name}.h5", kind=DATASET, name=name, source=dict(source),
        encoder={"model": "made-up", "logit_scale": 20.0} | encoder,
        blocks=[np.eye(2, 16, dtype=np.float16)], labels=np.full(2, -1, np.int32), sample_ids=ids,
    )  # fmt: skip


def test_all_that_a_file_holds_comes_back(place, features, tmp_path):
    done = pulled(place, tmp_path / "here")
    assert {entry.path.stem for entry in done} == SETS
    for entry in done:
        mine, theirs = features / "made" / entry.path.name, entry.path
        one, other = hdf5.read_features(mine), hdf5.read_features(theirs)
        assert hdf5.read_header(mine) == hdf5.read_header(theirs)
        assert hdf5.read_sample_ids(mine) == hdf5.read_sample_ids(theirs)
        assert (one.image_features == other.image_features).all()
        assert one.class_names == other.class_names
        assert {**one.machine} == {**other.machine}
        assert all(
            (one.text_features[t] == other.text_features[t]).all() for t in one.text_features
        )


def test_a_second_pull_finds_all_there(place, tmp_path):
    assert all(entry.is_new for entry in pulled(place, tmp_path / "here", ["pets"]))
    again = pulled(place, tmp_path / "here")
    assert {entry.path.stem for entry in again if entry.is_new} == SETS - {"pets"}


def test_other_features_are_never_replaced(place, features, tmp_path):
    root = tmp_path / "here"
    (root / "made").mkdir(parents=True)
    shutil.copy(features / "made/birds.h5", root / "made/pets.h5")
    before = (root / "made/pets.h5").read_bytes()
    with pytest.raises(StoreError, match=r"pets\.h5 holds other features"):
        pulled(place, root)
    assert (root / "made/pets.h5").read_bytes() == before
    assert [path.name for path in (root / "made").iterdir()] == ["pets.h5"], "it is said at once"


def test_a_folder_of_another_encoder_takes_nothing(place, tmp_path):
    root = tmp_path / "here"
    write(root, "own", logit_scale=21.0)
    with pytest.raises(StoreError, match=r"than 'pets' \(logit_scale: 21.0, not 20.0\)"):
        pulled(place, root, ["pets"])


def test_a_second_push_keeps_the_first(features, tmp_path):
    store = open_store(f"file://{tmp_path}/published")
    pushed(store, features, ("pets",))
    done = pushed(store, features, ("pets", "sky"))
    assert [entry.is_new for entry in done] == [False, True]
    assert {*read_index(store).files} == {"made/pets.h5", "made/sky.h5"}
    files = {p.name for p in (tmp_path / "published").rglob("*") if p.is_file()}
    assert files == {"pets.h5", "sky.h5", "index.json", "README.md"}
    card = (tmp_path / "published/README.md").read_text()
    assert "| pets | 400 | 3 |" in card
    assert "| sky | 300 |" in card


def test_what_is_published_under_a_name_is_replaced_only_when_it_is_said(features, tmp_path):
    store = open_store(f"file://{tmp_path}/published")
    pushed(store, features, ("pets",))
    other = tmp_path / "other"
    write(other, "pets")
    with pytest.raises(StoreError, match="is there already with other features"):
        pushed(store, other)
    assert read_index(store).files["made/pets.h5"].header.images == 400
    pushed(store, other, overwrite=True)
    assert pulled(store, tmp_path / "here")[0].entry.header.images == 2


def test_prompts_that_came_later_are_published_too(features, tmp_path):
    root = tmp_path / "mine"
    shutil.copytree(features, root)
    store = open_store(f"file://{tmp_path}/published")
    pushed(store, root, ("pets",))
    text = hdf5.read_features(root / "made/pets.h5").text_features[PROMPT]
    hdf5.add_texts(root / "made/pets.h5", [Text("the {}", text[::-1].copy())])
    (done,) = pushed(store, root, ("pets",))
    assert done.is_new
    assert "the {}" in read_index(store).files["made/pets.h5"].header.templates


def test_sets_that_not_everybody_may_pass_on_are_named(features, tmp_path):
    store = open_store(f"file://{tmp_path}/published")
    with pytest.raises(StoreError, match=r"the terms of .*pets \(not known\).*--i-may"):
        list(push(store, PushPlan(features), Notes()))
    assert not (tmp_path / "published").exists()
    list(push(store, PushPlan(features, ("noise-gaussian",)), Notes()))  # of our own making


def test_without_ids_no_name_is_in_any_byte(tmp_path):
    root = tmp_path / "mine"
    ids = [f"/home/someone/{name}.jpg" for name in ("holiday", "wedding")]
    write(
        root, "own", ids, {"images": 2, "skipped": ["/home/someone/broken.jpg"]},
        model="local-dir:/home/someone/clip", pretrained="/home/someone/w.pt",
    )  # fmt: skip
    store = open_store(f"file://{tmp_path}/published")
    with pytest.raises(StoreError, match=r"sample ids with folders .*--without-ids"):
        pushed(store, root)
    pushed(store, root, without_ids=True)
    for path in (tmp_path / "published").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"someone" not in content, path
            assert b"wedding" not in content, path
    (done,) = pulled(store, tmp_path / "here")
    assert done.entry.digest == hdf5.read_header(root / "made/own.h5").digest
    assert hdf5.read_sample_ids(done.path) == ("00000", "00001")
    assert hdf5.read_features(done.path).identity["pretrained"] == "w.pt"
    assert not pulled(store, root)[0].is_new, "the model in its folder is the same one elsewhere"


def test_ids_that_are_there_are_taken_away(features, tmp_path):
    store = open_store(f"file://{tmp_path}/published")
    pushed(store, features, ("pets",))
    assert b"pets/399" in (tmp_path / "published/made/pets.h5").read_bytes()
    (done,) = pushed(store, features, ("pets",), without_ids=True)
    assert done.is_new
    assert b"pets/399" not in (tmp_path / "published/made/pets.h5").read_bytes()
    (done,) = pushed(store, features, ("pets",))
    assert not done.is_new, "what was hidden is not told by the way"


def test_parts_of_an_older_version_are_swept(place, tmp_path):
    folder = tmp_path / "here/made"
    folder.mkdir(parents=True)
    for name in (".pets.0123456789abcdef.part", ".sky.0123456789abcdef.part"):
        (folder / name).write_bytes(b"old")
    pulled(place, tmp_path / "here", ["pets"])
    assert {p.name for p in folder.iterdir()} == {
        "pets.h5", ".pets.lock", ".pets.pulled.json", ".sky.0123456789abcdef.part",
    }  # fmt: skip


@pytest.mark.parametrize("cut", [0, 1, 5000])
def test_a_web_server_serves_what_lies_there(place, tmp_path, cut):
    """Python's own sends whole files alone, so what came before is fetched once more."""
    pytest.importorskip("aiohttp")
    serve = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "published"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), serve)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        store = open_store(f"http://127.0.0.1:{server.server_address[1]}")
        entry = read_index(store).files["made/pets.h5"]
        (tmp_path / "here/made").mkdir(parents=True)
        part = tmp_path / f"here/made/.pets.{entry.sha256[:16]}.part"
        whole = (tmp_path / "published/made/pets.h5").read_bytes()
        part.write_bytes(whole[:cut])
        assert pulled(store, tmp_path / "here", ["pets"])[0].path.read_bytes() == whole
        with pytest.raises(MissingAtStore, match=r"it has no index\.json"):
            read_index(open_store(f"{store.address}/made"))
        with pytest.raises(StoreError, match="takes no uploads"):
            store.publish(tmp_path)
    finally:
        server.shutdown()
        server.server_close()


def test_a_place_without_features_says_so(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingAtStore, match=r"holds no features of zsntta: it has no index\.json"):
        read_index(open_store(f"file://{tmp_path}/empty"))


@pytest.mark.parametrize(
    "address", ["here", "hf://one", "hf://a/b@", "ftp://x/y", "hf://a/b/c", ""]
)
def test_an_address_that_is_none(address):
    with pytest.raises(StoreError, match=r"must be hf://USER/REPO"):
        open_store(address)


def test_a_set_or_an_encoder_that_is_not_there(place):
    index = read_index(place)
    with pytest.raises(StoreError, match=r"no features of 'pts' \(did you mean 'pets'\?\)"):
        chosen(index, "file:///x", ["pts"])
    with pytest.raises(StoreError, match=r"no features by other: it has made\."):
        chosen(index, "file:///x", (), "other")


@pytest.mark.parametrize("cut", [0, 1, 5000])
def test_a_file_that_broke_off_goes_on_where_it_ended(place, tmp_path, cut):
    entry = read_index(place).files["made/pets.h5"]
    whole = (tmp_path / "published/made/pets.h5").read_bytes()
    root = tmp_path / "here"
    (root / "made").mkdir(parents=True)
    part = root / f"made/.pets.{entry.sha256[:16]}.part"
    part.write_bytes(whole[:cut])
    (tmp_path / "published/made/pets.h5").write_bytes(bytes(cut) + whole[cut:])  # not read again
    assert pulled(place, root, ["pets"])[0].path.read_bytes() == whole
    assert not part.exists()


def test_what_is_shorter_at_the_place_is_kept_as_a_part(place, tmp_path):
    published = tmp_path / "published/made/pets.h5"
    whole = published.read_bytes()
    published.write_bytes(whole[:4000])
    with pytest.raises(StoreError, match=r"broke off after 4,000 of [\d,]+ bytes"):
        pulled(place, tmp_path / "here", ["pets"])
    assert not (tmp_path / "here/made/pets.h5").exists()
    published.write_bytes(whole)
    assert pulled(place, tmp_path / "here", ["pets"])[0].path.read_bytes() == whole


@pytest.mark.parametrize("where", [0, 100, -1])
def test_one_other_byte_is_refused_and_not_kept(place, tmp_path, where):
    published = tmp_path / "published/made/pets.h5"
    content = bytearray(published.read_bytes())
    content[where] ^= 1
    published.write_bytes(content)
    with pytest.raises(StoreError, match=r"is not what its index says: its sha256"):
        pulled(place, tmp_path / "here", ["pets"])
    assert [p.name for p in (tmp_path / "here/made").iterdir()] == [".pets.lock"]


@contextlib.contextmanager
def changed_index(tmp_path):
    """The published index, as a stranger may change it."""
    path = tmp_path / "published/index.json"
    index = json.loads(path.read_text())
    yield index
    path.write_text(json.dumps(index))


def test_an_index_that_tells_of_another_file_is_found_out(place, tmp_path):
    """Its sizes and sha256 are right, but it says that the sky is pets."""
    with changed_index(tmp_path) as index:
        sky = index["files"]["made/sky.h5"]
        index["files"]["made/pets.h5"] |= {key: sky[key] for key in ("size", "sha256")}
    shutil.copy(tmp_path / "published/made/sky.h5", tmp_path / "published/made/pets.h5")
    with pytest.raises(StoreError, match="holds other features than its index says"):
        pulled(place, tmp_path / "here", ["pets"])
    assert not (tmp_path / "here/made/pets.h5").exists()


def test_files_of_two_encoders_in_one_folder_are_refused_before_any_is_fetched(place, tmp_path):
    with changed_index(tmp_path) as index:
        index["files"]["made/sky.h5"]["header"]["identity"]["logit_scale"] = 21.0
    with pytest.raises(StoreError, match=r"of another encoder than 'sky' \(logit_scale: 20.0, not"):
        pulled(place, tmp_path / "here")
    assert not (tmp_path / "here").exists()


def header_of(index):
    return index["files"]["made/pets.h5"]["header"]


@pytest.mark.parametrize(
    ("change", "line"),
    [(lambda index: index.pop("format"), "it lacks 'format'"),
     (lambda index: index["files"]["made/pets.h5"].pop("sha256"), "it lacks 'sha256'"),
     (lambda index: index["files"]["made/pets.h5"].update(sha256="x"), "the sha256 of made/pets"),
     (lambda index: index["files"]["made/pets.h5"].update(size=-1), "the size of made/pets.h5"),
     (lambda index: header_of(index).update(images=True), "made/pets.h5 has counts that are none"),
     (lambda index: header_of(index).update(kind=3), "made/pets.h5 has something that is no text"),
     (lambda index: index.update(format=2), "its format is 2, must be 1"),
     (lambda index: index["files"].update({"../pets.h5": {}}), "'..'"),
     (lambda index: index["files"].update({"/etc/x.h5": {}}), "is not ENCODER/SET.h5"),
     (lambda index: index.update(files=[]), "no JSON object")],
)  # fmt: skip
def test_an_index_that_is_none_is_told_in_a_line(place, tmp_path, change, line):
    with changed_index(tmp_path) as index:
        change(index)
    with pytest.raises(StoreError, match="is no index of features") as told:
        read_index(place)
    assert line in str(told.value)


def test_an_index_is_read_back(place):
    index = read_index(place)
    assert parse_index(index.to_json().encode()) == index
    assert parse_index(Index().to_json().encode()) == Index()


def test_where_a_file_came_from_is_known_until_it_holds_something_else(place, features, tmp_path):
    (done,) = pulled(place, tmp_path / "here", ["pets"])
    assert origin_of(hdf5.read_features(done.path))["pulled"] == "file://…/published"
    assert note_path(done.path).exists()
    shutil.copy(features / "made/birds.h5", done.path)
    assert "pulled" not in origin_of(hdf5.read_features(done.path))

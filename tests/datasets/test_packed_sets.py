"""Sets as they are handed out: the archive is the same set as what is unpacked from it."""

import io
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.datasets.readers import imagenet
from zsntta_cli.datasets.status import on_disk
from zsntta_cli.errors import DatasetError

WNIDS = [row.wnid for row in imagenet.classes()]
NAMES = [row.name for row in imagenet.classes()]
A, R = ([row.wnid for row in imagenet.classes(subset)] for subset in "ar")
TRUTH = "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt"
META = "ILSVRC2012_devkit_t12/data/meta.mat"


def png(colour="red", size=(8, 6)):
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, "PNG")
    return content.getvalue()


def tar(path, files, mode="w"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def zipped(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def gz(path, files):
    tar(path, files, "w:gz")


SHAPES = {
    "imagenet-a": ("imagenet-a", A, "1.jpg", "imagenet-a.tar", tar),
    "imagenet-r": ("imagenet-r", R, "art_1.jpg", "imagenet-r.tar", tar),
    "imagenet-v2": (
        "imagenetv2-matched-frequency-format-val", [str(i) for i in range(1000)], "x.jpeg",
        "imagenetv2-matched-frequency.tar.gz", gz,
    ),
    "imagenet-sketch": ("sketch", WNIDS, "sketch_1.JPEG", "ImageNet-Sketch.zip", zipped),
}  # fmt: skip


def files_of(name):
    """An image a class, of two kinds, and one class with two; out of order."""
    folder, classes, file, _, _ = SHAPES[name]
    files = {f"{folder}/{classes[1]}/a-{file}": png("blue", (3, 3))}
    for i, wnid in enumerate(reversed(classes)):
        files[f"{folder}/{wnid}/{file}"] = png() if i % 3 else png("green", (9, 9))
    return {**files, f"{folder}/README.txt": b"x", f"__MACOSX/{folder}/._{file}": b"x"}


def lay_out(root, files):
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def same(one, other):
    assert one.identity() == other.identity()
    assert list(one.class_names) == list(other.class_names)
    for i in (0, 1, 2, len(one) - 1):
        assert one.read(i).tobytes() == other.read(i).tobytes()


@pytest.mark.parametrize("name", SHAPES)
def test_an_archive_is_the_set_that_its_folder_is(tmp_path, name):
    files = files_of(name)
    _, classes, _, archive, pack = SHAPES[name]
    lay_out(tmp_path / "unpacked", files)
    (tmp_path / "packed").mkdir()
    pack(tmp_path / "packed" / archive, files)
    folder = datasets.load_images(name, tmp_path / "unpacked")
    packed = datasets.load_images(name, tmp_path / "packed")
    assert len(packed) == len(classes) + 1
    assert packed.labels.tolist() == [0, 1, 1, *range(2, len(classes))]
    same(packed, folder)
    assert on_disk(CATALOGUE[name], tmp_path / "packed") == "yes"


def test_imagenet_v2_is_a_plain_tar_for_all_its_name_says(tmp_path):
    files = files_of("imagenet-v2")
    lay_out(tmp_path / "unpacked", files)
    (tmp_path / "packed").mkdir()
    tar(tmp_path / "packed" / "imagenetv2-matched-frequency.tar.gz", files)
    same(*(datasets.load_images("imagenet-v2", tmp_path / at) for at in ("packed", "unpacked")))


@pytest.mark.parametrize("name", SHAPES)
def test_an_archive_without_a_class_is_refused(tmp_path, name):
    folder, classes, file, archive, pack = SHAPES[name]
    files = files_of(name)
    del files[f"{folder}/{classes[5]}/{file}"]
    pack(tmp_path / archive, files)
    with pytest.raises(DatasetError, match=rf"1 of 1?,?\d+ class folders are .*{classes[5]}"):
        datasets.load_images(name, tmp_path)


def test_an_archive_of_another_set_is_refused(tmp_path):
    tar(tmp_path / "imagenet-a.tar", {f"imagenet-r/{wnid}/1.jpg": png() for wnid in [*A, *R]})
    with pytest.raises(DatasetError, match="are no class of it"):
        datasets.load_images("imagenet-a", tmp_path)
    tar(tmp_path / "imagenet-a.tar", {"imagenet-a/1.jpg": png()})
    with pytest.raises(DatasetError, match="200 of 200 class folders are missing"):
        datasets.load_images("imagenet-a", tmp_path)
    tar(tmp_path / "imagenet-a.tar", {"imagenet-a/1.txt": b""})
    with pytest.raises(DatasetError, match=r"no image in .*imagenet-a\.tar"):
        datasets.load_images("imagenet-a", tmp_path)


def test_the_folder_comes_before_the_archive(tmp_path):
    lay_out(tmp_path, files_of("imagenet-a"))
    (tmp_path / "imagenet-a.tar").write_bytes(b"cut off")
    assert len(datasets.load_images("imagenet-a", tmp_path)) == 201


def test_a_part_of_a_download_is_no_archive(tmp_path):
    (tmp_path / "SUN.tar.gz.part").write_bytes(b"half")
    (tmp_path / "SUN.tar.gz.part.json").write_bytes(b"{}")
    with pytest.raises(DatasetError, match="put SUN/images"):
        datasets.load_images("sun", tmp_path)


# --- ImageNet's validation set ---

COUNT = 1010
NUMBERS = list(range(1, COUNT + 1))
ORDER = np.random.default_rng(0).permutation(1000)  # which wnid an ILSVRC2012_ID is of
WNID_OF = {i + 1: WNIDS[ORDER[i]] for i in range(1000)}
LINES = [1 + (7 * n) % 1000 for n in NUMBERS]  # the ILSVRC2012_ID of each image


def meta_mat(wnid_of=WNID_OF):
    """`synsets` as in the devkit: classes first, then 860 inner nodes, which have children."""
    fields = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("gloss", "O"),
              ("num_children", "O"), ("children", "O"), ("wordnet_height", "O"),
              ("num_train_images", "O")]  # fmt: skip
    rows = np.empty((len(wnid_of) + 3, 1), fields)
    for i, (number, wnid) in enumerate(wnid_of.items()):
        rows[i, 0] = (float(number), wnid, "tench, Tinca tinca", "a fish", 0.0, [], 0.0, 1300.0)
    for i in range(len(wnid_of), len(rows)):
        children = np.array([1.0, 2.0])
        rows[i, 0] = (float(i + 1), f"n1{i:07d}", "animal", "it lives", 2.0, children, 2.0, 0.0)
    content = io.BytesIO()
    scipy.io.savemat(content, {"synsets": rows}, do_compression=True)
    return content.getvalue()


def devkit(path, lines=LINES, meta=None, **more):
    files = {
        TRUTH: "".join(f"{line}\n" for line in lines).encode(),
        META: meta_mat() if meta is None else meta,
        "ILSVRC2012_devkit_t12/readme.txt": b"x",
    }
    gz(path, {**files, **more})


def flat():
    return {f"ILSVRC2012_val_{n:08d}.JPEG": png("red", (1 + n % 5, 4)) for n in NUMBERS}


@pytest.fixture(scope="module")
def validation(tmp_path_factory):
    """The same images: by wnid, flat, and in the tar."""
    root = tmp_path_factory.mktemp("validation")
    wnids = [WNID_OF[line] for line in LINES]
    lay_out(root / "by-wnid/imagenet/val",
            {f"{w}/{f}": c for w, (f, c) in zip(wnids, flat().items(), strict=True)})  # fmt: skip
    lay_out(root / "flat/imagenet/val", flat())
    devkit(root / "flat/imagenet/ILSVRC2012_devkit_t12.tar.gz")
    tar(root / "tar/imagenet/ILSVRC2012_img_val.tar", flat())
    devkit(root / "tar/imagenet/ILSVRC2012_devkit_t12.tar.gz")
    tar(root / "above/ILSVRC2012_img_val.tar", flat())
    devkit(root / "above/kit.tar.gz")
    with tarfile.open(root / "above/kit.tar.gz") as packed:
        packed.extractall(root / "above", filter="data")
    return root


def test_meta_mat_is_as_in_the_devkit():
    """As torchvision reads it: ids, wnids and words of the rows without children come first."""
    rows = scipy.io.loadmat(io.BytesIO(meta_mat()), squeeze_me=True)["synsets"]
    children = list(zip(*rows, strict=True))[4]
    leaves = [row for row, count in zip(rows, children, strict=True) if count == 0]
    numbers, wnids, words = list(zip(*leaves, strict=True))[:3]
    assert (numbers[:2], wnids[0], words[0]) == ((1, 2), WNID_OF[1], "tench, Tinca tinca")


@pytest.mark.parametrize("form", ["flat", "tar", "above"])
def test_all_forms_of_the_validation_set_are_one(validation, form):
    """Numbers in the devkit are not places in the list of sorted wnids: that trap is laid here."""
    images = datasets.load_images("imagenet", validation / form)
    same(images, datasets.load_images("imagenet", validation / "by-wnid"))
    place = list(images.sample_ids).index(f"{WNID_OF[LINES[2]]}/ILSVRC2012_val_00000003.JPEG")
    assert images.class_names[images.labels[place]] == NAMES[ORDER[LINES[2] - 1]]
    assert images.read(place).size == (4, 4)


def test_what_is_on_disk(validation):
    state = on_disk(CATALOGUE["imagenet"], validation / "tar")
    assert state == "yes"


def test_the_set_is_loaded_again_in_other_processes(validation):
    images = pickle.loads(
        pickle.dumps(datasets.load_images("imagenet", validation / "tar").reload)
    )()
    assert len(images) == COUNT


def test_without_the_devkit_a_line_says_what_is_missing(tmp_path):
    lay_out(tmp_path / "imagenet/val", {"ILSVRC2012_val_00000001.JPEG": png()})
    with pytest.raises(DatasetError, match=r"labels are in the devkit: put .*t12\.tar\.gz of"):
        datasets.load_images("imagenet", tmp_path)


def test_without_anything_the_line_names_both_forms(tmp_path):
    with pytest.raises(
        DatasetError, match=r"put imagenet/val/<wnid>/.* or imagenet/ILSVRC2012_img"
    ):
        datasets.load_images("imagenet", tmp_path)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"lines": [1, 2]}, "00000003.JPEG is none of the validation images"),
        ({"lines": [*LINES[:-1], 1001]}, "lines of a class from 1 to 1000, such as 1001"),
        ({"lines": [*LINES[:-1], 0]}, "such as 0"),
        ({"lines": [*LINES[:-1], "n01440764"]}, "such as n01440764"),
        ({"lines": []}, "is not made of lines of a class"),
        ({"meta": b"no mat"}, "meta.mat of the devkit cannot be read"),
        ({"meta": b""}, "meta.mat of the devkit cannot be read"),
        ({"meta": meta_mat({1: WNIDS[0], 2: WNIDS[1]})}, "2 classes that are not ImageNet's 1,000"),
        ({"meta": meta_mat({**WNID_OF, 7: WNID_OF[8]})}, "classes that are not ImageNet's"),
    ],
)  # fmt: skip
def test_a_devkit_that_does_not_fit(tmp_path, how, message):
    lay_out(tmp_path / "imagenet/val", {f"ILSVRC2012_val_{n:08d}.JPEG": png() for n in (1, 2, 3)})
    devkit(tmp_path / "imagenet/ILSVRC2012_devkit_t12.tar.gz", **how)
    with pytest.raises(DatasetError, match=message):
        datasets.load_images("imagenet", tmp_path)


def test_a_devkit_that_lacks_a_file(tmp_path):
    lay_out(tmp_path / "imagenet/val", {"ILSVRC2012_val_00000001.JPEG": png()})
    gz(tmp_path / "imagenet/ILSVRC2012_devkit_t12.tar.gz", {META: meta_mat()})
    with pytest.raises(DatasetError, match=r"has no data/ILSVRC2012_validation_ground_truth.txt"):
        datasets.load_images("imagenet", tmp_path)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["ILSVRC2012_val_00000001.JPEG", "dog.jpg"], "dog.jpg is none of the validation images"),
        (["ILSVRC2012_test_00000001.JPEG"], "its label is not known"),
        (["ILSVRC2012_val_00000000.JPEG"], "its label is not known"),
        (["ILSVRC2012_val_00000001.JPEG", "x/ILSVRC2012_val_00000001.JPEG"], "have one number"),
        (["readme.txt"], "no image"),
    ],
)
def test_other_images_than_those_of_the_validation_set(tmp_path, names, message):
    tar(tmp_path / "imagenet/ILSVRC2012_img_val.tar", {name: png() for name in names})
    devkit(tmp_path / "imagenet/ILSVRC2012_devkit_t12.tar.gz")
    with pytest.raises(DatasetError, match=message):
        datasets.load_images("imagenet", tmp_path)


# --- CIFAR-C ---


def npy(array, version=None):
    content = io.BytesIO()
    np.lib.format.write_array(content, array, version)
    return content.getvalue()


def cifar_c(classes=10, **changes):
    pixels = np.random.default_rng(1).integers(0, 256, (50, 32, 32, 3), np.uint8)
    labels = np.tile(np.arange(10) % classes, 5).astype(np.uint8)
    files = {"labels.npy": npy(labels), "fog.npy": npy(pixels), "snow.npy": npy(pixels[::-1])}
    return {**files, **changes}


@pytest.mark.parametrize("name", ["cifar10-c", "cifar100-c"])
@pytest.mark.parametrize("spec", ["fog:1", "snow:5"])
def test_cifar_c_in_its_tar(tmp_path, name, spec):
    folder = {"cifar10-c": "CIFAR-10-C", "cifar100-c": "CIFAR-100-C"}[name]
    lay_out(tmp_path / "unpacked" / folder, cifar_c())
    tar(tmp_path / f"{folder}.tar", {f"{folder}/{file}": c for file, c in cifar_c().items()})
    packed = datasets.load_images(f"{name}:{spec}", tmp_path)
    same(packed, datasets.load_images(f"{name}:{spec}", tmp_path / "unpacked"))
    assert isinstance(packed.read.blocks[0], np.memmap)  # 2.9 GB are not read for 30 MB


def test_an_npy_of_the_second_version(tmp_path):
    content = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, (50, 32, 32, 3),
                                        version=(2, 0))  # fmt: skip
    content[:] = 7
    content.flush()
    changed = cifar_c(**{"fog.npy": (tmp_path / "x.npy").read_bytes()})
    tar(tmp_path / "CIFAR-10-C.tar", {f"CIFAR-10-C/{file}": c for file, c in changed.items()})
    assert datasets.load_images("cifar10-c:fog:1", tmp_path).read(3).getpixel((0, 0)) == (7, 7, 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fog.npy": b""}, "fog.npy in .* is broken"),
        ({"fog.npy": b"\x93NUMPY\x01\x00v\x00{'descr'"}, "fog.npy in .* is broken"),
        ({"fog.npy": cifar_c()["fog.npy"][:-1]}, "fog.npy in .* is broken"),
        ({"fog.npy": npy(np.zeros(3))}, "are not CIFAR-C's"),
        ({"fog.npy": npy(np.array([{}], object))}, "fog.npy in .* is broken"),
    ],
)
def test_a_broken_member_of_cifar_c(tmp_path, change, message):
    tar(tmp_path / "CIFAR-10-C.tar", {f"CIFAR-10-C/{f}": c for f, c in cifar_c(**change).items()})
    with pytest.raises(DatasetError, match=message):
        datasets.load_images("cifar10-c:fog:1", tmp_path)


def test_a_tar_without_the_corruption(tmp_path):
    tar(tmp_path / "CIFAR-10-C.tar", {f"CIFAR-10-C/{f}": c for f, c in cifar_c().items()})
    with pytest.raises(DatasetError, match=r"CIFAR-10-C\.tar has no frost\.npy"):
        datasets.load_images("cifar10-c:frost:1", tmp_path)
    assert not Path(tmp_path / "CIFAR-10-C").exists()

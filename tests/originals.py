"""Every set of the catalogue as it is published, in small: a tree of paths below the data root.

`made` writes the tree of a set and makes published checksums and ImageNet's classes fit it. Rows
and numbers are out of order wherever a reader could take a row for an id.
"""

import hashlib
import io
import json
import pickle
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.io
from made import pack
from PIL import Image
from torchvision.datasets import CIFAR10, CIFAR100
from torchvision.datasets import imagenet as published_imagenet

from zsntta_cli.datasets import known_sets
from zsntta_cli.datasets.catalogue import BUILTIN, CATALOGUE

NAMES = [name for name in CATALOGUE if name not in BUILTIN]
WNIDS = ("n01440764", "n01443537", "n01498041")  # the first is no class of ImageNet-A and -R
DEVKIT = "ILSVRC2012_devkit_t12"
PIXELS = np.random.default_rng(0).integers(0, 256, (10, 3, 32, 32), np.uint8)


def md5(content):
    return hashlib.md5(content).hexdigest()


def picture(seed=0, size=(8, 8), form="jpeg"):
    pixels = np.random.default_rng(seed).integers(0, 256, (*size[::-1], 3), np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, form)
    return content.getvalue()


def pictures(paths, **how):
    return {path: picture(i, **how) for i, path in enumerate(paths)}


def mat(**arrays):
    content = io.BytesIO()
    scipy.io.savemat(content, arrays)
    return content.getvalue()


def npy(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def lines(*rows):
    return "".join(f"{row}\n" for row in rows).encode()


def by_class(top, classes, ending=".JPEG", each=2):
    return pictures(f"{top}/{name}/{i}{ending}" for name in classes for i in range(each))


def flat(top, ending=".jpg"):
    return pictures(f"{top}/{i}{ending}" for i in range(4))


# --- Sets with files of their own ---


def cifar(monkeypatch, published, **labels):
    """Two pickles of a class of torchvision's: of the images, and of the names of classes."""
    base, [[file, _]], meta = published.base_folder, published.test_list, published.meta
    batch = pickle.dumps({"data": PIXELS[:4].reshape(4, 3072), **labels})
    names = pickle.dumps({meta["key"]: ["cat", "dog"]})
    monkeypatch.setattr(published, "test_list", [[file, md5(batch)]])
    monkeypatch.setitem(meta, "md5", md5(names))
    return {f"{base}/{file}": batch, f"{base}/{meta['filename']}": names}


def cifar10(monkeypatch):
    return cifar(monkeypatch, CIFAR10, labels=[0, 1, 1, 0])


def cifar100(monkeypatch):
    return cifar(monkeypatch, CIFAR100, coarse_labels=[0, 0, 0, 0], fine_labels=[1, 0, 1, 1])


def svhn(monkeypatch):
    """The digit 0 has the label 10, and images are the last axis."""
    content = mat(X=PIXELS.transpose(2, 3, 1, 0), y=[[i] for i in (10, *range(1, 10))])
    entry = CATALOGUE["svhn"]
    file = replace(entry.files[0], checksum=f"md5:{md5(content)}")
    monkeypatch.setitem(CATALOGUE, "svhn", replace(entry, files=(file,)))
    return {"svhn/test_32x32.mat": content}


def cub200(_):
    """Tables joined by ids, and classes from 1, of which most are lacking."""
    birds = {1: "001.Black_footed_Albatross", 2: "002.Laysan_Albatross",
             10: "010.Red_winged_Blackbird"}  # fmt: skip
    rows = {7: (10, "Red_winged_1.jpg"), 2: (1, "Black_1.jpg"), 5: (2, "Laysan_1.jpg")}
    files = {i: f"{birds[class_id]}/{file}" for i, (class_id, file) in rows.items()}
    return pictures(f"CUB_200_2011/images/{file}" for file in files.values()) | {
        "CUB_200_2011/classes.txt": lines(*(f"{i} {birds[i]}" for i in (10, 2, 1))),
        "CUB_200_2011/images.txt": lines(*(f"{i} {file}" for i, file in files.items())),
        "CUB_200_2011/image_class_labels.txt": lines(*(f"{i} {rows[i][0]}" for i in sorted(rows))),
    }


def annotations(rows):
    """A struct array with boxes, a class from 1 and a file name."""
    kind = [(n, object) for n in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")]
    array = np.empty((1, len(rows)), kind)
    for i, (class_id, file) in enumerate(rows):
        array[0, i] = (*(np.uint16(9),) * 4, np.uint8(class_id), file)
    return mat(annotations=array)


def cars196(_):
    names = np.empty((1, 3), object)
    names[0, :] = ["AM General Hummer SUV 2000", "Acura RL Sedan 2012", "smart fortwo 2012"]
    train, test = [(3, "00001.jpg"), (1, "00002.jpg")], [(2, "00001.jpg"), (3, "00002.jpg")]
    return pictures(
        f"stanford_cars/cars_{part}/0000{i}.jpg" for part in ("train", "test") for i in (1, 2)
    ) | {
        "stanford_cars/devkit/cars_meta.mat": mat(class_names=names),
        "stanford_cars/devkit/cars_train_annos.mat": annotations(train),
        "stanford_cars/cars_test_annos_withlabels.mat": annotations(test),
    }


def food101(_):
    """Cheesecake comes before cheese_plate; torchvision sorts '_' before 'c'."""
    test = {"ceviche": ["ceviche/1"], "cheesecake": ["cheesecake/2"],
            "cheese_plate": ["cheese_plate/3", "cheese_plate/4"]}  # fmt: skip
    return pictures(f"food-101/images/{p}.jpg" for paths in test.values() for p in paths) | {
        "food-101/meta/test.json": json.dumps(test).encode(),
        "food-101/meta/classes.txt": lines(*test),
    }


def pets37(_):
    """Ids follow the names without regard to case: american_bulldog is 2, before Bengal."""
    rows = {"trainval": ["american_bulldog_10 2", "Bengal_1 3", "Abyssinian_9 1"],
            "test": ["Abyssinian_1 1", "Bengal_2 3", "american_bulldog_3 2"]}  # fmt: skip
    images = [row.split()[0] for part in rows.values() for row in part]
    return pictures(f"oxford-iiit-pet/images/{image}.jpg" for image in images) | {
        f"oxford-iiit-pet/annotations/{part}.txt": lines(*(f"{row} 1 1" for row in of_part))
        for part, of_part in rows.items()
    }


def texture(_):
    return by_class("dtd/dtd/images", ("banded", "dotted"), ".jpg") | {
        "dtd/dtd/labels/test1.txt": lines("banded/0.jpg")
    }


def validation(monkeypatch):
    """Two images of each class, flat in a tar, and the devkit, in an order of its own.

    The devkit's `synsets` are the classes, then the inner nodes, which have children.
    """
    fields = ("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children")
    synsets = np.empty((len(WNIDS) + 1, 1), [(name, object) for name in fields])
    for i, wnid in enumerate(WNIDS[::-1]):
        synsets[i, 0] = (i + 1.0, wnid, "tench, Tinca tinca", "a fish", 0.0)
    synsets[-1, 0] = (len(synsets), "n00001740", "animal", "it lives", 2.0)
    kit = {
        f"{DEVKIT}/data/ILSVRC2012_validation_ground_truth.txt": lines(1, 2, 3, 3, 2, 1),
        f"{DEVKIT}/data/meta.mat": mat(synsets=synsets),
    }
    val = pictures(f"ILSVRC2012_val_{n:08d}.JPEG" for n in range(1, 7))
    archives = {"val": ("ILSVRC2012_img_val.tar", val), "devkit": (f"{DEVKIT}.tar.gz", kit)}
    tree = {}
    for part, (file, content) in archives.items():
        tree[f"imagenet/{file}"] = archive = packed(file, content)
        monkeypatch.setitem(published_imagenet.ARCHIVE_META, part, (file, md5(archive)))
    return tree


def cifar_c(top, classes):
    pixels = np.random.default_rng(1).integers(0, 256, (5 * classes, 32, 32, 3), np.uint8)
    labels = npy(np.tile(np.arange(classes, dtype=np.uint8), 5))
    return {f"{top}/labels.npy": labels, f"{top}/fog.npy": npy(pixels)}


SPLITS = {  # of CoOp's sets: folder, file of the split, folder of the images
    name: [CATALOGUE[name].read.values[key] for key in ("path", "split", "images")]
    for name in CATALOGUE if "split" in getattr(CATALOGUE[name].read, "values", ())
}  # fmt: skip
ROWS = {
    "train": [["c/0.jpg", 2, "third name"], ["a/9.jpg", 0, "first"]],
    "val": [["b/8.jpg", 1, "second_name"]],
    "test": [["b/1.jpg", 1, "second_name"], ["/a/0.jpg", 0, "first"], ["c/2.jpg", 2, "third name"]],
}


def split(name):
    """A set of CoOp's, of which only the images for the test are there."""
    top, file, within = SPLITS[name]
    base = f"{top}/{within}" if within else top
    return pictures(f"{base}/{path}" for path in ("b/1.jpg", "a/0.jpg", "c/2.jpg")) | {
        f"{top}/{file}": json.dumps(ROWS).encode()
    }


def aircraft(_):
    numbers = ("1514522", "0747566", "0099000")
    return pictures(f"fgvc_aircraft/images/{number}.jpg" for number in numbers) | {
        "fgvc_aircraft/variants.txt": lines("707-320", "727-200", "A300B4"),
        "fgvc_aircraft/images_variant_test.txt": lines(
            "1514522 A300B4", "0747566 707-320", "0099000 727-200"
        ),
    }


def coop_imagenet(_):
    return by_class("imagenet/images/val", WNIDS) | {
        "imagenet/classnames.txt": lines("n01440764 tench", "n01443537 gold fish", "n01498041 ray")
    }


ORIGINALS = {name: lambda _, name=name: split(name) for name in SPLITS} | {
    "cifar10": cifar10, "cifar100": cifar100, "cub200": cub200, "cars196": cars196,
    "food101": food101, "pets37": pets37, "svhn": svhn, "texture": texture,
    "imagenet": validation, "coop-imagenet": coop_imagenet, "coop-aircraft": aircraft,
    "imagenet-sketch": lambda _: by_class("sketch", WNIDS),
    "imagenet-a": lambda _: by_class("imagenet-a", WNIDS[1:], ".jpg"),
    "imagenet-v2": lambda _: by_class("imagenetv2-matched-frequency-format-val", "012", ".jpeg"),
    "imagenet-r": lambda _: by_class("imagenet-r", WNIDS[1:], ".jpg"),
    "imagenet-o": lambda _: by_class("imagenet-o", WNIDS),
    "lsun": lambda _: flat("lsun"),
    "lsun-c": lambda _: pictures([f"LSUN/test/{i}.png" for i in range(4)], size=(36, 36)),
    "lsun-r": lambda _: pictures(
        [f"LSUN_resize/LSUN_resize/{i}.png" for i in range(4)], size=(32, 32)
    ),
    "inaturalist": lambda _: flat("iNaturalist/images"),
    "sun": lambda _: flat("SUN/images"),
    "places": lambda _: flat("Places/images"),
    "ninco": lambda _: by_class("NINCO/NINCO_OOD_classes", ("amphiuma", "caracal"), ".jpg"),
    "ssb-hard": lambda _: by_class("ssb_hard", WNIDS),
    "openimage-o": lambda _: flat("openimage_o/images"),
    "cifar10-c": lambda _: cifar_c("CIFAR-10-C", 10),
    "cifar100-c": lambda _: cifar_c("CIFAR-100-C", 100),
    "imagenet-c": lambda _: by_class("imagenet-c/fog/1", WNIDS),
}  # fmt: skip


def packed(archive, files):
    with tempfile.TemporaryDirectory() as folder:
        return pack(Path(folder) / Path(archive).name, files).read_bytes()


def spec_of(name):
    return f"{name}:fog:1" if CATALOGUE[name].parameters else name


def write(root, tree):
    for path, content in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def made(name, monkeypatch, root):
    """The tree of a set, written to `root`."""
    table = root.parent / "imagenet_classes.tsv"
    names = ("tench\t", "goldfish\tar", "stingray\tar")
    table.write_bytes(lines(*(f"{w}\t{n}" for w, n in zip(WNIDS, names, strict=True))))
    monkeypatch.setattr(known_sets, "_TABLE", table)
    known_sets.names_by_wnid.cache_clear()
    tree = ORIGINALS[name](monkeypatch)
    write(root, tree)
    return tree

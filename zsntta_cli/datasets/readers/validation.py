"""ImageNet's validation images as they are handed out: flat, with their labels in a devkit.

Image `ILSVRC2012_val_00000001.JPEG` is of the class in the first line of the devkit's
`ILSVRC2012_validation_ground_truth.txt`. That is an ILSVRC2012_ID, from 1, in an order of its own:
`meta.mat` has the wnid of each.
"""

import io
import re
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from zsntta_cli.datasets.hidden import is_hidden
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.archives import images_among, member_images, open_archive
from zsntta_cli.datasets.readers.folders import images_in, listed_images
from zsntta_cli.datasets.readers.imagenet import by_wnids, classes
from zsntta_cli.datasets.readers.members import BROKEN
from zsntta_cli.errors import DatasetError, first_line, short

_DEVKIT, _IMAGES = "ILSVRC2012_devkit_t12", "ILSVRC2012_img_val.tar"
_TRUTH, _META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
_IMAGE = re.compile(r"ILSVRC2012_val_(\d{8})\.JPEG", re.IGNORECASE)


def imagenet(name: str, root: Path, *, path: str) -> ImageSet:
    """The validation set below `path`: `val/` by wnid, `val/` flat, or the tar of that.

    All are one set: images by class, with `WNID/FILE` as ids.
    """
    folder = root / path / "val"
    if folder.is_dir():
        if any(p.is_dir() and not is_hidden(p.name) for p in folder.iterdir()):
            return by_wnids(name, root, [f"{path}/val"])
        files = images_in(folder)
        order, labels, ids = _in_order(name, root / path, [file.name for file in files])
        return _flat(name, folder, [files[i] for i in order], labels, ids)
    tars = [at / _IMAGES for at in (root / path, root) if (at / _IMAGES).is_file()]
    if not tars:
        return by_wnids(name, root, [f"{path}/val"])  # which says what is missing
    members, read = open_archive(name, tars[0])
    images = list(images_among(members).values())
    names = [PurePosixPath(image.path).name for image in images]
    order, labels, ids = _in_order(name, root / path, names)
    return member_images(name, [(read, images[i]) for i in order], labels, ids, _class_names())


def _class_names() -> list[str]:
    return [row.name for row in classes()]


def _flat(
    name: str, folder: Path, files: Sequence[Path], labels: Sequence[int], ids: Sequence[str]
) -> ImageSet:
    return replace(listed_images(name, folder, files, labels, _class_names()), sample_ids=ids)


def _in_order(
    name: str, where: Path, files: Sequence[str]
) -> tuple[list[int], list[int], list[str]]:
    """The images by class and then by name: which file each is, its label, its id."""
    wnids = _wnids(name, where)
    numbers = [_number(name, file, len(wnids)) for file in files]
    label_of = {row.wnid: label for label, row in enumerate(classes())}
    labels = [label_of[wnids[number - 1]] for number in numbers]
    order = sorted(range(len(files)), key=lambda i: (labels[i], files[i]))
    if len(set(numbers)) < len(numbers):
        raise DatasetError(f"data set '{name}': two images of {where} have one number.")
    if not order:
        raise DatasetError(f"data set '{name}': no image of ImageNet's validation set in {where}.")
    ids = [f"{wnids[numbers[i] - 1]}/{files[i]}" for i in order]
    return order, [labels[i] for i in order], ids


def _number(name: str, file: str, count: int) -> int:
    """Which line of the ground truth an image is of."""
    match = _IMAGE.fullmatch(file)
    if match is None or not 1 <= int(match[1]) <= count:
        raise DatasetError(
            f"data set '{name}': {file} is none of the validation images, "
            f"ILSVRC2012_val_00000001.JPEG to {count:08d}: its label is not known."
        )
    return int(match[1])


def _wnids(name: str, where: Path) -> list[str]:
    """The wnid of each validation image, by the devkit."""
    read = _devkit(name, where)
    wnid_of = _synsets(name, read(_META))
    text = read(_TRUTH).decode(errors="replace").split()
    unknown = [word for word in text if not word.isdigit() or int(word) not in wnid_of]
    if unknown or not text:
        raise DatasetError(
            f"data set '{name}': {_TRUTH} of the devkit is not made of lines of a class from 1 to "
            f"{len(wnid_of)}{f', such as {short(unknown[0])}' if unknown else ''}."
        )
    return [wnid_of[int(word)] for word in text]


def _synsets(name: str, meta: bytes) -> dict[int, str]:
    """The wnid of each ILSVRC2012_ID that is a class: one that has no children."""
    import scipy.io

    try:
        rows = scipy.io.loadmat(io.BytesIO(meta), squeeze_me=True)["synsets"]
        wnid_of = {
            int(row["ILSVRC2012_ID"]): str(row["WNID"])
            for row in rows
            if int(row["num_children"]) == 0
        }
    except Exception as error:  # whatever scipy raises of a file that is none
        raise DatasetError(
            f"data set '{name}': {_META} of the devkit cannot be read ({first_line(error)})."
        ) from error
    if sorted(wnid_of.values()) != sorted(row.wnid for row in classes()):
        raise DatasetError(
            f"data set '{name}': {_META} of the devkit has {len(wnid_of):,} classes that are not "
            f"ImageNet's {len(classes()):,}: {_DEVKIT}.tar.gz has them."
        )
    return wnid_of


def _devkit(name: str, where: Path) -> Callable[[str], bytes]:
    """What reads a file of the devkit, which lies where the images do or one folder above.

    Raises:
        DatasetError: there is none, or it lacks a file.
    """
    for folder in (where, where.parent):
        if (folder / _DEVKIT).is_dir():
            return partial(_of_folder, name, folder / _DEVKIT)
        if (packed := folder / f"{_DEVKIT}.tar.gz").is_file():
            return partial(_of_archive, name, packed)
    raise DatasetError(
        f"data set '{name}': its images are in one folder, and their labels are in the devkit: put "
        f"{_DEVKIT}.tar.gz of image-net.org into {where}."
    )


def _of_folder(name: str, folder: Path, file: str) -> bytes:
    try:
        return (folder / "data" / file).read_bytes()
    except OSError as error:
        raise _lacks(name, folder, file) from error


def _of_archive(name: str, path: Path, file: str) -> bytes:
    try:
        with tarfile.open(path) as tar:
            for entry in tar:
                if PurePosixPath(entry.name).name == file and (content := tar.extractfile(entry)):
                    return content.read()
    except (OSError, *BROKEN) as error:
        raise DatasetError(
            f"data set '{name}': {path} is no whole tar archive ({first_line(error)}): get it "
            f"again."
        ) from error
    raise _lacks(name, path, file)


def _lacks(name: str, where: Path, file: str) -> DatasetError:
    return DatasetError(f"data set '{name}': the devkit {where} has no data/{file}: get it again.")

"""LSUN's test set and ODIN's variants of it, told by their sizes."""

from originals import pictures, write

from zsntta_cli import datasets
from zsntta_cli.datasets import sizes
from zsntta_cli.datasets.images import limited

ODIN = {"lsun": "lsun", "lsun-c": "LSUN/test", "lsun-r": "LSUN_resize/LSUN_resize"}


def test_odins_images_may_be_taken_for_lsun_by_a_link(tmp_path):
    write(tmp_path, pictures([f"LSUN/test/{i}.png" for i in range(3)], size=(36, 36)))
    (tmp_path / "lsun").symlink_to(tmp_path / "LSUN" / "test")
    as_lsun, as_itself = (datasets.load_images(name, tmp_path) for name in ("lsun", "lsun-c"))
    assert as_lsun.identity()["digest"] == as_itself.identity()["digest"]


def test_sizes_in_words():
    assert sizes.in_words({(36, 36): 9}) == "36 x 36"
    assert sizes.in_words({(30, 50): 1, (40, 20): 1}) == "30 x 20 to 40 x 50"
    assert sizes.in_words({(30, 50): 1, (40, 20): 2}) == "30 x 20 to 40 x 50, most 40 x 20"
    assert sizes.in_words({}) == ""


def test_sizes_are_those_of_some_images_first_and_last_parts_among_them(tmp_path):
    for width in (8, 9):
        some = range(65) if width == 8 else range(65, 130)
        write(tmp_path, pictures([f"{i:03d}.png" for i in some], size=(width, 7)))
    (tmp_path / "000.png").write_bytes(b"broken")
    images = datasets.load_images(f"mine={tmp_path}", tmp_path)
    assert sizes.image_sizes(images) == {(8, 7): 31, (9, 7): 32}
    assert sizes.image_sizes(limited(images, 3)).keys() == {(8, 7), (9, 7)}

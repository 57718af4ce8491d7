"""The catalogue: the paper's pairs and counts, and what is said of a set that is not there."""

import pytest
from made import refused
from originals import NAMES, spec_of

from zsntta_cli import datasets
from zsntta_cli.datasets import download
from zsntta_cli.datasets.catalogue import ALIASES, BUILTIN, CATALOGUE
from zsntta_cli.errors import DatasetError


def test_the_papers_44_pairs():
    id_sets = {n for n, e in CATALOGUE.items() if e.role == "id" and n not in BUILTIN}
    coop = {name for name in id_sets if name.startswith("coop-")}
    id_sets -= coop
    assert (len(id_sets), len(coop)) == (11, 11)
    pairs = {(name, ood) for name in id_sets for ood in datasets.partners(name)}
    assert len(pairs) == 44
    assert all(CATALOGUE[ood].role == "ood" for _, ood in pairs)
    assert {n for n, ood in pairs if ood in ("svhn", "lsun")} == {"cifar10", "cifar100"}
    assert CATALOGUE["imagenet"].extra_partners == ("ninco",)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_set_says_what_where_and_whence(tmp_path, monkeypatch, name):
    def fail(*_args, **_kwargs):
        raise DatasetError("no network in tests")

    monkeypatch.setattr(download, "fetch", fail)
    entry = CATALOGUE[name]
    assert all((entry.home, entry.layout, entry.licence))
    with refused(entry.layout, entry.home, "--data-root"):
        datasets.load_images(spec_of(name), tmp_path)


@pytest.mark.parametrize(
    ("name", "images", "count"),
    [("cifar10", 10_000, ""), ("cifar10", 2_010, "2,010 of 10,000 images"),
     ("ninco", 5_879, ""), ("ninco", 5_878, ""), ("imagenet-c:all:5", 750_000, ""),
     ("cifar10-c:all:1", 140_000, "140,000 of 150,000 images"),
     ("shapes", 40, ""), ("cifar10:fog", 40, ""), ("mine", 40, ""), ("noise-gaussian", 40, "")],
)  # fmt: skip
def test_a_count_is_right_or_said(name, images, count):
    assert datasets.miscounted(name, images) == count


@pytest.mark.parametrize("alias", ["DTD", "sun397", "in1k"])
def test_a_set_is_shown_by_its_alias(zsntta, alias):
    result = zsntta("datasets", "show", alias)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(ALIASES[alias.lower()])

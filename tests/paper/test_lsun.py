"""Which of LSUN's variants the paper's rows fit, as tables that have LSUN say."""

import dataclasses

import numpy as np
import pytest
from kept import kept_run
from made import PROMPT

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.paper import lsun
from zsntta_cli.paper.cells import PaperEncoder
from zsntta_cli.paper.printed.tables import find_table
from zsntta_cli.paper.runs import Wishes, all_runs
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.metrics import Measures

OURS = "ViT-B-16-openai"
SIZES = {"lsun": "36 x 36", "lsun-c": "36 x 36", "lsun-r": "32 x 32", "svhn": ""}


def record_of(run, auroc, fpr95, sizes=""):
    features = {"sets": {run.ood_set: {"image_sizes": sizes}}} if sizes else {}
    detection = Measures(auroc=auroc, fpr95=fpr95)
    record = kept_run(ood=run.ood_set, id_set="cifar10").record
    return dataclasses.replace(record, settings=run, detection=detection, features=features)


def note_of(tmp_path, numbers, sizes=None, table="21", **wishes):
    wished = Wishes(tmp_path, **wishes)
    runs = lsun._runs(wished)
    records = {
        runs[name]: record_of(runs[name], *values, sizes=(sizes or {}).get(name, ""))
        for name, values in numbers.items()
    }
    return lsun.lsun_note(wished, all_runs(wished, [find_table(table)]), records)


FITS = {"lsun": (0.95, 0.2), "lsun-c": (0.977, 0.11), "lsun-r": (0.99, 0.05)}


def test_the_nearest_variant_is_named_with_all_numbers(tmp_path):
    assert note_of(tmp_path, FITS, {"lsun-c": "36 x 36"}) == (
        "note: LSUN: the paper has AUROC 97.75 and FPR95(ID+) 10.64 (± 0.00) for ZS-CLIP on "
        "CIFAR-10; here it is AUROC 95.00 and FPR95(ID+) 20.00 with 'lsun', AUROC 97.70 and "
        "FPR95(ID+) 11.00 with 'lsun-c' (images of 36 x 36), AUROC 99.00 and FPR95(ID+) 5.00 with "
        "'lsun-r'; nearest is 'lsun-c'"
    )


@pytest.mark.parametrize(
    ("numbers", "end"),
    [({**FITS, "lsun-r": (0.9775, 0.5)},
      "; nearest by AUROC is 'lsun-r', by FPR95(ID+) is 'lsun-c'"),
     ({**FITS, "lsun": FITS["lsun-c"]}, "; nearest is 'lsun' and 'lsun-c'"),
     ({"lsun": (0.9775, 0.1064)}, "variant it took: there are 'lsun-c' and 'lsun-r' too"),
     ({"lsun-r": (0.5, 0.9)}, "variant it took: there are 'lsun' and 'lsun-c' too")],
)  # fmt: skip
def test_where_the_numbers_disagree_or_there_is_nothing_to_compare(tmp_path, numbers, end):
    assert note_of(tmp_path, numbers).endswith(end)


def test_nothing_is_said_without_results_of_other_tables_and_of_other_encoders(tmp_path):
    assert note_of(tmp_path, {}) == ""
    assert note_of(tmp_path, FITS, table="12") == ""  # has no CIFAR
    other = Wishes(tmp_path, PaperEncoder(EncoderChoice("RN50")))
    runs = all_runs(other, [find_table("10")])
    assert lsun.variant_runs(other, runs) == []
    assert lsun.lsun_note(other, runs, {}) == ""


@pytest.fixture
def variants(tmp_path):
    """Made-up features of CIFAR-10, SVHN and LSUN's variants, the crops the hardest."""
    text = np.linalg.qr(np.random.default_rng(0).standard_normal((16, 16)))[0].astype(np.float32)
    labels = np.repeat(np.arange(10, dtype=np.int32), 6)
    names = [f"class {i}" for i in range(10)]

    def write(name, rows, labels, classes=(), texts=(), source=None):
        noise = np.random.default_rng(len(name)).standard_normal((len(labels), 16))
        hdf5.write_features(
            tmp_path / "features" / OURS / f"{name}.h5", kind=DATASET, name=name,
            encoder={"model": "ViT-B-16", "pretrained": "openai", "logit_scale": 100.0},
            source=source or {}, blocks=[(rows + 0.1 * noise).astype(np.float16)], labels=labels,
            class_names=classes, texts=texts, sample_ids=[f"{i}" for i in range(len(labels))],
        )  # fmt: skip

    write("cifar10", text[labels], labels, names, [Text(PROMPT, text[:10])])
    for name, share in (("svhn", 0.0), ("lsun", 0.1), ("lsun-c", 0.5), ("lsun-r", 0.3)):
        rows = (1 - share) * text[[12] * 60] + share * text[labels]
        source = {"image_sizes": SIZES[name]} if SIZES[name] else {}
        write(name, rows, np.full(60, -1, np.int32), source=source)
    return tmp_path / "features" / OURS


def test_a_table_runs_the_variants_that_are_there(zsntta, variants):
    shown = " ".join(zsntta("paper", "21", "--seed", "3").stdout.split())
    assert "note: LSUN: the paper has AUROC 97.75" in shown
    for name in ("lsun", "lsun-c", "lsun-r"):
        assert f"with '{name}' (images of {SIZES[name]})" in shown, "as its record says"
    (variants / "lsun-c.h5").unlink()
    (variants / "lsun-r.h5").unlink()
    shown = " ".join(zsntta("paper", "21", "--seed", "3").stdout.split())
    assert "with 'lsun' (images of 36 x 36); the paper does not say" in shown
    (variants / "lsun.h5").unlink()
    assert "LSUN: the paper has" not in zsntta("paper", "21", "--seed", "3").stdout


def test_variants_alone_do_not_make_a_table(zsntta, variants):
    (variants / "svhn.h5").unlink()
    (variants / "lsun.h5").unlink()
    result = zsntta("paper", "21", "--seed", "3")
    assert result.exit_code == 1
    assert "lsun" in result.stderr

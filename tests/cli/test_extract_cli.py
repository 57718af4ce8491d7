"""`zsntta extract` as a user has it: folders of one's own, encoders told apart, what goes wrong."""

import json
import shlex
import shutil
from pathlib import Path

import huggingface_hub
import numpy as np
import open_clip
import pytest
import torch
from made import TINY, fails
from PIL import Image

from zsntta_cli.cache import store


@pytest.fixture
def mine(picture_folder):
    """What is typed to extract a folder of one's own."""
    return ("extract", "--dataset", f"mine={picture_folder}", *TINY)


def test_a_folder_of_ones_own_is_extracted_once_and_simulated(cached, mine):
    first = cached(*mine)
    assert first.exit_code == 0, first.output
    assert "features/tiny/mine.h5: 12 images in" in first.stdout
    assert "2 classes: big_cat, dog" in first.stderr
    assert "mine: zero-shot accuracy " in first.stderr
    assert "12 images, already extracted" in cached(*mine).stdout
    result = cached("simulate", "--method", "zs-clip", "--id", "mine", "--ood", "glyphs", *TINY)
    assert "ID: mine" in result.stdout


def test_a_named_set_has_class_features_though_it_is_a_partner_of_another(zsntta):
    sets = ("--dataset", "shapes", "--dataset", "digits", "--limit", 4, "--noise", "none", *TINY)
    result = zsntta("extract", *sets)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("digits.h5") == 1
    assert store.read(Path("features/tiny/digits.h5")).texts
    assert not store.read(Path("features/tiny/glyphs.h5")).texts


def test_a_broken_image_ends_it_or_is_left_out(zsntta, picture_folder, mine):
    (picture_folder / "dog" / "0.jpg").write_bytes(b"broken")
    fails(zsntta(*mine, "--batch-size", 1), "'dog/0.jpg' of 'mine'", "--skip-broken\n", stdout=None)
    assert not Path("features/tiny/mine.h5").exists()
    assert "mine" not in zsntta("encoders").stdout, "it is no cached set"
    skipping = zsntta(*mine, "--skip-broken")
    assert "11 images" in skipping.stdout
    assert "dog/0.jpg" in skipping.stdout


def test_wnids_become_names_and_a_list_names_folders(zsntta, tmp_path):
    for folder in ("n01440764", "n01443537"):
        (tmp_path / "pictures" / folder).mkdir(parents=True)
        for i in range(3):
            pixels = np.random.default_rng(i).integers(0, 256, (32, 32, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / folder / f"{i}.png")
    path, command = Path("features/tiny/mine.h5"), ("extract", "--dataset", "mine=pictures", *TINY)
    result = zsntta(*command)
    assert "n01440764 as 'tench'" in result.stderr
    assert store.read(path).class_names == ("tench", "goldfish")
    named = (*command, "--class-names", "names.txt")
    (tmp_path / "names.txt").write_text("n01443537\tgold fish\nn01440764 a tench\n")
    fails(zsntta(*named), "is tench, goldfish, not a tench", stdout=None)
    assert zsntta(*named, "--overwrite").exit_code == 0
    assert store.read(path).class_names == ("a tench", "gold fish")
    (tmp_path / "names.txt").write_text("fish\n")
    fails(zsntta(*named, "--overwrite"), "names.txt", "1 lines", "2 class folders")
    live = zsntta("simulate", "--method", "tent", "--id", "mine", "--ratio", 0, "--dataset",
                  "mine=pictures", *TINY)  # fmt: skip
    assert live.exit_code == 0, live.stderr


def test_the_last_line_is_the_command_that_uses_it(zsntta, mine):
    digits = ("extract", "--dataset", "digits", "--limit", 60, *TINY)
    for command, follows in ((digits, "extract --dataset other=FOLDER"), (mine, "simulate")):
        result = zsntta(*command, "--features-dir", "my features")
        assert result.exit_code == 0, result.stderr
        last = result.stderr.splitlines()[-1]
        assert last.startswith(f"next: zsntta {follows} ")
    again = zsntta(*shlex.split(last.removeprefix("next: zsntta ")))
    assert again.exit_code == 0, f"{last}: {again.stderr}"


# Encoders

SMALL = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "patch_size": 16, "head_width": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 1, "layers": 1},
}


@pytest.fixture
def two_checkpoints(tmp_path):
    """Weights of two encoders of one model, in files of one name, as hub downloads have it."""
    (tmp_path / "small-clip.json").write_text(json.dumps(SMALL))
    open_clip.add_model_config(tmp_path / "small-clip.json")
    paths = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        path = tmp_path / f"download{seed}" / "open_clip_model.pt"
        path.parent.mkdir()
        torch.save(open_clip.create_model("small-clip").state_dict(), path)
        paths.append(path)
    return paths


def test_an_encoder_is_known_by_its_weights_wherever_they_lie(zsntta, two_checkpoints, tmp_path):
    (one, two), features = two_checkpoints, tmp_path / "features"

    def ran(path, *words):
        return zsntta(*words, "--model", "small-clip", "--pretrained", path)

    def extract(path):
        sets = ("--dataset", "shapes", "--dataset", "glyphs", "--no-partners")
        result = ran(path, "extract", *sets, "--limit", 20, "--noise-count", 5)
        assert result.exit_code == 0, result.output
        return result.stdout.count("already extracted")

    shapes = ("--id", "shapes", "--ood", "glyphs")
    assert extract(one) == 0
    fails(ran(two, "simulate", "--method", "zs-clip", *shapes), "no features of 'shapes'")
    assert extract(two) == 0
    folders = sorted(path.name for path in features.iterdir())
    assert len(folders) == 2
    assert all(name.startswith("small-clip-open_clip_model-") for name in folders)
    seen = {
        json.loads(ran(path, "simulate", "--method", "zs-clip", *shapes, "--format", "json")
                   .stdout)[0]["digests"]["shapes"]
        for path in (one, two)
    }  # fmt: skip
    assert seen == {store.read(features / name / "shapes.h5").digest for name in folders}
    assert len(seen) == 2
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.move(one, tmp_path / "elsewhere" / one.name)
    assert extract(moved) == 3
    live = ran(moved, "simulate", "--method", "tent", *shapes, "--limit", 20)
    assert live.exit_code == 0, live.stderr
    shutil.rmtree(features)
    assert extract(moved) == 0
    assert (extract(moved), extract(two)) == (3, 0)
    assert len(list(features.iterdir())) == 2


def test_an_encoder_that_cannot_be_had_leaves_no_folder(zsntta):
    result = zsntta("extract", "--dataset", "digits", "--model", "RN50", "--pretrained", "nonsense")
    fails(result, "'nonsense'", stdout=None)
    assert not Path("features").exists()


@pytest.mark.parametrize(("place", "said"), [(None, "will be downloaded; "), ("w", "cached\n")])
def test_a_dry_run_says_whether_the_weights_are_at_hand(zsntta, monkeypatch, place, said):
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: place)
    planned = zsntta("extract", "--dataset", "cifar10", "--dry-run").stdout
    assert f"weights 'openai' of ViT-B-16: {said}" in planned


def test_encoders_names_the_papers_and_those_that_are_cached(cached):
    shutil.copytree("features/tiny", "features/ViT-B-16-none")
    lines = cached("encoders").stdout.splitlines()
    rows = {line.split("│")[1].strip(): line for line in lines if line.startswith("│")}
    assert list(rows)[:5] == [
        "tiny", "ViT-B-16-openai", "RN50-openai", "ViT-L-14-openai", "ViT-B-16-none"
    ]  # fmt: skip
    assert "glyphs" in rows["tiny"]
    assert "--model RN50" in rows["RN50-openai"]
    assert "--encoder FOLDER" in rows["ViT-B-16-none"]

"""The right number or a clear refusal: what was asked for is what is shown."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

from zsntta_cli.cache.hdf5 import read_features

TINY = ("--model", "tiny")
SMALL = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "patch_size": 16, "head_width": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 1, "layers": 1},
}


def lines(result):
    return result.stderr.splitlines()


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


def extract(zsntta, weights, *more):
    return zsntta(
        "extract", "--model", "small-clip", "--pretrained", weights, "--dataset", "shapes",
        "--dataset", "glyphs", "--limit", 60, "--no-partners", *more,
    )  # fmt: skip


def digest_of(path):
    return read_features(path).digest


def test_two_checkpoints_of_one_name_are_two_encoders(zsntta, two_checkpoints, tmp_path):
    one, two = two_checkpoints
    assert extract(zsntta, one).exit_code == 0
    missing = zsntta("simulate", "--method", "zs-clip", "--model", "small-clip", "--pretrained",
                     two, "--ood", "glyphs")  # fmt: skip
    assert missing.exit_code == 1
    assert "no features of 'cifar10'" in missing.stderr
    assert extract(zsntta, two).exit_code == 0
    folders = sorted(p.name for p in (tmp_path / "features").iterdir())
    assert len(folders) == 2
    assert all(name.startswith("small-clip-open_clip_model-") for name in folders)
    digests = {digest_of(tmp_path / "features" / name / "shapes.h5") for name in folders}
    assert len(digests) == 2
    shown = [
        zsntta("simulate", "--method", "zs-clip", "--model", "small-clip", "--pretrained", path,
               "--id", "shapes", "--ood", "glyphs", "--format", "json")
        for path in (one, two)
    ]  # fmt: skip
    seen = {json.loads(result.stdout)[0]["digests"]["shapes"] for result in shown}
    assert seen == digests


def test_the_same_weights_elsewhere_are_the_same_encoder(zsntta, two_checkpoints, tmp_path):
    one, _ = two_checkpoints
    assert extract(zsntta, one).exit_code == 0
    moved = tmp_path / "elsewhere" / one.name
    moved.parent.mkdir()
    shutil.move(one, moved)
    again = extract(zsntta, moved)
    assert again.stdout.count("there already") == 3
    live = zsntta("simulate", "--method", "tent", "--model", "small-clip", "--pretrained", moved,
                  "--id", "shapes", "--ood", "glyphs", "--limit", 20)  # fmt: skip
    assert live.exit_code == 0, live.stderr


def test_a_folder_made_before_digests_were_in_names_keeps_working(
    zsntta, two_checkpoints, tmp_path
):
    one, two = two_checkpoints
    assert extract(zsntta, one).exit_code == 0
    [folder] = (tmp_path / "features").iterdir()
    folder.rename(folder.with_name("small-clip-open_clip_model"))
    assert extract(zsntta, one).stdout.count("there already") == 3
    assert extract(zsntta, two).stdout.count("there already") == 0
    assert len(list((tmp_path / "features").iterdir())) == 2


def test_weights_that_change_behind_a_name_are_noticed(zsntta, tmp_path, monkeypatch):
    from zsntta_cli.encoders import weights

    command = ("extract", "--dataset", "digits", "--limit", 20, *TINY)
    assert zsntta(*command).exit_code == 0
    original = weights._load_tiny
    monkeypatch.setattr(weights, "_load_tiny", lambda p: (original(p)[0], "0" * 64))
    result = zsntta("extract", "--dataset", "glyphs", "--limit", 20, *TINY)
    assert result.exit_code == 1
    assert "digits.h5 was made by another encoder than this is now (weights_sha256: " in (
        result.stderr
    )


@pytest.mark.parametrize(
    "beside",
    [("--method", "adand"), ("--ratio", 0.1), ("--limit", 5), ("--model", "RN50"),
     ("--set", "adand.warmup=1"), ("--encoder", "x"), ("--id", "shapes"), ("--preset", "tuned")],
)  # fmt: skip
def test_what_stands_beside_a_record_is_refused(cached, tmp_path, beside):
    first = cached("simulate", "--method", "zs-clip", *TINY, "--output", "r.json")
    assert first.exit_code == 0
    result = cached("simulate", "--from", "r.json", *beside)
    assert result.exit_code == 2
    assert len(lines(result)) == 1
    assert beside[0] in result.stderr
    assert cached("simulate", "--from", "r.json").exit_code == 0


def test_an_average_over_fewer_sets_says_so(cached, tmp_path):
    result = cached("simulate", "--method", "zs-clip", *TINY, "--ood", "glyphs", "--ood", "digits")
    assert "average over 2 of its 4 OOD sets" in " ".join(result.stdout.split())
    whole = cached("simulate", "--method", "zs-clip", *TINY)
    assert "average over" not in " ".join(whole.stdout.split())


def test_a_capped_ratio_prints_its_true_share(cached):
    result = cached("simulate", "--method", "zs-clip", *TINY, "--ood", "glyphs", "--ratio", 0.75,
                    "--ood-fill", "cap")  # fmt: skip
    assert "'glyphs' is too small for 75% noise: the stream has 50.0%." in result.stdout


@pytest.mark.slow
def test_a_resumed_extraction_with_other_threads_says_what_it_makes_again(tmp_path):
    """Features depend on the threads of the CPU in their last bits."""
    code = (
        "import sys; from zsntta_cli.extraction import extractor, parts\n"
        "write = parts.Parts.write\n"
        "def once(*a):\n    write(*a)\n    raise KeyboardInterrupt\n"
        "if sys.argv.pop(1) == 'stop': parts.Parts.write = once\n"
        "from zsntta_cli.cli import main; main()"
    )
    command = ["extract", "--dataset", "digits", "--limit", "90", "--batch-size", "10", *TINY]

    def run(word, threads):
        return subprocess.run(
            [sys.executable, "-c", code, word, *command], cwd=tmp_path, text=True,
            capture_output=True, check=False, env={**os.environ, "OMP_NUM_THREADS": threads},
        )  # fmt: skip

    assert run("stop", "1").returncode == 130
    other = run("go", "2")
    assert other.returncode == 0, other.stderr
    assert "digits: what a stopped run had finished is made again (threads: 1, now 2)." in (
        other.stderr
    )


def test_a_clean_stream_is_run_once_for_all_ood_sets(cached):
    command = ("simulate", "--method", "adand", "--ratio", 0, "--ratio", 0.5, *TINY)
    records = json.loads(cached(*command, "--format", "json").stdout)
    ratios = [r["settings"]["stream"]["ratio"] for r in records]
    assert (ratios.count(0), ratios.count(0.5)) == (1, 4)
    assert [r["settings"]["ood_set"] for r in records if not r["settings"]["stream"]["ratio"]] == [
        None
    ]
    rows = [line for line in cached(*command).stdout.splitlines() if "│ 0%" in line]
    assert len(rows) == 1
    assert len(set(rows[0].split("│")[3:-1])) == 1, "the same number below every OOD set"


def test_sets_that_are_too_small_are_named_before_runs_that_a_file_is_for(cached, monkeypatch):
    from zsntta_cli.simulation import simulator

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulator.Simulator, "replay", stop)
    seeds = [word for seed in range(9) for word in ("--seed", seed)]
    command = ("simulate", "--method", "adand", "--ratio", 0.75, "--ood", "glyphs")
    result = cached(*command, *seeds, *TINY, "--output", "table.csv")
    assert result.exit_code == 130
    assert (
        "Sets that are smaller than the streams need are shown again: 'glyphs' up to 3.00 times"
        in (result.stderr)
    )
    assert "'noise-gaussian' up to " in result.stderr


@pytest.mark.parametrize(
    ("name", "start"),
    [("t.csv", "method,"), ("t.json", "["), ("t.md", "**ID"), ("t.tex", "%"),
     ("t.txt", "ID: "), ("t.TXT", "ID: "), ("t.html", "<")],
)  # fmt: skip
def test_the_ending_of_an_output_says_its_form(cached, tmp_path, name, start):
    result = cached("simulate", "--method", "zs-clip", "--output", name, *TINY)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / name).read_text().startswith(start)


def test_wnids_become_names_and_a_list_names_folders(zsntta, tmp_path):
    for folder in ("n01440764", "n01443537"):
        (tmp_path / "pictures" / folder).mkdir(parents=True)
        for i in range(3):
            pixels = np.random.default_rng(i).integers(0, 256, (32, 32, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / folder / f"{i}.png")
    command = ("extract", "--dataset", "mine=pictures", *TINY)
    result = zsntta(*command)
    assert "folders are wnids, so classes are 'tench' and so on" in result.stderr
    path = Path("features/tiny/mine.h5")
    assert read_features(path).class_names == ("tench", "goldfish")
    (tmp_path / "names.txt").write_text("n01443537\tgold fish\nn01440764 a tench\n")
    other = zsntta(*command, "--class-names", "names.txt")
    assert other.exit_code == 1
    assert "the class names are others" in other.stderr
    assert zsntta(*command, "--class-names", "names.txt", "--overwrite").exit_code == 0
    assert read_features(path).class_names == ("a tench", "gold fish")
    (tmp_path / "names.txt").write_text("fish\n")
    wrong = zsntta(*command, "--class-names", "names.txt", "--overwrite")
    assert "names.txt has 1 lines and 'mine' 2 class folders" in wrong.stderr
    live = zsntta("simulate", "--method", "tent", "--id", "mine", "--ratio", 0, "--dataset",
                  "mine=pictures", *TINY)  # fmt: skip
    assert live.exit_code == 0, live.stderr


def test_the_last_line_of_an_extraction_is_the_command_that_uses_it(zsntta, picture_folder):
    import shlex

    for options in (
        ("--dataset", "digits", "--limit", 60),
        ("--dataset", f"mine={picture_folder}"),
    ):
        result = zsntta("extract", *options, "--features-dir", "my features", *TINY)
        assert result.exit_code == 0, result.stderr
        last = lines(result)[-1]
        assert last.startswith("next: zsntta simulate ")
        again = zsntta(*shlex.split(last.removeprefix("next: zsntta ")))
        assert again.exit_code == 0, f"{last}: {again.stderr}"


def test_an_extraction_that_failed_is_no_cached_set(zsntta, picture_folder):
    (picture_folder / "dog" / "0.jpg").write_bytes(b"broken")
    command = ("extract", "--dataset", f"mine={picture_folder}", "--batch-size", 1, *TINY)
    assert zsntta(*command).exit_code == 1
    listed = zsntta("encoders").stdout
    assert "mine" not in listed


def test_the_preset_is_in_the_table_or_its_title(cached):
    def shown(*presets):
        some = [x for name in presets for x in ("--preset", name)]
        return cached("simulate", "--method", "adand", *some, *TINY).stdout

    assert "preset official" in " ".join(shown("official").split())
    assert "preset paper" in " ".join(shown().split())
    rows = [line for line in shown("paper", "tuned").splitlines() if line.startswith("│ adand")]
    assert [row.split("│")[2].strip() for row in rows] == ["paper", "tuned"]


def test_the_papers_spread_of_averages_is_the_mean_of_the_sets(cached):
    def average(spread):
        result = cached("simulate", "--method", "adand", "--seed", 0, "--seed", 1, "--seed", 2,
                        "--spread", spread, "--format", "markdown", *TINY)  # fmt: skip
        *_, note = printed = result.stdout.strip().splitlines()
        row = [line for line in printed if line.startswith("|")][-1]
        return note, [float(c.partition("±")[2].strip("*")) for c in row.split("|")[2:-1]]

    own_note, own = average("seeds")
    note, sets = average("sets")
    assert "its own standard deviation over seeds" in own_note
    assert "the mean of its sets' standard deviations" in note
    assert own[:-3] == sets[:-3]
    expected = [np.mean(sets[i:-3:3]) for i in range(3)]
    np.testing.assert_allclose(sets[-3:], expected, atol=0.011)


def test_official_takes_a_fixed_threshold_on_the_noise_score(cached):
    def acc_n(*options):
        result = cached("simulate", "--method", "zs-clip", "--ood", "glyphs", "--format", "json",
                        *options, *TINY)  # fmt: skip
        return json.loads(result.stdout)[0]["accuracies"]["acc_n"]

    assert acc_n("--threshold", 0.3, "--preset", "official") == acc_n("--threshold", 0.7)
    assert acc_n("--threshold", 0.3) != acc_n("--threshold", 0.7)


def test_completion_knows_methods_sets_encoders_and_words(cached, tmp_path):
    from zsntta_cli.cli.line import completion

    context = SimpleNamespace(params={"features_dir": Path("features"), "model": "tiny"})
    assert completion.methods("adand+t") == ["adand+tda", "adand+tent", "adand+transclip"]
    assert completion.cached(context, "g") == ["glyphs"]
    assert "noise-gaussian" not in completion.cached(context, "")
    assert completion.encoders(context, "t") == ["tiny"]
    assert completion.presets("t") == ["tuned"]
    assert completion.precisions("a") == ["amp"]
    assert completion.word_sets("c") == ["cma", "csp"]
    (tmp_path / "features" / "tiny" / "words-czech.h5").touch()
    (tmp_path / "features" / "tiny" / "words-csp-nouns.h5").touch()
    assert completion.cached_words(context, "c") == ["cma", "csp", "czech"]
    assert "cifar10" in completion.known_sets("cif")

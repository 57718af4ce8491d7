"""The command line as a user has it: exit codes, what goes to stdout, one line on errors."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made import TINY, ZSNTTA, fails


def test_help_and_version(zsntta):
    assert "simulate" in zsntta("--help").stdout
    assert zsntta("--version").stdout.startswith("zsntta ")


@pytest.mark.parametrize("words", [(), ("cache",), ("datasets",), ("records",)])
def test_a_group_without_a_command_helps_or_lists(words, tmp_path):
    def ask(*arguments):
        command = [ZSNTTA, *words, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    lists = words in (("datasets",), ("records",))
    assert ask() == ask("list" if lists else "--help")
    code, stdout, _ = ask("--help")
    assert (code, stdout.splitlines()[0].startswith("Usage: zsntta")) == (0, True)


def test_simulate_prints_the_papers_table(cached):
    result = cached("simulate", "--method", "adand", "--method", "zs-clip", "--ratio", 0.25, *TINY)
    assert result.exit_code == 0
    for word in ("ID: shapes", "glyphs", "digits", "Average", "Acc_S", "Acc_N", "Acc_H", "adand"):
        assert word in result.stdout
    assert all(line.startswith("note: ") for line in result.stderr.splitlines())


def test_sets_that_are_too_small_are_named(cached):
    result = cached("simulate", "--method", "adand", "--ratio", 0.75, "--ood", "glyphs", *TINY)
    assert (
        "Sets that are smaller than the streams need are shown again: 'glyphs' up to 3.00 times"
        in (result.stdout)
    )
    assert "'noise-gaussian' up to " in result.stdout


def test_the_records_are_complete_and_exact(cached):
    result = cached(
        "simulate", "--method", "adand", "--ratio", 0, "--ratio", 0.5, "--ood", "glyphs",
        "--seed", 1, "--seed", 2, "--format", "json", *TINY,
    )  # fmt: skip
    records = json.loads(result.stdout)
    assert [(r["settings"]["stream"]["ratio"], r["settings"]["stream"]["seed"]) for r in records] \
        == [(0, 1), (0, 2), (0.5, 1), (0.5, 2)]  # fmt: skip
    clean, _, noisy, _ = records
    assert clean["counts"] == {"id": 300, "ood": 0, "noise": 37}
    assert noisy["counts"] == {"id": 300, "ood": 300, "noise": 75}
    assert clean["accuracies"]["acc_n"] is None
    assert noisy["settings"]["options"]["warmup"] == 10
    assert set(noisy["digests"]) == {"shapes", "glyphs", "noise-gaussian", "text/shapes"}
    hits = noisy["accuracies"]["acc_s"] * 300
    assert hits == pytest.approx(round(hits))


def test_the_same_command_gives_the_same_numbers(cached):
    command = ("simulate", "--method", "adand", "--format", "csv", *TINY)
    first, second = (
        [{k: v for k, v in row.items() if k not in ("seconds", "created")} for row in
         csv.DictReader(io.StringIO(cached(*command).stdout))]
        for _ in range(2)
    )  # fmt: skip
    assert first == second
    assert {row["ood_set"] for row in first} == {
        "glyphs", "textures", "other-shapes", "digits"
    }  # fmt: skip
    assert float(first[0]["acc_s"]) <= 1


def test_output_goes_to_a_file_and_not_to_stdout(cached, tmp_path):
    result = cached(
        "simulate", "--method", "zs-clip", "--output", tmp_path / "sub" / "t.txt", *TINY
    )
    assert (result.exit_code, result.stdout) == (0, "")
    text = (tmp_path / "sub" / "t.txt").read_text()
    assert "zs-clip" in text
    assert "\x1b" not in text


def test_methods_see_the_same_stream_and_injection_is_adands_alone(cached):
    result = cached(
        "simulate", "--method", "zs-clip", "--method", "adand", "--ood", "glyphs",
        "--format", "json", *TINY,
    )  # fmt: skip
    zs_clip, adand = json.loads(result.stdout)
    assert zs_clip["counts"] == {**adand["counts"], "noise": 0}


def test_official_rounds_the_odds(cached):
    result = cached("simulate", "--method", "zs-clip", "--ratio", 0.25, "--ood", "glyphs",
                    "--preset", "official", "--format", "json", *TINY)  # fmt: skip
    assert json.loads(result.stdout)[0]["counts"]["ood"] == 99


def test_a_folder_of_ones_own(cached, picture_folder):
    result = cached("extract", "--dataset", f"mine={picture_folder}", *TINY)
    assert result.exit_code == 0
    assert "features/tiny/mine.h5: 12 images in" in result.stdout
    again = cached("extract", "--dataset", f"mine={picture_folder}", *TINY)
    assert "12 images, there already" in again.stdout
    result = cached("simulate", "--method", "zs-clip", "--id", "mine", "--ood", "glyphs", *TINY)
    assert "ID: mine" in result.stdout


def test_a_broken_image_and_skip_broken(cached, picture_folder):
    (picture_folder / "dog" / "0.jpg").write_bytes(b"broken")
    command = ("extract", "--dataset", f"mine={picture_folder}", *TINY)
    result = cached(*command)
    assert result.exit_code == 1
    assert "error: cannot read image 'dog/0.jpg' of 'mine'" in result.stderr
    assert result.stderr.endswith("leave such images out with --skip-broken\n")
    assert not Path("features/tiny/mine.h5").exists()
    skipping = cached(*command, "--skip-broken")
    assert "11 images" in skipping.stdout
    assert "1 broken left out: dog/0.jpg" in skipping.stdout


def test_an_empty_folder(cached, tmp_path):
    (tmp_path / "empty").mkdir()
    fails(cached("extract", "--dataset", "mine=empty", *TINY), "no image in empty")


def test_a_features_folder_that_cannot_be_written(zsntta, tmp_path):
    (tmp_path / "file").touch()
    result = zsntta("extract", "--dataset", "glyphs", "--features-dir", "file", *TINY)
    fails(result, "cannot write file/tiny/glyphs.h5: Not a directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder(zsntta, tmp_path):
    (tmp_path / "features").mkdir(mode=0o555)
    result = zsntta("extract", "--dataset", "glyphs", *TINY)
    fails(result, "cannot write", "Permission denied")


@pytest.mark.slow
def test_a_full_disk(tmp_path):
    """A limit on the size of files stands in for it: writes fail in the middle."""
    script = "ulimit -f 60; exec $0 extract --dataset glyphs --model tiny --limit 400"
    result = subprocess.run(
        ["bash", "-c", script, ZSNTTA], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1, result.stderr
    assert "cannot write" in result.stderr
    assert "Traceback" not in result.stderr
    left = [p.name for p in (tmp_path / "features" / "tiny").rglob("*") if p.is_file()]
    assert set(left) <= {".glyphs.lock", "identity.json"}


def test_default_lines_of_the_card_without_a_cache(zsntta):
    fails(
        zsntta("simulate", "--method", "adand", "--ratio", 0.25),
        "no features of 'cifar10' by ViT-B-16-openai in features/: type zsntta extract "
        "--dataset cifar10\n",
    )


def test_missing_things_name_the_command_to_type(cached):
    adand = ("simulate", "--method", "adand", *TINY)
    fails(cached(*adand, "--id", "pets"), "(did you mean 'shapes'?)\n")
    fails(cached(*adand, "--id", "mine"), "type zsntta extract --dataset mine=PATH --model tiny\n")
    fails(cached(*adand, "--ood", "svhn"), "type zsntta extract --dataset svhn --model tiny")
    fails(
        cached(*adand, "--noise", "poisson"),
        "type zsntta extract --noise poisson --model tiny",
    )
    fails(
        cached(*adand, "--prompt", "paper"),
        "the prompt 'this is a photo of a {}' is not cached",
        "type zsntta extract --dataset shapes --model tiny --prompt 'this is a photo of a {}'",
    )
    noise = ("--id", "noise-gaussian", "--ood", "shapes")
    fails(cached(*adand, *noise), "cannot be an ID set")
    for name in ("glyphs", "textures", "other-shapes", "digits"):
        Path(f"features/tiny/{name}.h5").unlink()
    fails(cached(*adand), "no OOD partner of 'shapes' is cached", "extract --dataset glyphs")


@pytest.mark.parametrize(
    ("options", "line"),
    [(("--method", "magic"), "method is 'magic', must be one of: zs-clip, adand"),
     (("--ratio", 25), "ratio is 25.0, must be in [0, 1)"),
     (("--ratio", "half"), "ratio is 'half', must be a number in [0, 1) or natural."),
     (("--ratio", 1), "ratio is 1.0, must be in [0, 1)"),
     (("--seed", -1), "seed is -1, must be 0 or more"),
     (("--noise", "pink"), "noise is 'pink', must be one of: gaussian"),
     (("--noise-every", 0), "noise-every is 0, must be 1 or more"),
     (("--preset", "best"), "preset is 'best', must be one of: paper, official"),
     (("--prompt", "a photo"), "prompt 'a photo' is neither one of code, paper, clip-80,"),
     (("--reevaluate", "perhaps"), "reevaluate is 'perhaps', must be"),
     (("--precision", "int8"), "precision is 'int8', must be one of: fp32, fp16, bf16, amp.")],
)  # fmt: skip
def test_values_out_of_range(cached, options, line):
    method = () if "--method" in options else ("--method", "adand")
    fails(cached("simulate", *method, *options, *TINY), line, code=2)


def test_features_of_two_encoders_never_meet(cached):
    import h5py

    with h5py.File("features/tiny/glyphs.h5", "r+") as file:
        encoder = json.loads(file.attrs["encoder"])
        file.attrs["encoder"] = json.dumps({**encoder, "weights_sha256": "other"})
        del file.attrs["seal"]
    fails(
        cached("simulate", "--method", "adand", "--ood", "glyphs", *TINY),
        "features/tiny/shapes.h5 and features/tiny/glyphs.h5 are of different encoders",
    )


def test_a_broken_feature_file(cached):
    path = Path("features/tiny/shapes.h5")
    path.write_bytes(path.read_bytes()[:5000])
    fails(cached("simulate", "--method", "adand", *TINY), "not a whole zsntta feature file")


def test_encoders_names_the_papers_and_those_that_are_cached(cached, tmp_path):
    shutil.copytree("features/tiny", "features/ViT-B-16-none")
    result = cached("encoders")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    rows = {line.split("│")[1].strip(): line for line in lines if line.startswith("│")}
    assert list(rows)[:5] == [
        "tiny", "ViT-B-16-openai", "RN50-openai", "ViT-L-14-openai", "ViT-B-16-none"
    ]  # fmt: skip
    assert {"MetaCLIP", "SigLIP", "SigLIP 2"} <= set(rows)
    assert "embedded" in rows["tiny"]
    assert "glyphs" in rows["tiny"]
    assert "--model RN50" in rows["RN50-openai"]
    assert "--encoder ViT-B-16-none" in rows["ViT-B-16-none"]


def test_debug_shows_the_traceback(zsntta):
    result = zsntta("--debug", "simulate", "--method", "magic")
    assert type(result.exception).__name__ == "UnknownName"


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(tmp_path):
    command = [ZSNTTA, "extract", "--dataset", "glyphs", "--batch-size", "25", *TINY]
    run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    parts = tmp_path / "features" / "tiny" / ".glyphs.parts"
    while not list(parts.glob("*.npz")):
        time.sleep(0.02)
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    _, stderr = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "interrupted: what was finished is kept; the same command resumes." in stderr
    assert "Traceback" not in stderr
    assert list(parts.glob("*.npz"))


@pytest.mark.slow
def test_a_process_with_torch_ends_without_a_word(tmp_path):
    """Its libraries tell of objects that are left over at the end."""
    command = [sys.executable, "-m", "zsntta_cli", "extract", "--model", "tiny"]
    result = subprocess.run(
        [*command, "--dataset", "digits", "--limit", "4", "--features-dir", tmp_path],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "leak" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith(("next:", str(tmp_path))), result.stderr


def test_a_replay_imports_nothing_heavy(cache, tmp_path):
    heavy = "'torch', 'sklearn', 'scipy', 'numba', 'numpy.ma', 'PIL', 'jinja2'"
    code = (
        "import sys; from zsntta_cli.cli import app;"
        "app(sys.argv[1:], standalone_mode=False);"
        f"sys.exit(' '.join({{{heavy}}} & {{*sys.modules}}) or 0)"
    )
    command = [sys.executable, "-c", code, "simulate", "--method", "adand", *TINY]
    result = subprocess.run(
        [*command, "--features-dir", cache, "--records", tmp_path / "kept.sqlite"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "adand" in result.stdout


def test_output_that_nobody_reads_is_no_error(cache, tmp_path):
    where = f"--features-dir {cache} --records {tmp_path}/kept.sqlite"
    shell = f"{ZSNTTA} simulate --method adand --model tiny {where} | head -1"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr


def test_only_the_command_that_is_named_is_imported(tmp_path):
    code = (
        "import sys; from zsntta_cli.cli import app;"
        "app(sys.argv[1:], standalone_mode=False);"
        "print(*(name for name in sys.modules if name.startswith('zsntta_cli.')))"
    )
    command = [sys.executable, "-c", code, "cache", "list"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    imported = {*done.stdout.split()}
    assert "zsntta_cli.cli.cache" in imported
    assert not {f"zsntta_cli.cli.{name}" for name in ("simulate", "extract", "detect")} & imported


METHOD_FILES = {  # what a named method has, beside what all share
    "adand": {"detectors.adand", "detectors.linear"},
    "tda": {"classifiers.tda"},
    "oodd": {"detectors.oodd", "ood_scores"},
    "adand+dmn": {"detectors.adand", "detectors.linear", "classifiers.dmn", "pairs"},
}
SHARED_FILES = {
    "base", "classifiers.blocks", "entry", "kernels", "kernels.compiled", "kernels.guarded",
    "learned", "scores", "settings", "threshold",
}  # fmt: skip


def imported_methods(*words):
    """The modules of methods/ that a command imports, by their names within it."""
    code = (
        "import sys; from zsntta_cli.cli import app;"
        "app(sys.argv[1:], standalone_mode=False);"
        "print(*(name for name in sys.modules if name.startswith('zsntta_cli.methods.')))"
    )
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    folders = {"detectors", "classifiers", "words", "live"}
    names = done.stdout.splitlines()[-1].split()
    return {name.removeprefix("zsntta_cli.methods.") for name in names} - folders


@pytest.mark.parametrize("words", [(), ("methods", "check", "-h"), ("simulate", "-h")], ids=str)
def test_help_imports_no_method(words):
    assert imported_methods(*words) <= {"entry"}


@pytest.mark.parametrize("method", METHOD_FILES)
def test_only_the_methods_that_are_named_are_imported(method, cache, tmp_path):
    where = ("--features-dir", cache, "--records", tmp_path / "kept.sqlite")
    replay = imported_methods("simulate", *TINY, *where, "--method", method, "--fresh")
    assert METHOD_FILES[method] <= replay <= METHOD_FILES[method] | SHARED_FILES
    shown = imported_methods("simulate", "--method", method, "-h")
    assert shown <= METHOD_FILES[method] | SHARED_FILES

"""README and docs: every command and every script in them is run, or says what it needs."""

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image
from typed import typed
from web_writer import write_web_set

import zsntta_cli
from zsntta_cli.cli import program
from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.results.experiment import Experiment, FigureRequest, RunBlock, TableRequest
from zsntta_cli.simulation.runs import PRESETS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [README, *DOCS, *TUTORIALS]
TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
ALL = "\n".join(TEXT.values())

# A page may show a file of the package; that is tested elsewhere.
PACKAGE = {path.read_text(encoding="utf-8") for path in (ROOT / "zsntta_cli").rglob("*.py")}

# What stands above a block: run on the built-in sets and the embedded encoder, or not at all.
DATA, UNRUN = "data", ("gpu", "hours", "network")
PLAIN = ("cd", "git", "make", "pip", "source", "uv")  # lines that install
STAND_INS = {
    "cifar10": "shapes", "cifar100": "digits", "svhn": "digits", "lsun": "glyphs",
    "places": "textures", "texture": "textures", "ninco": "other-shapes",
}  # fmt: skip
LIVE = [name for name, method in METHODS.items() if method.live] + ["mirrored"]
OTHERS_OPTIONS = {  # of pip, sbatch, curl, mv and benchmarks/
    "--array", "--backup", "--data-binary", "--draws", "--far", "--gres", "--low", "--near",
    "--no-deps", "--rounds", "--runs", "--time",
}  # fmt: skip


class Block(NamedTuple):
    """A fenced block: its language, what the line above it says that it needs, its text."""

    language: str
    needs: str
    text: str


def blocks(page):
    found = re.findall(
        r"^(?:<!-- needs: (.*?) -->\n)?^```(\w*)\n(.*?)^```$", TEXT[page], re.MULTILINE | re.DOTALL
    )
    return [Block(language, needs, text) for needs, language, text in found]


def lines(block):
    """The commands of a block: continued lines joined, comments cut."""
    text = re.sub(r"(^|\s)#.*", "", block.text.replace("\\\n", " "))
    return [part.strip() for part in re.split(r"\n|&&", text) if part.strip()]


def inline(page):
    """Whole commands in the running text and in tables, each once."""
    prose = re.sub(r"^```.*?^```$", "", TEXT[page], flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"`(zsntta (?:simulate|extract|cache|datasets|paper|report) [^`]*)`", prose)
    whole = [c for c in found if " --" in c and "…" not in c and not re.search(r"[A-Z]{4}", c)]
    return list(dict.fromkeys(whole))


def test_blocks_are_of_known_kinds():
    for page in PAGES:
        for block in blocks(page):
            assert block.language in ("", "sh", "python", "toml"), page
            assert block.needs in ("", DATA, *UNRUN), page
        assert TEXT[page].count("<!-- needs:") == sum(bool(b.needs) for b in blocks(page)), page
    assert sum(len(lines(b)) for page in PAGES for b in blocks(page) if b.language == "sh") >= 30


@pytest.fixture(scope="session")
def everything(cache, tmp_path_factory):
    """What the pages speak of: built-in sets of 300 images, all noise types, words, one's own."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(cache, folder / "features")
    generator = np.random.default_rng(0)
    images = {f"photos/{kind}/{i}.png": kind for kind in ("cat", "dog") for i in range(12)}
    for name in images:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(generator.integers(0, 256, (40, 40, 3), np.uint8)).save(folder / name)
    shutil.copytree(folder / "photos", folder / "data" / "photos")
    rows = (f"{name},{kind}\n" for name, kind in images.items())
    (folder / "data" / "listed.csv").write_text("".join(rows))
    text = np.linalg.qr(generator.standard_normal((8, 3)))[0].T
    labels = generator.integers(0, 3, 200)
    features = 10 * text[labels] + generator.standard_normal((200, 8))
    np.savez(folder / "features.npz", features=features, labels=labels)
    np.savez(folder / "text.npz", text_features=text, class_names=["cat", "dog", "ox"])
    np.save(folder / "sky.npy", 5 * generator.standard_normal((150, 8)))
    names, templates = ["coupe", "van"], ["a photo of a {c}.", "a photo of my {c}."]
    for split, labels in (("test", [0, 1, 1, 0, 1, 0]), ("train", [1, 0])):
        write_web_set(folder / "wds_cars", labels, names, templates, split)
    (folder / "nouns.txt").write_text("apple\nboat\ncloud\n")
    (folder / "names.txt").write_text("tabby cat\nsheepdog\n")
    done = python(
        folder, "-m", "zsntta_cli", "extract", "--dataset", "shapes", "--limit", "300",
        "--noise-count", "40", "--noise", "uniform,salt-and-pepper,poisson", "--words", "nouns.txt",
        "--no-partners", "--model", "tiny", "--prompt", "code", "--prompt", "paper",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def python(folder, *arguments):
    """Run Python as a user does, from another folder than the package's."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def fitted(words, on_built_in):
    """A command's arguments, made small; on the built-in sets where it names others."""
    words = list(words)
    if not words:
        return words
    if on_built_in and words[0] in ("extract", "simulate", "detect", "cache", "paper"):
        words = [STAND_INS.get(word, word) for word in without_id_sets(words)]
        words = set_to(words, "--model", "tiny") if "--model" in words else words
        if not {"--model", "--encoder", "--from", "--published"} & {*words}:
            words += ["--model", "tiny"]
    if words[0] == "extract":
        most = min(int(words[words.index("--limit") + 1]), 300) if "--limit" in words else 300
        words = set_to(words, "--limit", str(most))
        words = set_to(words, "--noise-count", "40") if "--noise" in words else words
    parts = {part for word in words for part in word.split(",")}
    if words[0] == "simulate" and {*LIVE} & parts:
        words = set_to(words, "--limit", "48")
        words = set_to(words, "--set", "views=2") if "tpt" in parts else words
        words += [] if "--ood" in words else ["--ood", "glyphs"]
    return words


def without_id_sets(words):
    """Leave out the ID sets that are not built in: the default is."""
    while "--id" in words[:-1]:
        at = words.index("--id")
        if words[at + 1].split(":")[0] not in CATALOGUE or words[at + 1] == "shapes":
            break
        words = words[:at] + words[at + 2 :]
    return words


def set_to(words, option, value):
    if option in words:
        words[words.index(option) + 1] = value
        return words
    return [*words, option, value]


def run(line, folder, on_built_in=False):
    """Run one line of a block, in the page's folder."""
    program, *words = shlex.split(line)
    if program in PLAIN:
        return
    if words[:1] == ["--plugin"]:  # options are made once in a process
        done = python(folder, "-m", "zsntta_cli", *words[:2], *fitted(words[2:], on_built_in))
        code, output = done.returncode, done.stdout + done.stderr
    elif program == "zsntta":
        words, before = fitted(words, on_built_in), dict(METHODS.data)
        result = typed(*words)
        METHODS.data.clear()  # of what a script registered in this process
        METHODS.data.update(before)
        code, output = result.exit_code, result.output
    else:
        assert program == "python", f"no test knows how to run: {line}"
        words = [words[0], *fitted(words[1:], on_built_in)]
        done = python(folder, *words)
        code, output = done.returncode, done.stdout + done.stderr
    assert code == 0, f"{line}\nrun as {words}: {output}"
    assert "cannot be read" not in output, f"{line} leaves out runs of the page"
    if words[0] == "simulate" and not {"--output", "--format", "--help", "-h"} & {*words}:
        assert "┏━" in output, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_says_to_type_runs(page, everything, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    shutil.copytree(everything, folder)
    monkeypatch.chdir(folder)
    for block in blocks(page):
        if block.language == "sh" and block.needs not in UNRUN:
            for line in lines(block):
                run(line, folder, on_built_in=block.needs == DATA)
        if block.language == "python" and block.text not in PACKAGE:
            saved = re.search(r"save as (\w+\.py)", block.text)
            (folder / (saved[1] if saved else "block.py")).write_text(block.text)
            if not saved:
                assert hasattr(zsntta_cli, "simulate"), "the package has no Python API"
                done = python(folder, "block.py")
                assert done.returncode == 0, done.stderr
                assert "simulate" not in block.text or "ID: shapes" in done.stdout
                assert "throughout" not in done.stdout + done.stderr, "a method that never starts"
                assert done.stdout
    for line in inline(page):
        run(line, folder, on_built_in=True)


def test_the_experiments_of_the_page_run_and_its_tables_name_every_key(everything, tmp_path):
    page = ROOT / "docs" / "experiments.md"
    shutil.copytree(everything / "features", tmp_path / "features")
    for number, source in enumerate(b.text for b in blocks(page) if b.language == "toml"):
        (tmp_path / f"{number}.toml").write_text(source)
        done = python(tmp_path, "-m", "zsntta_cli", "run", f"{number}.toml")
        assert done.returncode == 0, done.stderr
        assert "adand" in done.stdout.lower()
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "main.tex", "ratio.csv", "reported.tex",
    }  # fmt: skip
    models = (Experiment, RunBlock, TableRequest, FigureRequest)
    keys = {f.alias or name for model in models for name, f in model.model_fields.items()}
    assert len(keys) > 20
    for key in keys:
        assert f"`{key}`" in TEXT[page] or f"[[{key}]]" in TEXT[page], key


def test_the_api_page_names_all_that_is_public():
    text = TEXT[ROOT / "docs" / "api.md"]
    calls = [name for name in dir(zsntta_cli.Detector) if not name.startswith("_")]
    fields = [field.name for field in dataclasses.fields(zsntta_cli.Verdicts)]
    assert len(calls) > 8
    for name in {*zsntta_cli.__all__, *calls, *fields} - {"__version__"}:
        assert re.search(rf"\b{name}\b", text), name


def test_the_readme_fits_a_screen_and_says_what_was_not_run():
    text = TEXT[README].splitlines()
    assert len(text) <= 150
    assert max(map(len, text)) <= 100
    assert "**Not run:**" in TEXT[README]
    [api] = [b.text for b in blocks(README) if b.language == "python"]
    assert len(api.strip().splitlines()) <= 8


def test_what_pages_name_is_there_and_all_that_is_there_is_named():
    scripts = set(re.findall(r"\b((?:benchmarks|tools|tests)/[\w/]+\.py)\b", ALL))
    assert len(scripts) > 10
    assert not [name for name in scripts if not (ROOT / name).exists()]
    for name in {*METHODS, *PRESETS, *CATALOGUE}:
        assert f"`{name}`" in ALL, name
    _, _, rest = TEXT[ROOT / "docs" / "compared.md"].partition("\n## Compared with the authors'")
    assert not [name for name in METHODS if f"`{name}`" not in rest.partition("\n## ")[0]]
    for name, command in program().commands.items():
        assert f"`zsntta {name}" in ALL, name
        for sub in getattr(command, "commands", {}):
            assert f"{name} {sub}`" in ALL or f"`{sub}`" in ALL or f"zsntta {name} {sub}" in ALL
    known = options(program()) | {"--help", "-h"} | OTHERS_OPTIONS
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", ALL)) <= known


def options(command):
    own = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    return own.union(*(options(sub) for sub in getattr(command, "commands", {}).values()))


def test_every_page_is_linked_from_the_readme_and_every_link_leads_somewhere():
    for page in (*DOCS, *TUTORIALS):
        assert f"]({page.relative_to(ROOT).as_posix()})" in TEXT[README], page
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", TEXT[page], flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\((?!http)([^)]+)\)", prose):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(there), f"{page.name}: {target}"


def anchors(page):
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads]


def test_the_architecture_page_has_every_room_and_the_contracts_levels():
    page = TEXT[ROOT / "docs" / "architecture.md"]
    for path in (ROOT / "zsntta_cli").iterdir():
        room = f"{path.name}/" if path.is_dir() else path.name
        assert path.name in ("__pycache__", "py.typed") or f"\n  {room} " in page, room
    with (ROOT / "pyproject.toml").open("rb") as file:
        [layers] = [
            contract["layers"]
            for contract in tomllib.load(file)["tool"]["importlinter"]["contracts"]
            if contract["type"] == "layers"
        ]
    assert "\n" + " > ".join(layers) + "\n" in page


def test_what_a_method_sees_is_listed_whole():
    _, _, section = TEXT[ROOT / "docs" / "extending.md"].partition("### What a method sees")
    table, _, _ = section.partition("`Decisions` has")
    cells = " ".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    named = set(re.findall(r"`(\w+)", cells)) - {"len"}
    fields = {field.name for field in dataclasses.fields(StreamData)}
    assert named == fields | {name for name in vars(StreamData) if name[0] != "_"}

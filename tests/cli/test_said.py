"""What a line is answered with: refusals in one line, and notes. All are in said.toml."""

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
from kept import run_of
from made import TINY, fails
from PIL import Image
from typed import typed, understood

from zsntta_cli.results.store import RecordStore

SAID = tomllib.loads((Path(__file__).parents[1] / "said.toml").read_text(encoding="utf-8"))
CASES = [
    (place, int(code), line, said)
    for place, codes in SAID.items()
    for code, lines in codes.items()
    for line, said in lines.items()
]
FILES = {
    "empty.jsonl": "", "broken.jsonl": "{", "cut.sqlite": "SQLite format 3\0", "file": "",
    "empty.py": "", "broken.py": "import nothing_of_that_name",
}  # fmt: skip
RUNS = [
    run_of(method, (value, value), ood_set=ood, ratio=ratio)
    for method, value in (("zs-clip", 0.5), ("adand", 0.75))
    for ood in ("glyphs", "textures")
    for ratio in (0.25, 0.5)
]


@pytest.fixture(scope="session")
def there(cache, tmp_path_factory):
    """A folder with features of the built-in sets, kept results, a picture, and wrong files."""
    root = tmp_path_factory.mktemp("there")
    shutil.copytree(cache, root / "features", ignore=shutil.ignore_patterns("records*"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert typed("simulate", *TINY, "--method", "zs-clip", "--output", "r.json").exit_code == 0
    (root / "features" / "records.sqlite").unlink()
    with RecordStore(root / "features" / "records.sqlite", create=True) as store:
        store.add(RUNS)
    for name, content in FILES.items():
        (root / name).write_text(content)
    for name in ("empty", "empty.html", "pictures"):
        (root / name).mkdir()
    Image.new("RGB", (8, 8)).save(root / "pictures" / "star.png")
    return root


def tree(folder):
    """The sizes of all files; but for images that are known from before."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.stem != "images")
    return {path: path.stat().st_size for path in files}


@pytest.mark.parametrize(("place", "code", "line", "said"), CASES, ids=[c[2] for c in CASES])
def test_it_is_said_and_nothing_is_written(place, code, line, said, request, tmp_path, monkeypatch):
    """A refusal is one line, and a command that it says to type is one."""
    folder = request.getfixturevalue(place) if place == "there" else tmp_path
    monkeypatch.chdir(folder)
    before = tree(folder)
    answer, parts = typed(*shlex.split(line)), [said] if isinstance(said, str) else said
    if code:
        fails(answer, *parts, code=code)
        assert len(answer.stderr) < 600
    else:
        words = " ".join(answer.output.split())
        assert (answer.exit_code, [part for part in parts if part not in words]) == (0, [])
    for commands in re.findall(r"type (zsntta extract .*)", answer.output):
        for command in commands.split(" && "):
            understood(shlex.split(command)[1:])
    assert tree(folder) == before

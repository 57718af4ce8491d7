"""`detect --ask` as it is typed."""

import io
import json
import os
import pty
import re
import signal
from pathlib import Path

import pytest
from made import TINY, ZSNTTA, fails
from PIL import Image

from zsntta_cli.cli.detection.asking import picture
from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.detection.sources.item import Item, content_of, refuse

NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)


def answer_all(path="answers.jsonl", belongs=lambda image: image.parent.name != "x"):
    lines = (
        json.dumps({"source": str(image), "belongs": belongs(image)})
        for image in Path("pictures").rglob("*.png")
    )
    Path(path).write_text("\n".join(lines))


def rows(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_answers_of_a_file_are_rows_that_are_judged(pictures):
    answer_all()
    result = pictures("detect", "pictures", *SHAPES, "--ask", 10, "--answers", "answers.jsonl")
    found = rows(result)
    judged = [row for row in found if row["stage"] == "judged"]
    assert len(judged) == 10
    for row in judged:
        assert row["noise"] == ("/x/" in row["source"])
        assert row["answer"] == ("noise" if row["noise"] else "clean")
    noise = sum(row["noise"] for row in judged)
    assert 0 < noise < 10
    called = sum(row["noise"] for row in found)
    assert f"10 answers, {noise} of them noise: {called} images called noise; " in result.stderr
    again = pictures("detect", "pictures", *SHAPES, "--ask", 10, "--answers", "answers.jsonl")
    assert again.stdout == result.stdout
    plain = rows(pictures("detect", "pictures", *SHAPES))
    assert [row["rank"] for row in plain] == [row["rank"] for row in found]


def test_ten_that_belong_are_no_sign_of_noise(pictures):
    answer_all(belongs=lambda _: True)
    before = rows(pictures("detect", "pictures", *SHAPES))
    result = pictures("detect", "pictures", *SHAPES, "--ask", 10, "--answers", "answers.jsonl")
    assert "No sign of noise after 10 answers. If all of them belong, rare noise" in result.stderr
    after = rows(result)
    assert sum(row["noise"] for row in after) <= sum(row["noise"] for row in before)
    for row, old in zip(after, before, strict=True):
        if row["stage"] != "judged" and old["answer"] != "clean":
            assert row["answer"] in ("noise", "unsure"), "the first flags can be seen"


def test_answers_by_content_survive_a_move_and_what_has_none_is_told(pictures):
    lines = []
    for image in sorted(Path("pictures").rglob("*.png"))[::2]:
        digest = content_of(image.read_bytes()).digest.hex()
        lines.append(f"{digest},{'no' if image.parent.name == 'x' else 'yes'}")
    Path("answers.csv").write_text("\n".join(["content,belongs", *lines]))
    os.rename("pictures", "moved")
    result = pictures("detect", "moved", *SHAPES, "--ask", 10, "--answers", "answers.csv")
    judged = sum(row["stage"] == "judged" for row in rows(result))
    assert 0 < judged < 10
    [line] = [line for line in result.stderr.splitlines() if "has no answer to" in line]
    assert line.startswith(f"answers.csv has no answer to {10 - judged} question")
    assert line.count("moved/") == 10 - judged


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--ask", "10"], "there is no terminal to ask on: add --answers FILE.", 2),
        (["--answers", "a.jsonl"], "--answers is of questions: add --ask 10.", 2),
        (["--ask", "10", "--answers", "none.jsonl"], "cannot read the answers none.jsonl", 1),
        (["--ask", "10", "--answers", "bad.jsonl"], "bad.jsonl, line 1 is no JSON", 1),
        (["--ask", "10", "--flag", "5%"], "and so do answers to --ask: use one of them.", 2),
        (["--ask", "10", "--watch"], "and a watch goes on: leave one of them out.", 2),
        (["--ask", "10", "--decide", "arrival"], "or add --decide hindsight.", 2),
        (["--ask", "0"], "--ask", 2),
    ],
)
def test_what_is_wrong_is_one_line(pictures, options, said, code):
    Path("bad.jsonl").write_text("x")
    fails(pictures("detect", "pictures", *SHAPES, *options), said, code=code)


def test_standard_input_is_no_folder(pictures):
    answer_all()
    options = ("--ask", 10, "--answers", "answers.jsonl")
    fails(pictures("detect", "-", *SHAPES, *options), "--ask is of a whole folder", code=2)


class Typed:
    """A terminal on which `detect --ask` runs, with its rows in a file."""

    def __init__(self, *options, **environment):
        self.pid, self._fd = pty.fork()
        if not self.pid:
            os.environ.update(COLUMNS="200", TERM="dumb", NO_COLOR="1", **environment)
            line = [ZSNTTA, "detect", "pictures", *SHAPES, "--out", "rows.jsonl", *options]
            os.execv(ZSNTTA, list(map(str, line)))
        self.text = ""

    def until(self, words):
        """Read until these words were shown once more."""
        before = self.text.count(words)
        while self.text.count(words) == before:
            try:
                piece = os.read(self._fd, 1 << 16)
            except OSError:
                piece = b""
            assert piece, self.text
            self.text += piece.decode()

    def type(self, words):
        os.write(self._fd, words.encode())

    def end(self):
        """The exit code, once all is read."""
        while True:
            try:
                piece = os.read(self._fd, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            self.text += piece.decode()
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


PROMPT = "[y/n/s/q] "


def test_questions_on_a_terminal(pictures):
    terminal = Typed("--ask", 5)
    for words in ("n\n", "y\n", "?\n", "s\n", "Y\n", "q\n"):
        terminal.until(PROMPT)
        terminal.type(words)
    assert terminal.end() == 0
    shown = terminal.text.replace("\r", "")
    assert "Does this image belong to one of your classes? Type y, n, s (skip) or q" in shown
    assert "rare noise of your classes' own kind may stay unfound" in shown
    asked = re.findall(r"^(\d) of 5: (pictures/\S+\.png) \(nearest class: (\w+)\)$", shown, re.M)
    assert [at for at, _, _ in asked] == ["1", "2", "3", "4", "5"]
    found = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    judged = {row["source"]: row["noise"] for row in found if row["stage"] == "judged"}
    sources = [source for _, source, _ in asked]
    assert judged == {sources[0]: True, sources[1]: False, sources[3]: False}
    assert "3 answers, 1 of them noise" in shown
    assert "\x1b_G" not in shown, "this terminal shows no pictures"
    assert "\x1b]1337" not in shown


def test_ctrl_c_writes_nothing_and_ctrl_d_is_enough(pictures):
    terminal = Typed("--ask", 5)
    terminal.until(PROMPT)
    terminal.type("y\n")
    terminal.until(PROMPT)
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert "interrupted" in terminal.text
    assert not Path("rows.jsonl").exists()
    terminal = Typed("--ask", 5)
    terminal.until(PROMPT)
    terminal.type("\x04")
    assert terminal.end() == 0
    found = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert len(found) == 60
    assert "judged" not in {row["stage"] for row in found}


def png(size=(900, 30)):
    content = io.BytesIO()
    Image.effect_noise(size, 90).convert("RGB").save(content, "PNG")
    return content.getvalue()


def decoded(coded):
    import base64

    return Image.open(io.BytesIO(base64.b64decode(coded)))


def test_pictures_as_kitty_and_iterm_take_them():
    data = png()
    item = Item("a.png", lambda: content_of(data))
    for environment in ({"KITTY_WINDOW_ID": "1"}, {"TERM": "xterm-kitty"}):
        drawn = picture(item, environment)
        pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", drawn)
        assert len(pieces) > 1
        assert all(len(coded) <= 4096 for _, coded in pieces)
        assert pieces[0][0].startswith("f=100,a=T,")
        assert [control[-1] for control, _ in pieces] == ["1"] * (len(pieces) - 1) + ["0"]
        assert decoded("".join(coded for _, coded in pieces)).size == (384, 13)
    drawn = picture(item, {"TERM_PROGRAM": "iTerm.app"})
    head, _, coded = drawn.rstrip("\n").rstrip("\x07").rpartition(":")
    assert head.startswith("\x1b]1337;File=inline=1;")
    assert decoded(coded).size == (384, 13)


def test_no_picture_where_the_terminal_has_none_or_it_is_damaged():
    item = Item("a.png", lambda: content_of(png()))
    assert picture(item, {"TERM": "xterm-256color"}) == ""
    assert picture(item, {"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x"}) == ""
    assert picture(item, {"TERM_PROGRAM": "iTerm.app", "TERM": "screen-256color"}) == ""
    for broken in (lambda: refuse("gone"), lambda: content_of(b"no image")):
        assert picture(Item("a.png", broken), {"KITTY_WINDOW_ID": "1"}) == ""

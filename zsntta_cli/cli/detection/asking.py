"""Questions on a terminal: an image at a time, with its picture where the terminal shows such."""

import base64
import io
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from PIL import Image

from zsntta_cli.cli.command import misused, say
from zsntta_cli.detection.questions import Questions
from zsntta_cli.detection.runs.answers import Interview, Reply, read_answers
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.errors import counted

QUESTION = "Does this image belong to one of your classes?"
PRICE = (
    "If all of them belong, rare noise of your classes' own kind may stay unfound: what was "
    "flagged before becomes unsure."
)
_REPLIES: dict[str, Reply] = {"y": "yes", "n": "no", "s": "skip", "q": "enough"}
_SIDE = 384  # pixels of a picture, the longer side
_LINES = 12  # of the terminal that a picture takes
_CHUNK = 4096  # characters of a picture to an escape sequence of kitty


def interview_of(count: int, answers: Path | None) -> Interview:
    """The interview by a file of answers, or on this terminal."""
    if answers:
        return Interview(count, read_answers(answers).reply)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise misused("there is no terminal to ask on: add --answers FILE.")
    return Interview(count, Terminal(count))


class Terminal:
    """Asks on the terminal; standard output is left to the results."""

    def __init__(self, count: int) -> None:
        self._count, self._asked = count, 0

    def __call__(self, item: Item, questions: Questions, number: int) -> Reply:
        """Ask about an image until the reply is one; the end of input is enough."""
        if not self._asked:
            say(f"{QUESTION} Type y, n, s (skip) or q (enough). {PRICE}", err=True)
        self._asked += 1
        nearest = questions.first[number].class_name
        of = f"{self._asked} of {min(self._count, len(questions.first))}"
        say(f"{of}: {item.place} (nearest class: {nearest})", err=True)
        _write(picture(item, os.environ))
        while True:
            _write("Does it belong to one of your classes? [y/n/s/q] ")
            line = sys.stdin.readline()
            if not line:
                _write("\n")
                return "enough"
            if reply := _REPLIES.get(line.strip().lower()[:1]):
                return reply


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def picture(item: Item, environment: Mapping[str, str]) -> str:
    """What draws an image on this terminal; nothing where that shows none, or it is damaged."""
    if not (drawn := _protocol(environment)):
        return ""
    try:
        image = _image(item)
        image.thumbnail((_SIDE, _SIDE))
        content = io.BytesIO()
        image.save(content, "PNG")
    except Exception:  # of a damaged image PIL raises nearly anything; its path is shown
        return ""
    coded = base64.b64encode(content.getvalue()).decode()
    return "".join(_kitty(coded) if drawn == "kitty" else _iterm(coded)) + "\n"


def _image(item: Item) -> Image.Image:
    """The pixels of an image; those of a video's frame are decoded again."""
    if item.video is None or item.frame is None or item.time_s is None:
        return item.load().image()
    from zsntta_cli.detection.sources.video import frame_at

    return frame_at(item.video, item.frame, item.time_s) or item.load().image()


def _protocol(environment: Mapping[str, str]) -> str:
    """How this terminal takes pictures: kitty, iterm, or nothing. tmux and screen pass none on."""
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if environment.get("TMUX") or term.startswith(("screen", "tmux")):
        return ""
    if environment.get("KITTY_WINDOW_ID") or "kitty" in term or program == "ghostty":
        return "kitty"
    return "iterm" if program in ("iTerm.app", "WezTerm") else ""


def _kitty(coded: str) -> Iterator[str]:
    """The graphics protocol of kitty: a PNG (f=100), shown at once (a=T), in pieces (m=1: more)."""
    for start in range(0, len(coded), _CHUNK):
        control = f"f=100,a=T,q=2,r={_LINES}," if start == 0 else ""
        more = int(start + _CHUNK < len(coded))
        yield f"\x1b_G{control}m={more};{coded[start : start + _CHUNK]}\x1b\\"


def _iterm(coded: str) -> Iterator[str]:
    """Inline images of iTerm2."""
    yield f"\x1b]1337;File=inline=1;height={_LINES};preserveAspectRatio=1:{coded}\x07"


def tell(interview: Interview, flagged: int, answers: Path | None) -> None:
    """Say what the answers changed; `flagged` images are called noise now."""
    replies = "1 answer" if interview.answered == 1 else f"{interview.answered:,} answers"
    if interview.answered and not interview.noise:
        say(f"No sign of noise after {replies}. {PRICE}", err=True)
    elif interview.answered:
        were = f"{interview.noise:,} of them noise"
        said = f"{replies}, {were}: {counted(flagged, 'image')} called noise"
        say(f"{said}; {interview.before:,} flagged before.", err=True)
    if answers and (skipped := interview.skipped):
        questions = "1 question" if len(skipped) == 1 else f"{len(skipped):,} questions"
        say(f"{answers} has no answer to {questions}: {', '.join(skipped)}.", err=True)

"""How the tests here ask: a question of the command line, and what every answer must be."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import hypothesis

LONG = bool(os.environ.get("ZSNTTA_TORTURE"))  # of `make torture`
SECONDS = 10 if LONG else 30  # without an answer: a hang
MOST = 1 << 20  # KiB of memory, with all that is imported
ROOT = Path(__file__).resolve().parents[2]
SETS = ("--encoder=made", "--id=pets", "--ood=sky")  # those of conftest.py


def examples(short: int, long: int):
    """As many examples as the suite has time for; those of the short one are always the same."""
    return hypothesis.settings(
        max_examples=long if LONG else short,
        deadline=None,
        database=None,
        derandomize=not LONG,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # an example says enough
    )


@dataclass(frozen=True)
class Answer:
    code: int | None  # None: a hang
    stdout: str
    stderr: str
    peak: int  # KiB

    def check(self) -> "Answer":
        """Every answer is a result or one line, in time, in memory, without steering a terminal."""
        assert self.code is not None, f"a hang: {self}"
        assert self.code in (0, 1, 2), self
        assert "Traceback" not in self.stderr, self
        assert self.peak < MOST, self
        lines = self.stderr.splitlines()
        errors = [line for line in lines if line.startswith(("error: ", "Error: "))]
        assert len(errors) == (self.code != 0), self
        if self.code == 1:
            assert lines[-1] == errors[0], self
        steering = ("Cc", "Cf") if self.code != 2 else ("Cc",)  # usage repeats what was typed
        for character in {*self.stdout, *self.stderr} - {"\n"}:
            assert unicodedata.category(character) not in steering, (character, self)
        return self


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torture.asked"])


def ask(*words, cwd) -> Answer:
    """The answer of the command line."""
    from torture import asked

    with tempfile.TemporaryDirectory() as place:
        process = _FORKS.Process(target=asked.answer, args=([*map(str, words)], str(cwd), place))
        process.start()
        process.join(SECONDS)
        code = process.exitcode
        if code is None:
            process.kill()
            process.join()
        said = {path.name: path.read_bytes() for path in Path(place).iterdir()}
    texts = (said.get(name, b"").decode(errors="surrogateescape") for name in ("stdout", "stderr"))
    return Answer(code, *texts, int(said.get("peak", 0)))


def command(*arguments) -> list[str]:
    """The command line as a process of its own."""
    return [sys.executable, "-m", "zsntta_cli", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)} | more


def run(*arguments, cwd, before=(), seconds=300, **options) -> subprocess.CompletedProcess:
    """The answer of such a process; `before`: the words before its command."""
    options = {"env": environment(OPENBLAS_NUM_THREADS="1"), "capture_output": True} | options
    return subprocess.run(
        [*before, *command(*arguments)], cwd=cwd, text=True, errors="surrogateescape",
        timeout=seconds, check=False, **options,
    )  # fmt: skip


def powerless() -> list[str]:
    """What goes before a command that permissions must bind, root's too."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []

"""The command line in this process: what a line prints, and how it ends."""

import contextlib
import io
import sys
from dataclasses import dataclass

from zsntta_cli.cli import main, program


@dataclass
class Answer:
    """What a line printed, its exit code, and the exception that ended it."""

    stdout: str
    stderr: str
    exit_code: int
    exception: BaseException | None = None

    @property
    def output(self):
        return self.stdout + self.stderr


class _Standard(io.TextIOWrapper):
    def __init__(self, content="", is_terminal=False):
        held = io.BytesIO(content.encode())
        super().__init__(held, encoding="utf-8", errors="backslashreplace")
        self.isatty = lambda: is_terminal

    def printed(self):
        self.flush()
        return self.buffer.getvalue().decode()


def typed(*words, said="", is_terminal=False):
    """Run a line, with `said` on standard input, which may be a terminal."""
    out, err, code, exception = _Standard(), _Standard(), 0, None
    stdin = sys.stdin
    sys.stdin = _Standard(said, is_terminal)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([str(word) for word in words])
    except SystemExit as ended:
        code = ended.code or 0
        exception = ended if code else None
    except BaseException as error:
        code, exception = 1, error
    finally:
        sys.stdin = stdin
    return Answer(out.printed(), err.printed(), code, exception)


def understood(words):
    """The values that a line gives the command it names; an error where that is not understood."""
    command, context = program(), None
    while hasattr(command, "commands"):
        context = command.make_context("zsntta", list(words), parent=context)
        _, command, words = command.resolve_command(context, context._protected_args + context.args)
    return command.make_context(command.name, list(words), parent=context).params

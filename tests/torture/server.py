"""Runs the command line in forks of a process that has imported all of it.

JSON lines: arguments, folder and seconds in; exit code, output and peak memory out.
"""

import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback

MEMORY = 8 << 30  # bytes of address space: what wants more meets a MemoryError, and not the machine


def child(request, out, err) -> None:
    import zsntta_cli.__main__

    os.chdir(request["cwd"])
    for stream, target in ((1, out), (2, err)):
        os.dup2(target.fileno(), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout, sys.stderr = (
        os.fdopen(fd, "w", closefd=False, errors=errors)
        for fd, errors in ((1, "strict"), (2, "backslashreplace"))
    )
    sys.argv = ["zsntta", *request["arguments"]]
    code = 1
    try:
        zsntta_cli.__main__.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve(request):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            child(request, out, err)
        ended, status, usage = wait(process, request["seconds"])
        if not ended:
            os.kill(process, signal.SIGKILL)
            _, status, usage = os.wait4(process, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="surrogateescape"))
        code = os.waitstatus_to_exitcode(status) if ended else None
        return {"code": code, "stdout": texts[0], "stderr": texts[1], "peak": usage.ru_maxrss}


def wait(process, seconds):
    descriptor = os.pidfd_open(process)
    try:
        ready, _, _ = select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
    if not ready:
        return False, 0, None
    _, status, usage = os.wait4(process, 0)
    return True, status, usage


def main() -> None:
    from zsntta_cli.cache import npz, store  # noqa: F401
    from zsntta_cli.cli import program
    from zsntta_cli.methods import METHODS
    from zsntta_cli.report import items, lists, tables  # noqa: F401
    from zsntta_cli.results import runner  # noqa: F401

    assert program().commands  # imported, with all that their options need
    if "--torch" in sys.argv:
        import torch  # noqa: F401
    assert all(METHODS.values())
    print(json.dumps(time.monotonic()), flush=True)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

"""Photos made up, sorted into folders as verdicts made up say."""

import hashlib
import itertools
import os
from pathlib import Path

from made import Notes
from reviewed import verdict

from zsntta_cli.detection.sources import of_file
from zsntta_cli.report.verdict_folders import copy_photos

CLASSES = ("cat", "dog")


def write(folder, contents):
    """Write photos, by their names."""
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def pairs(answers):
    """Photos with rows: where they are from, with a class, or an answer with '_' before it."""
    made = []
    for path, answer in answers.items():
        values = {"answer": answer[1:]} if answer[0] == "_" else {"name": answer}
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "0"
        made.append((of_file(path), verdict(str(path), -1.0, content=content, **values)))
    return made


def sort(root, answers, given=None):
    """Copy photos in one run; gives what was said."""
    notes = Notes()
    copy_photos(root, pairs(answers) if given is None else given, CLASSES, notes)
    return notes.notes


def tree(folder):
    """All below a folder: contents of files, targets of links, None of folders."""
    return {
        path.relative_to(folder).as_posix(): os.readlink(path)
        if path.is_symlink()
        else None
        if path.is_dir()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def photos_in(folder):
    """The contents of all files below a folder but lists."""
    return {
        name: content
        for name, content in tree(folder).items()
        if content is not None and not name.endswith("verdicts.csv")
    }


_CALLS = ("link", "rename", "replace", "unlink", "symlink", "mkdir", "rmdir", "fsync")


def dies_at(number, act):
    """Act in a process of its own that dies before its nth call to the file system, or in a write.

    Whether it died; it is told apart from one that fails.
    """
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 77), f"it ended by {code}"
        return code == 77
    code = 1
    try:
        calls = itertools.count(1)
        for name in _CALLS:
            setattr(os, name, _dying(getattr(os, name), calls, number))
        Path.write_bytes = _torn(Path.write_bytes, calls, number)
        act()
        code = 0
    finally:
        os._exit(code)


def _dying(call, calls, number):
    def called(*arguments, **values):
        if next(calls) == number:
            os._exit(77)
        return call(*arguments, **values)

    return called


def _torn(write_bytes, calls, number):
    def written(path, content):
        if next(calls) == number:
            write_bytes(path, content[: len(content) // 2])
            os._exit(77)
        return write_bytes(path, content)

    return written

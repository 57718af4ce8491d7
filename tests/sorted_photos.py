"""Photos made up, sorted into folders as verdicts made up say."""

import hashlib
import os

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

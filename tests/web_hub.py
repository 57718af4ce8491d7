"""A hub of data set repositories on this machine: what is asked, and files of one revision."""

import json
import re
import threading
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from urllib.parse import parse_qs

REVISION = "0123456789abcdef0123456789abcdef01234567"
_PATH = (
    r"(/api)?/datasets/(?P<name>[^/]+/[^/]+)"
    r"(/(?P<what>resolve|revision|tree|paths-info)/(?P<revision>[^/]+)(/(?P<below>.*))?)?"
)


class _Answers(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.asked.append((self.command, path))
        match = re.fullmatch(_PATH, path)
        files = self.server.repositories.get(match["name"]) if match else None
        if files is None:
            return self._send(404, headers={"X-Error-Code": "RepoNotFound"})
        if match["revision"] not in (None, "main", REVISION):
            return self._send(404, headers={"X-Error-Code": "RevisionNotFound"})
        if match["what"] == "resolve":
            return self._file(files.get(match["below"]))
        if match["what"] == "tree":
            is_deep = "recursive=true" in self.path.lower()
            answer = [*_listed(files, match["below"] or "", is_deep)]
        elif match["what"] == "paths-info":
            names = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())["paths"]
            answer = [_entry(name, files) for name in names if name in files]
        else:
            answer = {
                "id": match["name"], "sha": REVISION, "private": False, "tags": [],
                "siblings": [{"rfilename": name} for name in files],
            }  # fmt: skip
        return self._send(200, json.dumps(answer).encode())

    do_HEAD = do_POST = do_GET  # noqa: N815

    def _file(self, content):
        if content is None:
            return self._send(404, headers={"X-Error-Code": "EntryNotFound"})
        if self.command == "GET" and self.path.endswith(self.server.refuses):
            return self._send(403)
        return self._send(200, content, {"ETag": f'"{_oid(content)}"', "X-Repo-Commit": REVISION})

    def _send(self, status, content=b"{}", headers=()):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **dict(headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _listed(files, below, is_deep):
    """Folders and files below a folder, in the whole of it or directly."""
    top = PurePosixPath(below)
    paths = [PurePosixPath(name) for name in files]
    folders = {folder for path in paths for folder in path.parents}
    for path in sorted({*paths, *folders}):
        if path != top and (top == path.parent or (is_deep and path.is_relative_to(top))):
            yield _entry(str(path), files)


def _entry(name, files):
    if name not in files:
        return {"type": "directory", "path": name, "size": 0, "oid": _oid(name.encode())}
    content = files[name]
    return {"type": "file", "path": name, "size": len(content), "oid": _oid(content)}


def _oid(content):
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def local_hub(monkeypatch, repositories):
    """Serve folders as repositories: the server, whose `asked` are the requests so far."""
    from huggingface_hub import constants

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    server.asked, server.refuses = [], ("nothing",)
    server.repositories = {
        name: {
            p.relative_to(folder).as_posix(): p.read_bytes()
            for p in sorted(folder.rglob("*")) if p.is_file()
        }
        for name, folder in repositories.items()
    }  # fmt: skip
    address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

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


class _Answers(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_POST(self):
        self.do_GET()

    def do_GET(self):
        path, repositories = self.path.partition("?")[0], self.server.repositories
        self.server.asked.append((self.command, path))
        if match := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            if match[1] not in repositories:
                return self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
            if match[2] not in ("main", REVISION):
                return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
            return self._file(repositories[match[1]].get(match[3]))
        parts = r"/api/datasets/([^/]+/[^/]+?)(/revision/\w+|/tree/\w+(.*)|/paths-info/\w+)?"
        match = re.fullmatch(parts, path)
        files = repositories.get(match[1]) if match else None
        if files is None:
            return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        asked = (match[2] or "").rpartition("/revision/")[2]
        if asked not in ("", "main", REVISION) and "/" not in asked:
            return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        if "/tree/" in path:
            is_deep = "recursive=true" in self.path.lower()
            answer = list(_listed(files, match[3].strip("/"), is_deep))
        elif "/paths-info/" in path:
            names = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())["paths"]
            answer = [_entry(name, files) for name in names if name in files]
        else:
            names = [{"rfilename": name} for name in files]
            facts = {"siblings": names, "private": False, "tags": []}
            answer = {"id": match[1], "sha": REVISION, **facts}
        return self._send(200, json.dumps(answer).encode())

    def _file(self, content):
        if content is None:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        if self.command == "GET" and self.path.endswith(self.server.refuses):
            return self._send(403, b"")
        return self._send(200, content, {"ETag": f'"{_oid(content)}"', "X-Repo-Commit": REVISION})

    def _send(self, status, content, headers=()):
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

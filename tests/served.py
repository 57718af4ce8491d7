"""A server on this machine that sends files as servers do, and as they should not."""

import contextlib
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What a server sends, and how it misbehaves; `asked` are the ranges of the requests."""

    content: bytes = b""
    etag: str = '"1"'
    ranges: bool = True  # whether it knows them
    heads: bool = True  # whether it answers HEAD
    length: bool = True  # whether it tells how long a file is
    more: int = 0  # bytes that it says it sends, and does not
    starts: int = 0  # how far off a range begins
    statuses: list[int] = field(default_factory=list)  # of the next requests, instead of the file
    cuts: list[int] = field(default_factory=list)  # bytes until the next connections break off
    asked: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    address: str = ""
    after_cut: object = None  # is called whenever a connection broke off
    hold: threading.Event | None = None  # until it is set, a connection waits for `more`


@contextlib.contextmanager
def serving(**how):
    """Serve while it lasts."""
    served = Served(**how)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            with contextlib.suppress(ConnectionError):  # whoever asked was killed
                answer(self, served)

        def do_HEAD(self):
            if served.heads:
                head(self, served, None, None)
            else:
                self.send_error(405)

        def log_message(self, *_):
            pass

    with answering(Handler) as served.address:
        yield served


@contextlib.contextmanager
def answering(handler):
    """Let a server with this handler run while it lasts: its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(handler, served):
    handler.close_connection = True
    served.asked.append(handler.headers.get("Range", ""))
    served.paths.append(handler.path)
    if served.statuses:
        handler.send_response(served.statuses.pop(0))
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    content, (start, end) = served.content, asked_range(handler, served)
    if start is not None and start >= len(content):
        handler.send_error(416)
        return
    head(handler, served, start, end)
    off = served.starts if start else 0
    body = content[(start or 0) + off : None if end is None else end + off]
    whole = len(body)
    if served.cuts:
        body = body[: served.cuts.pop(0)]
    handler.wfile.write(body)
    handler.wfile.flush()
    if served.hold and (end is None or end > len(content)):
        served.hold.wait()
    if len(body) < whole and served.after_cut:
        served.after_cut(served)


def asked_range(handler, served):
    """Where the answer is to begin and to end; None and None of all."""
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range", ""))
    if not match or not served.ranges:
        return None, None
    size = len(served.content) + served.more
    return int(match[1]), min(int(match[2]) + 1, size) if match[2] else size


def head(handler, served, start, end):
    size = len(served.content) + served.more
    handler.send_response(200 if start is None else 206)
    if served.length:
        length = size if start is None else end - start
        handler.send_header("Content-Length", str(length))
    if start is not None:
        begin = start + served.starts
        handler.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
    if served.etag:
        handler.send_header("ETag", served.etag)
    handler.end_headers()

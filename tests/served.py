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
    ranges: bool = True  # whether it knows them
    length: bool = True  # whether it tells how long a file is
    more: int = 0  # bytes that it says it sends, and does not
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

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        served.address = f"http://127.0.0.1:{server.server_port}"
        yield served
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
    match = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    start = int(match[1]) if match and served.ranges else None
    if start is not None and start >= len(served.content):
        handler.send_response(416)
        handler.send_header("Content-Range", f"bytes */{len(served.content)}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    size = len(served.content) + served.more
    handler.send_response(200 if start is None else 206)
    if served.length:
        handler.send_header("Content-Length", str(size - (start or 0)))
    if start is not None:
        handler.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
    handler.end_headers()
    whole = body = served.content[start or 0 :]
    if served.cuts:
        body = body[: served.cuts.pop(0)]
    handler.wfile.write(body)
    handler.wfile.flush()
    if served.hold:
        served.hold.wait()
    if len(body) < len(whole) and served.after_cut:
        served.after_cut(served)

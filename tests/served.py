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
    asked, size = handler.headers.get("Range", ""), len(served.content) + served.more
    served.asked.append(asked)
    served.paths.append(handler.path)
    match = re.fullmatch(r"bytes=(\d+)-", asked) if served.ranges else None
    start = int(match[1]) if match else 0
    status, body, headers = 200, served.content[start:], {"Content-Length": size - start}
    if served.statuses:
        status, body, headers = served.statuses.pop(0), b"", {"Content-Length": 0}
    elif match and not body:
        status = 416
        headers = {"Content-Length": 0, "Content-Range": f"bytes */{len(served.content)}"}
    elif match:
        status, headers["Content-Range"] = 206, f"bytes {start}-{size - 1}/{size}"
    if body and not served.length:
        del headers["Content-Length"]
    handler.close_connection = True
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, str(value))
    handler.end_headers()
    cut = served.cuts.pop(0) if body and served.cuts else len(body)
    handler.wfile.write(body[:cut])
    handler.wfile.flush()
    if cut < len(body) and served.after_cut:
        served.after_cut(served)

"""A detector behind HTTP: python app.py --state state.h5, one process, which owns the state.

    POST /features?dim=512              N x 512 numbers in float32: decides, then learns, in order
    POST /features?dim=512&learn=false  decides by what was learned, and changes nothing
    POST /feedback?dim=512&noise=true   a person says that these images are noise, or are not
    GET  /health, GET /metrics          for workers and people, and for Prometheus

Workers that have the encoder send features (worker.py): here is neither torch nor a GPU. A request
that is sent twice is learned twice. There is neither TLS nor a password: put a proxy before it.
"""

import argparse
import dataclasses
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from metrics import CONTENT_TYPE, openmetrics
from owner import Owner, Rows, opened
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.requests import ClientDisconnect

from zsntta_cli import Verdicts, ZsnttaError

# What is wrong with a parameter of a request, by pydantic's names.
WRONG = {
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "bool_parsing": "must be true or false",
}


def service(owner: Owner, most: int) -> FastAPI:
    """The web's side of an owner; `most` images come in one request."""
    app = FastAPI(title="zsntta", docs_url=None, redoc_url=None)
    asked: Counter[tuple[str, int]] = Counter()  # by path and status
    limit = 4 * most * owner.detector.text_features.shape[1]  # bytes

    async def sent(request: Request, dim: int) -> Rows:
        """The body as features (N, dim), of which no more is taken in than may come."""
        body, stated = bytearray(), request.headers.get("content-length", "")
        try:
            if not (stated.isdecimal() and int(stated) > limit):
                async for part in request.stream():
                    body += part
                    if len(body) > limit:
                        break
                else:
                    return rows_of(bytes(body), dim)
        except ClientDisconnect as error:  # nobody reads this: it is for the metrics
            raise HTTPException(400, "the connection ended before the body did.") from error
        wanted = f"send at most {most:,} images at a time, which are {limit:,} bytes."
        raise HTTPException(413, wanted, {"Connection": "close"})

    Sent = Annotated[Rows, Depends(sent)]  # noqa: N806

    # These two are `def`, not `async def`: FastAPI runs them in threads. Updates wait for their
    # turn there, and meanwhile the event loop answers /health and those who only want to know.
    @app.post("/features")
    def features(rows: Sent, learn: bool = True) -> Response:
        seen, verdicts = owner.learn(rows) if learn else (None, owner.judge(rows))
        return JSONResponse({"seen": seen, "verdicts": plain(verdicts)})

    @app.post("/feedback")
    def feedback(rows: Sent, noise: bool) -> Response:
        now = owner.hear(rows, noise)
        return JSONResponse({"seen": now.seen, "labelled": now.labelled})

    @app.get("/health")
    async def health() -> Response:
        return JSONResponse(owner.health())

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(openmetrics(owner, asked), headers={"Content-Type": CONTENT_TYPE})

    @app.middleware("http")
    async def count(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        status = 500
        try:
            response = await answer(request)
            status = response.status_code
            return response
        finally:
            route = request.scope.get("route")  # a path that nobody named would be a new series
            asked[getattr(route, "path", "other"), status] += 1

    @app.exception_handler(ZsnttaError)
    async def unfit(_: Request, error: ZsnttaError) -> Response:
        return JSONResponse({"error": str(error)}, 400)

    @app.exception_handler(AnyHTTPException)
    async def refused(_: Request, error: AnyHTTPException) -> Response:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def unclear(_: Request, error: RequestValidationError) -> Response:
        problems = (f"{at['loc'][-1]} {WRONG.get(at['type'], at['msg'])}" for at in error.errors())
        return JSONResponse({"error": "; ".join(problems)}, 422)

    return app


def rows_of(body: bytes, dim: int) -> Rows:
    """Features (N, dim) of a body: their bytes as NumPy's `tobytes` and `tofile` have them."""
    if dim < 1 or not body or len(body) % (4 * dim):
        wanted = f"must be N x {dim:,} numbers in float32, {4 * dim:,} bytes an image"
        raise HTTPException(400, f"the body has {len(body):,} bytes, {wanted}.")
    return np.frombuffer(body, "<f4").reshape(-1, dim)


def plain(verdicts: Verdicts) -> list[dict[str, Any]]:
    """Verdicts as JSON has them; numbers go there and back to the bit."""
    return [dataclasses.asdict(verdict) for verdict in verdicts]


def parsed() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(description="Serve a zsntta detector over HTTP.")
    add = parser.add_argument
    add(
        "--state", type=Path, required=True, help="file that a detector was saved to; goes on in it"
    )
    add("--warm", type=Path, help="feature file to learn from first, if it has seen nothing yet")
    add("--save-every", type=int, default=1000, metavar="N", help="images (default: %(default)s)")
    add("--save-seconds", type=float, default=60, metavar="S", help="(default: %(default)s)")
    add("--most", type=int, default=1024, help="images in one request (default: %(default)s)")
    add("--host", default="127.0.0.1", help="(default: %(default)s)")
    add("--port", type=int, default=8000, help="0: any that is free (default: %(default)s)")
    options = parser.parse_args()
    for name in ("save_every", "save_seconds", "most"):
        if not getattr(options, name) > 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0.")
    return options


def main() -> None:
    """Serve until SIGTERM or Ctrl-C, and save what was learned."""
    options = parsed()
    # uvicorn catches it while it serves, answers whom it has, and raises it anew.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with opened(options.state) as detector:
            owner = Owner(detector, options.state, options.save_every, options.save_seconds)
            if options.warm and not detector.seen:
                owner.warm(options.warm)  # stopped here, nothing is saved: it was half an update
            with owner.saving():
                uvicorn.run(
                    service(owner, options.most), host=options.host, port=options.port,
                    access_log=False, limit_concurrency=256, timeout_graceful_shutdown=10,
                )  # fmt: skip
    except ZsnttaError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()

"""A detector behind HTTP: uvicorn app:app, in one process, which owns the detector.

    POST /images                 an image file: its verdict; the detector then learns from it
    POST /images?learn=false     its verdict alone: nothing is learned
    POST /feedback?noise=true    an image file: a person says that it is noise (false: it belongs)
    GET  /health                 how many images it has seen, and whether its own rule decides

An image that is sent twice is learned twice. There is neither TLS nor a password: whoever can send
images can teach the detector, so put a proxy that has both in front of it.
"""

import io
import os
import pickle
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from PIL import Image, UnidentifiedImageError

from zsntta_cli import Detector, EncoderChoice, ZsnttaError, encode, load_encoder

STATE = Path(os.environ.get("STATE", "service.pickle"))  # of this service alone
CLASSES = os.environ.get("CLASSES", "circle,square,star").split(",")
MODEL = os.environ.get("MODEL", "tiny")  # ViT-B-16 for CLIP's
SAVE_EVERY = 1000  # images: a crash loses what was learned since

detector: Detector
if STATE.exists():
    MODEL, detector = pickle.loads(STATE.read_bytes())
encoder = load_encoder(EncoderChoice(MODEL))
if not STATE.exists():
    detector = Detector.of(encoder, CLASSES)
saving = threading.Lock()


async def sent(request: Request) -> bytes:
    """The image of a request: its body. A form or JSON is refused before it is read."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind in ("multipart/form-data", "application/json"):
        raise HTTPException(
            415, f"the body is {kind}, and must be the image file alone: --data-binary @photo.png"
        )
    return await request.body()


Content = Annotated[bytes, Depends(sent)]


def save() -> None:
    """Keep the detector; the old file stays until the new one is whole."""
    with saving:
        new = STATE.with_name(f"{STATE.name}.new")
        new.write_bytes(pickle.dumps((MODEL, detector)))
        new.replace(STATE)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Make sure that the file can be written, and save at the end."""
    save()
    yield
    save()


app = FastAPI(lifespan=lifespan)


# These are `def`, not `async def`: FastAPI runs them in threads, where updates wait for their turn.
@app.post("/images")
def images(content: Content, learn: bool = True) -> dict[str, Any]:
    """Decide on an image, then learn from it."""
    features = encode(encoder, Image.open(io.BytesIO(content)))
    [row] = (detector.update(features) if learn else detector.predict(features)).rows()
    if learn and detector.seen % SAVE_EVERY == 0:
        save()
    return row


@app.post("/feedback")
def feedback(content: Content, noise: bool) -> dict[str, int]:
    """Learn what a person says about an image."""
    detector.feedback(encode(encoder, Image.open(io.BytesIO(content))), [noise])
    return {"labelled": detector.labelled}


@app.get("/health")
async def health() -> dict[str, Any]:
    """Say how much was learned, and whether the method's own rule decides."""
    return {"classes": detector.names, "seen": detector.seen, "ready": detector.ready}


@app.exception_handler(UnidentifiedImageError)
async def unknown(*_: object) -> JSONResponse:
    """Refuse a body that is not an image."""
    return JSONResponse({"error": "not a picture in a known format"}, 400)


@app.exception_handler(HTTPException)
async def refused(_: Request, error: HTTPException) -> JSONResponse:
    """Refuse a body of another kind, in one line."""
    return JSONResponse({"error": error.detail}, error.status_code)


@app.exception_handler(RequestValidationError)
async def misread(_: Request, error: RequestValidationError) -> JSONResponse:
    """Refuse a wrong query, without repeating it."""
    wrong = error.errors()[0]
    return JSONResponse({"error": f"{wrong['loc'][-1]}: {wrong['msg']}"}, 422)


@app.exception_handler(ZsnttaError)
async def unfit(_: Request, error: ZsnttaError) -> JSONResponse:
    """Refuse an image that cannot be read completely, in one line."""
    return JSONResponse({"error": str(error)}, 400)

"""Encodes images and asks a service about them.

`python worker.py http://127.0.0.1:8000 *.jpg` prints a line of JSON an image. `Client` is what
another program needs to send features of its own.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Self

import httpx
import numpy as np
from numpy.typing import NDArray

from zsntta_cli import NoiseDetector, ZsnttaError
from zsntta_cli.cache.features import difference
from zsntta_cli.errors import DatasetError

AT_ONCE = 64  # images


class Refused(ZsnttaError):
    """What the service has against a request, in its words."""


class Client:
    """A connection to a service, which stays open.

    Nothing is sent a second time by itself: where an answer is lost, the images may have been
    learned or not, and sent again they would count twice.
    """

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def health(self) -> dict[str, Any]:
        """What the service says of itself: classes, dims, encoder, images seen."""
        return self._answer(self._http.get("/health"))

    def features(self, rows: NDArray[np.floating], learn: bool = True) -> dict[str, Any]:
        """Verdicts on raw features (N, D), in order, and how many images were seen then."""
        return self._post("/features", rows, learn=learn)

    def feedback(self, rows: NDArray[np.floating], noise: bool) -> dict[str, Any]:
        """Say that images are noise, or that they are not."""
        return self._post("/feedback", rows, noise=noise)

    def _post(self, path: str, rows: NDArray[np.floating], **query: bool) -> dict[str, Any]:
        body = np.ascontiguousarray(rows, "<f4").tobytes()
        query_all = {"dim": rows.shape[1], **query}
        return self._answer(self._http.post(path, content=body, params=query_all))

    def _answer(self, response: httpx.Response) -> dict[str, Any]:
        if response.status_code != 200:
            is_json = response.headers.get("content-type") == "application/json"
            reason = response.json()["error"] if is_json else response.text.strip()
            raise Refused(f"{response.status_code}: {reason}")
        answer: dict[str, Any] = response.json()
        return answer


def encoder_of(health: dict[str, Any], pretrained: str | None) -> NoiseDetector:
    """What encodes images as the service's detector wants them; it decides nothing here.

    Raises:
        Refused: it is not the encoder that the service's classes are of.
    """
    there = health["encoder"]
    if not there:
        raise Refused("the service does not know whose features it wants: send them by `Client`.")
    weights = there["pretrained"] if pretrained is None else pretrained
    encoding = NoiseDetector(
        health["class_names"], there["model"], weights, precision=there["precision"]
    )
    if other := difference(there, encoding.encoder.identity):
        raise Refused(f"the service has another {other.key}: {other.one}, here {other.other}.")
    return encoding


def encoded(
    encoding: NoiseDetector, paths: Sequence[str]
) -> list[tuple[str, NDArray[np.float32] | DatasetError]]:
    """Each image's features (D,), or why it cannot be read."""
    try:
        return list(zip(paths, encoding.encode(list(paths)), strict=True))
    except DatasetError as error:
        if len(paths) == 1:
            return [(paths[0], error)]
    half = len(paths) // 2
    return encoded(encoding, paths[:half]) + encoded(encoding, paths[half:])


def verdicts(
    client: Client, encoding: NoiseDetector, paths: Sequence[str], learn: bool
) -> Iterator[dict[str, Any]]:
    """A verdict on each image, or why it cannot be read."""
    for start in range(0, len(paths), AT_ONCE):
        results = encoded(encoding, paths[start : start + AT_ONCE])
        rows = {path: row for path, row in results if not isinstance(row, DatasetError)}
        if rows:
            answer = client.features(np.stack(list(rows.values())), learn)
            for path, verdict in zip(rows, answer["verdicts"], strict=True):
                yield {**verdict, "source": path}
        for path, error in results:
            if isinstance(error, DatasetError):
                yield {"source": path, "error": str(error)}


def taught(
    client: Client, encoding: NoiseDetector, paths: Sequence[str], noise: bool
) -> dict[str, Any]:
    """Say that images are noise, or that they are not: DatasetError where one cannot be read."""
    return client.feedback(encoding.encode(list(paths)), noise)


def parsed() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(description="Ask a zsntta service about images.")
    add = parser.add_argument
    add("url", help="of the service: http://127.0.0.1:8000")
    add("images", nargs="+", metavar="IMAGE", help="files")
    add("--no-learn", action="store_true", help="ask only: nothing is learned")
    add("--noise", action="store_true", help="say that these images are noise")
    add("--clean", action="store_true", help="say that these images belong to the classes")
    add("--pretrained", metavar="FILE", help="where the encoder's weights lie here")
    options = parser.parse_args()
    if options.noise and options.clean:
        parser.error("say either --noise or --clean.")
    return options


def main() -> None:
    """Print what the service says of each image."""
    options = parsed()
    try:
        with Client(options.url) as client:
            encoding = encoder_of(client.health(), options.pretrained)
            if options.noise or options.clean:
                print(json.dumps(taught(client, encoding, options.images, options.noise)))
                return
            for verdict in verdicts(client, encoding, options.images, not options.no_learn):
                print(json.dumps(verdict))
    except ZsnttaError as error:
        sys.exit(f"error: {error}")
    except httpx.HTTPError as error:
        sys.exit(f"error: {options.url} does not answer ({error}).")


if __name__ == "__main__":
    main()

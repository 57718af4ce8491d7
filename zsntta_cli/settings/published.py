"""Weights that are recognised by their content: OpenAI's files, under any name.

The digests are those in OpenAI's addresses of the files, which open_clip lists; a test compares
them with the list of the installed open_clip. The hub's files have the same weights in another
format, and their digests are not published.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from zsntta_cli.files import sha256

OPENAI = "openai"
OPENAI_SHA256 = {  # by open_clip's name of the model
    "RN50": "afeb0e10f9e5a86da6080e35cf09123aca3b358a0c3e3b6c78a7b63bc04b6762",
    "RN101": "8fa8567bab74a42d41c5915025a8e4538c3bdbe8804a470a72f30b0d94fab599",
    "RN50x4": "7e526bd135e493cef0776de27d5f42653e6b4c8bf9e0f653bb11773263205fdd",
    "RN50x16": "52378b407f34354e150460fe41077663dd5b39c54cd0bfd2b27167a4a06ec9aa",
    "RN50x64": "be1cfb55d75a9666199fb2206c106743da0f6468c9d327f3e0d0a543a9919d9c",
    "ViT-B-32": "40d365715913c9da98579312b702a82c18be219cc2a73407c4526f58eba950af",
    "ViT-B-16": "5806e77cd80f8b59890b7e101eabd078d9fb84e6937f9e85e4ecb61988df416f",
    "ViT-L-14": "b8cca3fd41ae0c99ba7e8951adf17d267cdb84cd88be6f7c2e0eca1737a03836",
    "ViT-L-14-336": "3035c92b350959924f9f00213499208652fc7ea050643e8b385c2dac08641f02",
}


def published_tag(model: str, weights: Path) -> str:
    """The tag of a model's weights in a file; empty if the file is not known."""
    return _tag(model, digest_of(weights)) if _plain(model) in OPENAI_SHA256 else ""


def by_tag(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An encoder's identity, with the tag of its weights instead of their file's path."""
    tag = _tag(str(identity.get("model")), identity.get("weights_sha256"))
    return {**identity, "pretrained": tag} if tag else dict(identity)


def _tag(model: str, digest: object) -> str:
    return OPENAI if digest and digest == OPENAI_SHA256.get(_plain(model)) else ""


def _plain(model: str) -> str:
    return model.removesuffix("-quickgelu")


def digest_of(weights: Path) -> str:
    """The sha256 of a file of weights, which is computed once unless the file changes."""
    status = weights.stat()
    return _digest(weights.absolute(), status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=16)
def _digest(weights: Path, *_state: int) -> str:
    return sha256(weights)

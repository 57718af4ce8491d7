"""What the kill_*.py have in common: forks that are killed, an encoder that costs nothing, noon."""

import os
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np

from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.settings import EncoderChoice

TINY = EncoderChoice("tiny")


def forked(work: Callable[[], object]) -> int:
    """Do some work in a fork, which ends with it; gives its number."""
    if process := os.fork():
        return process
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def was_killed(process: int) -> bool:
    """Wait for a fork, and say whether it was killed; one that failed by itself is an error."""
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a fork failed"
    return os.WIFSIGNALED(status)


class Means:
    """An encoder that costs nothing: features are means of six values."""

    identity: ClassVar = {**weights_request(TINY), "logit_scale": 100.0}
    image_size, embed_dim = 32, 512

    @staticmethod
    def resize(image):
        return np.asarray(image.resize((32, 32)))

    def encode_pixels(self, pixels):
        return pixels.reshape(len(pixels), 512, 6).mean(2, np.float32)

    @property
    def text(self):
        return self

    def check_length(self, prompts):
        """Any prompt is short enough."""

    def encode_texts(self, prompts):
        return np.eye(512, dtype=np.float32)[: len(prompts)]


class Noon(datetime):
    """The time that a file says it was made: with it, whole files can be compared."""

    @classmethod
    def now(cls, tz=None):
        return cls(2025, 1, 1, 12, tzinfo=UTC)

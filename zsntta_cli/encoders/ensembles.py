"""Text features that are averaged over prompts, with any encoder."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.settings.prompts import class_prompts, templates_of

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def prompt_features(encode: Encode, prompt: str, words: Sequence[str]) -> NDArray[np.float32]:
    """Encode words under a prompt to unit-norm text features (W, D), averaged over its templates.

    `encode` gives unit-norm features (P, D) of prompts. As in CLIP (Radford et al., 2021, Sec.
    3.1.4), each template's features have norm 1 before they are averaged, and so has their mean.
    """
    first, *rest = templates_of(prompt)
    total = encode(class_prompts(first, words))
    if not rest:
        return total
    for template in rest:
        total = total + encode(class_prompts(template, words))
    return unit_rows(total / np.float32(len(rest) + 1))


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalise rows (N, D) to norm 1."""
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

"""Text features of prompts that are averaged, whatever encodes them."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.settings.prompts import class_prompts, templates_of

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def prompt_features(encode: Encode, prompt: str, words: Sequence[str]) -> NDArray[np.float32]:
    """Unit-norm text features (W, D) of words under a template; of several templates, their mean.

    `encode` gives unit-norm features (P, D) of prompts. As CLIP does it (Radford et al., 2021, Sec.
    3.1.4), each template's features have norm 1 before they are averaged, and their mean has after.
    """
    first, *others = templates_of(prompt)
    total = encode(class_prompts(first, words))
    if not others:
        return total
    for template in others:
        total = total + encode(class_prompts(template, words))
    return unit_rows(total / np.float32(len(others) + 1))


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows (N, D) brought to norm 1."""
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

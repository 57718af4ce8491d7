"""float16 made float32: exactly, and in a quarter of the time of NumPy's cast.

A half's bits, moved 13 places up, are those of a float32 with an exponent that is 112 too small:
one product with 2**112 mends that, for numbers below the normal ones of float16 too.
"""

import numpy as np
from numpy.typing import NDArray

_EXPONENT = np.float32(2.0**112)
_SIGN_AND_MAGNITUDE = np.int32(~0x70000000)  # bits 28 to 30 have copies of the sign
_INFINITE = 0x7C00  # its bits; those of NaN are above
_CHUNK = 2**16  # numbers at a time: they stay in the processor's cache
_TINY = np.float32(2.0**-136)  # the smallest half in that form: below float32's normal numbers


def float32_of(
    values: NDArray[np.floating], out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Values (N, D) as float32, as `astype` gives them; in `out` where that is given."""
    if out is None:
        out = np.empty(values.shape, np.float32)
    if values.dtype != np.float16 or not out.size or not _TINY * _EXPONENT:
        out[...] = values  # the last: a library has told the processor to take such for 0
        return out
    rows = max(1, _CHUNK // (out.size // len(out)))
    for start in range(0, len(out), rows):
        part = slice(start, start + rows)
        _widen(values[part], out[part])
    return out


def _widen(halves: NDArray[np.float16], out: NDArray[np.float32]) -> None:
    signed, unsigned = halves.view(np.int16), halves.view(np.uint16)
    if signed.max() >= _INFINITE or unsigned.max() >= _INFINITE + 2**15:
        out[...] = halves
        return
    bits = out.view(np.int32)
    bits[...] = signed
    bits <<= 13
    bits &= _SIGN_AND_MAGNITUDE
    out *= _EXPONENT

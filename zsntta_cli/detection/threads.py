"""Products on one BLAS thread: on a busy machine a second one stalls these small ones."""

import threading
from typing import Any

from threadpoolctl import ThreadpoolController


class OneThread:
    """Within it BLAS takes one thread.

    How many it takes is the whole process's: whoever comes first sets it, and whoever leaves last
    puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._libraries: list[Any] | None = None  # looking for them takes milliseconds
        self._had: list[int] = []
        self._within = 0

    def look_again(self) -> None:
        """A method was loaded, which may have brought a BLAS of its own, as SciPy's is."""
        with self._lock:
            if not self._within:
                self._libraries = None

    def __enter__(self) -> None:
        with self._lock:
            if self._libraries is None:
                found = ThreadpoolController().select(user_api="blas")
                self._libraries = list(found.lib_controllers)
            if not self._within:
                self._had = [library.num_threads for library in self._libraries]
                for library in self._libraries:
                    library.set_num_threads(1)
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                for library, had in zip(self._libraries or (), self._had, strict=True):
                    library.set_num_threads(had)


ONE_THREAD = OneThread()

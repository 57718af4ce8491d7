"""Kernels: functions as machine code, which Numba makes once and which is kept for later processes.

llvmlite loads kept code without Numba, in 30 ms; importing Numba takes 0.4 s. So kept code must not
call Numba: a kernel takes C-contiguous arrays, bools, ints and floats, writes its results into its
arrays, returns nothing, makes no array and raises nothing. Functions of its module that it calls
are compiled with it, and arrays and numbers of its module are constants.

Code is kept in NUMBA_CACHE_DIR if that is set, beside the module, in the user's cache or, if none
of these can be written (a read-only container, a service user), in a temporary folder of the user.
If there is none either, or it is full, code is compiled in memory. Results are always the same. The
name of a kept file has a digest of all that decides the code: the function, the functions that it
calls, its constants, its types, the processor and LLVM. Kept code is run, so it is kept and loaded
only where nobody but this user and root can write (guarded.py), and ignored anywhere else.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from zsntta_cli.methods.kernels.guarded import UnsafeError, read_guarded, write_guarded

Type = tuple[np.dtype[Any], int] | type  # an array's type and dimensions, or a number's type
SYMBOL = "kernel"  # the name of the function in the machine code
_COMPILING = "zsntta_cli.methods.kernels.compiling"  # imports Numba
_loading = threading.RLock()
_owners = list[Any]()  # what holds the loaded code in memory: it must never be freed


def compiled(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a function to machine code, for each combination of types that it is called with.

    It runs without the GIL, so other threads of Python run beside it.
    """
    assert isinstance(function, FunctionType)
    codes: dict[tuple[Type, ...], Callable[..., Any]] = {}

    @functools.wraps(function)
    def call(*values: Any) -> None:
        types, arguments = list[Type](), list[Any]()
        for value in values:
            if isinstance(value, np.ndarray):
                if not value.flags.c_contiguous:
                    raise TypeError(f"{function.__qualname__} takes arrays in C order.")
                types.append((value.dtype, value.ndim))
                arguments += (value.ctypes.data, *value.shape)
            else:
                types.append(type(value))
                arguments.append(value)
        key = tuple(types)
        if key not in codes:
            with _loading, _ctrl_c_waits():
                codes[key] = _loaded(function, key)
        codes[key](*arguments)

    return call


def _loaded(function: FunctionType, types: tuple[Type, ...]) -> Callable[..., Any]:
    """Load kept code, or compile the function now, and keep the code if there is a place for it."""
    name = _file_name(function, types)
    for folder in _places(function):
        try:
            return _linked(_read(folder / name), types)
        except UnsafeError as error:
            _say(f"kept machine code is not used: {error}.")
        except (OSError, ValueError):  # the file is missing or damaged
            pass
    function_in_c = import_module(_COMPILING).c_function(function, types)
    try:
        code = import_module(_COMPILING).machine_code(function_in_c)
        linked = _linked(code, types)
    except Exception:  # the code calls Numba after all, which is imported now: it is not kept
        return _called(function_in_c, function_in_c.address, types)
    _keep(code, name, function)
    return linked


def _file_name(function: FunctionType, types: tuple[Type, ...]) -> str:
    from llvmlite import __version__, binding

    facts = [*_facts(function), types, __version__, binding.get_process_triple(), *processor()]
    return f"{function.__name__}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:32]}.kernel"


def processor() -> tuple[str, str]:
    """The name and the features of the processor, as LLVM gives them."""
    from llvmlite import binding

    with contextlib.suppress(RuntimeError):
        return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    return binding.get_host_cpu_name(), ""  # LLVM does not know the features


def _facts(function: FunctionType) -> Iterator[object]:
    """Give all that decides the code: a function's bytecode and the values of names in it."""
    code = function.__code__
    yield code.co_code, code.co_consts, code.co_names, code.co_varnames
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType):
            yield from _facts(value)
        elif isinstance(value, np.ndarray):
            yield value.dtype.str, value.shape, value.tobytes()
        elif isinstance(value, int | float):
            yield value


def _places(function: FunctionType, make: bool = False) -> Iterator[Path]:
    """Give the folders in which code may be kept, in order; `make` makes the temporary one."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    yield Path(importlib.util.cache_from_source(function.__code__.co_filename)).parent
    with contextlib.suppress(RuntimeError):  # the user has no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zsntta"
    if folder := _own_folder(make):
        yield folder


def _own_folder(make: bool) -> Path | None:
    """A temporary folder that only this user can open, as its content is run; None without one."""
    try:
        folder = Path(tempfile.gettempdir()) / f"zsntta-kernels-{os.getuid()}"
        if make:
            folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    is_private = status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if is_private and folder.is_dir() and not folder.is_symlink() else None


def _say(text: str) -> None:
    """Log a text, which `--debug` shows; logging is imported here, as it is seldom needed."""
    import logging

    logging.getLogger(__name__).info(text)


def _read(path: Path) -> bytes:
    """Read kept code and check the digest before it, as LLVM crashes on damaged code.

    Raises:
        OSError: there is no such file.
        UnsafeError: somebody else can have written it.
        ValueError: it is damaged.
    """
    content = read_guarded(path)
    digest, code = content[:32], content[32:]
    if hashlib.sha256(code).digest() != digest:
        raise ValueError(f"{path} is damaged.")
    return code


def _keep(code: bytes, name: str, function: FunctionType) -> None:
    for folder in _places(function, make=True):
        with contextlib.suppress(OSError):
            write_guarded(folder / name, hashlib.sha256(code).digest() + code)
            return


def _linked(code: bytes, types: tuple[Type, ...]) -> Callable[..., None]:
    """Load machine code into memory, to be called with arrays and numbers of these types."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return _called(engine, engine.get_function_address(SYMBOL), types)


def _called(owner: Any, address: int, types: tuple[Type, ...]) -> Callable[..., Any]:
    """Make a function that calls the code at an address, and keep its owner in memory."""
    import ctypes

    _owners.append(owner)
    c_types = ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool, ctypes.c_double
    return ctypes.CFUNCTYPE(None, *flat(types, *c_types))(address)


def flat(types: tuple[Type, ...], address: Any, integer: Any, boolean: Any, real: Any) -> list[Any]:
    """The types of the C function's arguments; an array is passed as its address and its shape."""
    arguments: list[Any] = []
    for kind in types:
        if isinstance(kind, tuple):
            arguments += [address, *kind[1] * [integer]]
        elif issubclass(kind, int | float):
            number = integer if issubclass(kind, int) else real
            arguments.append(boolean if kind is bool else number)
        else:
            raise TypeError(f"a kernel takes arrays, bools, ints and floats, no {kind.__name__}.")
    return arguments


@contextlib.contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Hold Ctrl-C back within: amid LLVM's callbacks it would print a traceback and be lost."""
    before, held = signal.getsignal(signal.SIGINT), list[int]()
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)

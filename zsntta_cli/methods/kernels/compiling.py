"""Numba's part of compiled.py: functions become machine code that does not call Numba."""

import ctypes
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
import numpy as np
from llvmlite import binding

from zsntta_cli.methods.kernels.compiled import SYMBOL, Type, flat, processor


def c_function(function: FunctionType, types: tuple[Type, ...]) -> Any:
    """Compile a function with Numba, to be called from C: an array is its address and its shape."""
    return numba.cfunc(_signature(types), error_model="numpy")(_entry(_jitted(function), types))


def machine_code(made: Any) -> bytes:
    """Make an object file of the function, named SYMBOL, without any code that is not called.

    Raises:
        ValueError: the code calls a function of Numba, which a later process does not load.
    """
    module = binding.parse_assembly(made.inspect_llvm())
    for part in module.functions:
        if part.name == made.native_name:
            part.name = SYMBOL
        elif not part.is_declaration:
            part.linkage = "internal"  # LLVM removes it if it is not called
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(*processor(), opt=3, codemodel="jitdefault")
    tuning = binding.create_pipeline_tuning_options(3)
    passes = binding.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    process = ctypes.CDLL(None)  # the functions of any process of Python, from libc and libm
    for part in module.functions:
        outside = part.is_declaration and not part.name.startswith("llvm.")
        if outside and not hasattr(process, part.name):
            raise ValueError(f"{made.native_name} needs {part.name}.")
    return bytes(machine.emit_object(module))


def _jitted(function: FunctionType) -> Any:
    """Numba's form of a function, and of the functions of its module that it calls."""
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    called = {
        name: _jitted(value) for name, value in named.items() if isinstance(value, FunctionType)
    }
    linked = FunctionType(function.__code__, function.__globals__ | called, function.__name__)
    return numba.njit(linked, error_model="numpy")


def _signature(types: tuple[Type, ...]) -> Any:
    arguments = flat(types, None, numba.int64, numba.boolean, numba.float64)
    arrays = iter([one[0] for one in types if isinstance(one, tuple)])
    return numba.void(*(one or _pointer(next(arrays)) for one in arguments))


def _pointer(kind: np.dtype[Any]) -> Any:
    return numba.types.CPointer(numba.from_dtype(kind))  # type: ignore[no-untyped-call]


def _entry(kernel: Any, types: tuple[Type, ...]) -> Callable[..., None]:
    """The C function in Python: it makes arrays of addresses and shapes, and calls the kernel."""
    parameters, values = list[str](), list[str]()
    for i, kind in enumerate(types):
        sizes = [f"n{i}_{axis}" for axis in range(kind[1])] if isinstance(kind, tuple) else []
        parameters += [f"a{i}", *sizes]
        values += [f"numba.carray(a{i}, ({', '.join(sizes)},))" if sizes else f"a{i}"]
    within: dict[str, Any] = {"kernel": kernel, "numba": numba}
    exec(f"def entry({', '.join(parameters)}):\n    kernel({', '.join(values)})", within)
    return within["entry"]

"""Functions that a server has for tests, under their classic names."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm._ffi.registry import register_func
from tvm.runtime import ndarray as nd


@register_func("rpc.test.addone")
def _add_one(x: int) -> int:
    return x + 1


@register_func("rpc.test.strcat")
def _concatenate(name: str, x: int) -> str:
    return f"{name}:{x}"


@register_func("rpc.test.except")
def _raise_error(name: str) -> None:
    raise ValueError(name)


@register_func("rpc.test.runtime_str_concat")
def _concatenate_text(x: Any, y: Any) -> Any:
    return x + y


@register_func("rpc.test.remote_array_func")
def _check_array_of_ones(y: nd.NDArray) -> None:
    np.testing.assert_equal(y.numpy(), np.ones((3, 4)))


@register_func("rpc.test.add_to_lhs")
def _make_adder(x: int) -> Callable[[int], int]:
    return lambda y: x + y


@register_func("rpc.test.remote_return_nd")
def _use_array(name: str) -> Callable[..., Any]:
    values = nd.array(np.zeros(10).astype("float32"))
    functions: dict[str, Callable[..., Any]] = {
        "get_arr": lambda: values,
        "ref_count": lambda: sys.getrefcount(values),
        "get_elem": lambda index: float(values.numpy()[index]),
        "get_arr_elem": lambda array, index: float(array.numpy()[index]),
    }
    return functions[name]


register_func("rpc.test.getpid", os.getpid)


@register_func("rpc.test.kill_self")
def _kill_self(number: int) -> None:
    os.kill(os.getpid(), number)

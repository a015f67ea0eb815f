"""Functions for processes of :mod:`tvm.contrib.popen_pool` to call."""

from __future__ import annotations

import time
from typing import Any

import tvm

_STATE: list[Any] = []


def initializer(
    test_global_state_1: Any, test_global_state_2: Any, test_global_state_3: Any
) -> None:
    """Remember three values."""
    _STATE[:] = [test_global_state_1, test_global_state_2, test_global_state_3]


def after_initializer() -> tuple[Any, ...]:
    """The values that :func:`initializer` got in this process."""
    return tuple(_STATE)


def identity_py(arg: Any) -> Any:
    """The argument."""
    return arg


def register_ffi() -> None:
    """Register :func:`identity_py` under ``testing.identity_py``."""
    tvm.register_func("testing.identity_py", identity_py)


def call_py_ffi(arg: Any) -> Any:
    """The argument, by way of the registered Python function."""
    return tvm.get_global_func("testing.identity_py")(arg)


def call_cpp_ffi(arg: Any) -> Any:
    """The argument, by way of a C++ function."""
    return tvm.get_global_func("testing.identity_cpp")(arg)


def call_cpp_py_ffi(arg: Any) -> Any:
    """The argument, by way of both."""
    return tvm.get_global_func("testing.identity_cpp")(call_py_ffi(arg))


def fast_summation(n: int) -> int:
    """The sum of the numbers below ``n``."""
    return n * (n - 1) // 2


def slow_summation(n: int) -> int:
    """The same, by adding them."""
    total = 0
    for i in range(n):
        total += i
    return total


def timeout_job(n: float) -> None:
    """Sleep one and a half times as long as the timeout ``n``."""
    time.sleep(n * 1.5)

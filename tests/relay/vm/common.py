"""Running programs through the virtual machine and beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm import relay
from tvm.runtime.container import ADT
from tvm.runtime.ndarray import NDArray
from tvm.runtime.vm import VirtualMachine


def as_module(program: Any) -> tvm.IRModule:
    """A module with the function as main."""
    return program if isinstance(program, tvm.IRModule) else tvm.IRModule.from_expr(program)


def run_vm(program: Any, *args: Any, opt_level: int = 2) -> Any:
    """The result of main, arrays as numpy's."""
    with tvm.transform.PassContext(opt_level=opt_level):
        exe = relay.vm.compile(as_module(program), "llvm")
    return plain(VirtualMachine(exe, tvm.cpu()).run(*args))


def plain(value: Any) -> Any:
    """Arrays as numpy's, tuples as lists."""
    if isinstance(value, NDArray):
        return value.numpy()
    if isinstance(value, (ADT, list, tuple)):
        return [plain(v) for v in value]
    return value


def check(program: Any, expected: Any, *args: Any) -> None:
    """Main gives what is expected, unoptimised and optimised."""
    for opt_level in (0, 3):
        same(run_vm(program, *args, opt_level=opt_level), expected)


def same(found: Any, expected: Any) -> None:
    """Values are equal, up to rounding."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
        return
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

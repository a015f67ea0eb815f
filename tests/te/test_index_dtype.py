from typing import Any

import numpy as np
import pytest

from tvm import te, tir
from tvm.tir.interp import interpret

from .random_programs import IN_BLOCKS
from .random_schedules import random_program


def dtypes_of_indices(func: tir.PrimFunc) -> set[str]:
    """The dtypes of all loops, shapes and indices."""
    found: set[str] = set()

    def note(node: Any) -> None:
        if isinstance(node, tir.For):
            found.add(str(node.loop_var.dtype))
        if isinstance(node, (tir.BufferLoad, tir.BufferStore)):
            found.update(str(index.dtype) for index in node.indices)
            found.update(str(dim.dtype) for dim in node.buffer.shape)

    tir.stmt_functor.post_order_visit(func.body, note)
    return found


@pytest.mark.parametrize("operator", IN_BLOCKS)
def test_all_indices_have_the_dtype(operator: str) -> None:
    program = random_program(1, operator)
    plain = te.create_prim_func(program.args)
    wide = te.create_prim_func(program.args, index_dtype_override="int64")
    assert dtypes_of_indices(wide) == {"int64"}
    arrays, others = program.arrays(), program.arrays()
    interpret(plain, *arrays)
    interpret(wide, *others)
    for one, other in zip(arrays, others, strict=True):
        np.testing.assert_array_equal(one, other)


def test_symbolic_sizes_have_the_dtype() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[n - 1 - i] + i, name="B")
    func = te.create_prim_func([n, a, b], index_dtype_override="int64")
    assert func.params[0].dtype == "int64" and dtypes_of_indices(func) == {"int64"}
    x, y = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    interpret(func, 5, x, y)
    np.testing.assert_array_equal(y, x[::-1] + np.arange(5))

"""Tensors of more elements than 32 bits count: the indices of their kernels, by the lowered text."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay, te, tir
from tvm.relay.backend.kernels import lower_kernel
from tvm.relay.traverse import post_order
from tvm.tir.stmt_functor import post_order_visit

ROWS, COLUMNS = (1 << 19) + 1, 4096
COUNT = ROWS * COLUMNS


def tensor(name: str, *shape: int, dtype: str = "int8") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


PROGRAMS = {
    "a slice with steps": relay.strided_slice(tensor("x", COUNT), [1], [COUNT], [1 << 20]),
    "the last elements": relay.strided_slice(tensor("x", COUNT), [COUNT - 64], [COUNT], [1]),
    "rows": relay.take(tensor("x", ROWS, COLUMNS), tensor("i", 5, dtype="int32"), axis=0),
    "joined": relay.concatenate([tensor("x", 2, COUNT // 4), tensor("y", 2, COUNT // 4)], 1),
    "a matrix": relay.nn.relu(relay.reshape(tensor("x", COUNT), (ROWS, COLUMNS))),
    "transposed": relay.transpose(tensor("x", ROWS, COLUMNS)),
    "largest of rows": relay.max(tensor("x", ROWS, COLUMNS), axis=1),
    "largest of all": relay.max(tensor("x", ROWS, COLUMNS)),
    "one of two": relay.where(
        tensor("c", 1, COLUMNS, dtype="bool"), tensor("x", ROWS, 1), tensor("y", 1, COLUMNS)
    ),
    "repeated": relay.tile(tensor("x", COLUMNS), (ROWS,)),
    "running sums": relay.cumsum(tensor("x", COUNT), axis=0, dtype="int8"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_indices_into_large_tensors_have_64_bits(name: str) -> None:
    mod = tvm.IRModule.from_expr(PROGRAMS[name])
    mod = relay.transform.FuseOps(2)(relay.transform.InferType()(mod))
    main = relay.transform.InferType()(mod)["main"]
    kernels = [n for n in post_order(main.body) if isinstance(n, relay.Function)]
    large = []
    for kernel in kernels:
        func = lower_kernel(kernel, "kernel", tvm.target.Target("llvm")).func

        def visit(node: tir.Node) -> None:
            if isinstance(node, (tir.BufferLoad, tir.BufferStore)):
                count = node.buffer.shape[0]
                if not isinstance(count, tir.IntImm) or not 0 <= count.value < 1 << 31:
                    large.append(node.indices[0].dtype)

        post_order_visit(func.body, visit)
    assert large and all([dtype.startswith("int64") for dtype in map(str, large)])


def test_open_extents_of_too_many_elements_are_an_error() -> None:
    rows = te.size_var("rows")
    a = te.placeholder((rows, COLUMNS), "int8", name="a")
    b = te.compute((rows,), lambda i: a[i, 0], name="b")
    first = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    large = tvm.nd.from_dlpack(np.empty((ROWS, COLUMNS), "int8"))  # memory that nobody touches
    with pytest.raises(ValueError, match=r"needs below 2\*\*31 elements, got 2147487744"):
        first(large, tvm.nd.empty((ROWS,), "int8"))


X = tensor("x", COUNT)
TOO_MANY = {
    "argsort": lambda dtype: relay.argsort(X, dtype=dtype),
    "topk": lambda dtype: relay.topk(X, 5, ret_type="indices", dtype=dtype),
    "searchsorted": lambda dtype: relay.searchsorted(X, tensor("v", 3), dtype=dtype),
    "shape_of": lambda dtype: relay.shape_of(X, dtype=dtype),
    "ndarray_size": lambda dtype: relay.ndarray_size(X, dtype=dtype),
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_positions_that_the_dtype_cannot_count_are_an_error(name: str) -> None:
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(TOO_MANY[name]("int64")))
    assert typed["main"].ret_type.dtype == "int64"
    with pytest.raises(tvm.TVMError, match=rf"{name} requires .* holds {COUNT}, got 'int32'"):
        relay.transform.InferType()(tvm.IRModule.from_expr(TOO_MANY[name]("int32")))


def test_indices_of_32_bits_wrap_around_longer_rows() -> None:
    x = te.placeholder(((1 << 32) + 5,), "int8", name="x")
    i = te.placeholder((4,), "int32", name="i")
    wrapped = tvm.topi.take(x, i, mode="wrap")
    assert "int64(4294967301)" in str(te.create_prim_func([x, i, wrapped]))


def test_diagonals_of_large_matrices() -> None:
    matrix = te.placeholder((ROWS, COLUMNS), "int8", name="matrix")
    diagonal = te.placeholder((COLUMNS,), "int8", name="diagonal")
    filled = tvm.topi.matrix_set_diag(matrix, diagonal)
    tvm.build(te.create_schedule(filled.op), [matrix, diagonal, filled], "llvm")

"""Operators whose results' shapes depend on the values of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay, te
from tvm.ir.op import Op
from tvm.ir.type import TensorType, TupleType

Array = np.ndarray


def _filled(outs: Sequence[te.Tensor], inputs: Sequence[te.Tensor], arrays: Any) -> list[Array]:
    kernel = tvm.build(te.create_schedule([o.op for o in outs]), [*inputs, *outs], "llvm")
    found = [tvm.nd.array(np.zeros([int(d) for d in o.shape], str(o.dtype))) for o in outs]
    kernel(*[tvm.nd.array(a) for a in arrays], *found)
    return [f.numpy() for f in found]


def _run(name: str, arrays: Sequence[Array]) -> list[Array]:
    """What an operator computes in the shapes that its shape function finds."""
    op = Op.get(name)
    reads = op.get_attr("TShapeDataDependent")
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    types = relay.transform.InferTypeLocal(
        op.extra["call"](op, *[relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)])
    )  # fmt: skip
    fields = list(types.fields) if isinstance(types, TupleType) else [types]
    read = [
        x if by_value else te.placeholder((len(x.shape),), "int64", f"shape{i}")
        for i, (x, by_value) in enumerate(zip(inputs, reads, strict=True))
    ]
    shapes = op.shape_func(None, read, [len(f.shape) for f in fields])
    values = [
        a if by_value else np.array(a.shape, "int64")
        for a, by_value in zip(arrays, reads, strict=True)
    ]
    extents = _filled(shapes, read, values)
    known = [TensorType(tuple(e.tolist()), f.dtype) for e, f in zip(extents, fields, strict=True)]
    out_type = TupleType(tuple(known)) if isinstance(types, TupleType) else known[0]
    return _filled(op.compute(None, inputs, out_type), inputs, arrays)


def _folded(call: Any) -> list[Array]:
    mod = tvm.IRModule.from_expr(relay.Function([], call))
    body = relay.transform.FoldConstant()(relay.transform.InferType()(mod))["main"].body
    fields = body.fields if isinstance(body, relay.Tuple) else [body]
    return [f.data.numpy() for f in fields]


RNG = np.random.default_rng(5)
CONDITIONS = [
    RNG.integers(0, 2, (4, 5)).astype("int32"),
    RNG.integers(0, 2, (3, 2, 2, 4)).astype(bool),
    RNG.integers(0, 2, 11).astype("float32"),
    np.zeros((3, 4), "int8"),
    np.ones((), "int32"),
    np.zeros((0, 3), "int32"),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda c: f"{c.dtype}-{c.shape}")
def test_argwhere_finds_what_is_not_zero(condition: Array) -> None:
    (found,) = _run("argwhere", [condition])
    wanted = np.argwhere(condition)
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


def test_argwhere_of_a_constant_is_folded() -> None:
    (found,) = _folded(relay.argwhere(relay.const(CONDITIONS[0])))
    np.testing.assert_array_equal(found, np.argwhere(CONDITIONS[0]))


def _sparse(rows: int, places: Sequence[tuple[int, int]]) -> list[Array]:
    indices = np.array(places, "int64").reshape(-1, 2)
    values = RNG.uniform(1, 2, len(places)).astype("float32")
    return [indices, values, np.array([rows, 5], "int64"), np.array([9.0], "float32")]


SPARSE = [
    _sparse(6, [(1, 0), (1, 3), (2, 2), (4, 1)]),
    _sparse(5, [(4, 0), (0, 3), (4, 2), (0, 1)]),
    _sparse(3, []),
    _sparse(0, []),
    _sparse(2, [(0, 0), (1, 4)]),
]


def _with_rows(indices: Array, values: Array, shape: Array, default: Array) -> list[Array]:
    found: list[tuple[list[int], float]] = []
    for row in range(int(shape[0])):
        mine = [(i.tolist(), v) for i, v in zip(indices, values, strict=True) if i[0] == row]
        found += mine or [([row, 0], default[0])]
    is_empty = [row not in indices[:, 0] for row in range(int(shape[0]))]
    return [
        np.array([i for i, _ in found], "int64").reshape(-1, 2),
        np.array([v for _, v in found], "float32"),
        np.array(is_empty, bool),
    ]


def test_empty_rows_get_an_element_where_extents_are_open() -> None:
    arrays = SPARSE[0]
    open_vars = [
        relay.var("x", relay.TensorType([relay.Any()] * a.ndim, str(a.dtype))) for a in arrays
    ]
    filled = relay.sparse_fill_empty_rows(*open_vars)
    assert isinstance(filled, relay.Tuple)
    mod = tvm.IRModule.from_expr(relay.Function(open_vars, filled))
    found = relay.create_executor("vm", mod=mod).evaluate()(*arrays)
    for have, want in zip(found, _with_rows(*arrays), strict=True):
        np.testing.assert_array_equal(have.numpy(), want)


@pytest.mark.parametrize("arrays", SPARSE, ids=lambda a: f"{a[2][0]}-{len(a[1])}")
def test_empty_rows_get_an_element(arrays: list[Array]) -> None:
    wanted = _with_rows(*arrays)
    call = relay.sparse_fill_empty_rows(*[relay.const(a) for a in arrays])
    for found in (_run("sparse_fill_empty_rows", arrays), _folded(call)):
        for have, want in zip(found, wanted, strict=True):
            assert have.shape == want.shape
            np.testing.assert_array_equal(have, want)


def test_the_graph_executor_rejects_shapes_that_depend_on_data() -> None:
    x = relay.var("x", shape=(4,), dtype="int32")
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.argwhere(x)))
    with pytest.raises(tvm.TVMError, match="argwhere|shape|dynamic"):
        relay.build(mod, "llvm")

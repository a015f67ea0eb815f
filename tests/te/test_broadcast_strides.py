"""Tensors of open extents: an axis that has one element in a call broadcasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.tir.buffer import BufferType
from tvm.tir.interp import interpret
from tvm.tir.transform.common import variables_of

from .agreement import BUILDERS

Shape = tuple[int, int]
CASES: list[tuple[Shape, Shape]] = [
    ((3, 20), (3, 20)),
    ((1, 20), (3, 20)),
    ((3, 1), (3, 20)),
    ((1, 1), (3, 20)),
    ((1, 20), (3, 1)),
]


def sum_of_two(vectorized: bool) -> tuple[te.Schedule, list[te.Tensor]]:
    a = te.placeholder((te.var("ra"), te.var("ca")), name="A")
    b = te.placeholder((te.var("rb"), te.var("cb")), name="B")
    c = te.compute((te.var("r"), te.var("c")), lambda i, j: a[i, j] + b[i, j], name="C")
    schedule = te.create_schedule(c.op)
    if vectorized:
        _, inner = schedule[c].split(c.op.axis[1], 8)
        schedule[c].vectorize(inner)
    return schedule, [a, b, c]


def arrays_of(*shapes: Shape) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.random(shape, "float32") for shape in shapes]


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that starts where compiled code takes arguments."""
    memory = np.empty(array.nbytes + 64, "uint8")
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[:] = array
    return copy


@pytest.mark.parametrize("vectorized", [False, True], ids=["plain", "vectors"])
@pytest.mark.parametrize("builder", BUILDERS)
def test_an_axis_of_one_element_broadcasts(builder: str, vectorized: bool) -> None:
    schedule, args = sum_of_two(vectorized)
    module = BUILDERS[builder](tvm.lower(schedule, args, name="plus"))
    for left, right in CASES:
        a, b = arrays_of(left, right)
        out = tvm.nd.empty(np.broadcast_shapes(left, right))
        module["plus"](tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_array_equal(out.numpy(), a + b)


@pytest.mark.parametrize("simple", [False, True])
def test_the_interpreter_broadcasts_like_compiled_code(simple: bool) -> None:
    schedule, args = sum_of_two(vectorized=True)
    func = tvm.lower(schedule, args, simple_mode=simple)["main"]
    for left, right in CASES:
        a, b = arrays_of(left, right)
        out = np.zeros(np.broadcast_shapes(left, right), "float32")
        interpret(func, a, b, out)
        np.testing.assert_array_equal(out, a + b)


def test_arguments_may_lie_in_any_order() -> None:
    schedule, args = sum_of_two(vectorized=True)
    plus = tvm.build(schedule, args, "llvm")
    a, b = [aligned(array) for array in arrays_of((20, 3), (3, 40))]
    views = [tvm.nd.from_dlpack(view) for view in (a.T, b[:, ::2])]
    out = tvm.nd.empty((3, 20))
    plus(*views, out)
    np.testing.assert_array_equal(out.numpy(), a.T + b[:, ::2])


def test_parameters_of_open_extents_have_strides() -> None:
    schedule, args = sum_of_two(vectorized=False)
    buffers = list(tvm.lower(schedule, args)["main"].buffer_map.values())
    assert all(buffer.buffer_type is BufferType.AUTO_BROADCAST for buffer in buffers)
    assert [[s.name for s in buffer.strides] for buffer in buffers] == [["stride"] * 2] * 3
    n = te.var("n")
    known = te.placeholder((4, n * 2), name="A")  # an expression is not a variable
    twice = te.compute((4, n), lambda i, j: known[i, 2 * j])
    bound = tir.decl_buffer((4, n), "float32", "B")
    func = tvm.lower(te.create_schedule(twice.op), [known, twice, n], binds={twice: bound})["main"]
    assert all(not buffer.strides for buffer in func.buffer_map.values())


def test_external_functions_get_arrays_in_order() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.PrimExpr:
        return tir.call_packed("tests.copied", ins[0], outs[0])

    b = te.extern((n,), [a], body, name="B", dtype="float32")
    buffers = tvm.lower(te.create_schedule(b.op), [a, b])["main"].buffer_map.values()
    assert all(not buffer.strides for buffer in buffers)


def test_vectors_side_by_side_have_a_version_of_their_own() -> None:
    a = te.placeholder((te.var("n"), 8), name="A")
    b = te.compute(a.shape, lambda i, j: a[i, j] * 2.0, name="B")
    schedule = te.create_schedule(b.op)
    schedule[b].vectorize(b.op.axis[1])
    lowered = tvm.lower(schedule, [a, b], name="twice")
    branch = tir.transform.SpecializeUnitStrides()(lowered)["twice"].body
    assert isinstance(branch, tir.IfThenElse)
    last = {buffer.strides[1] for buffer in lowered["twice"].buffer_map.values()}
    assert not last & {*variables_of(branch.then_case)}
    assert last <= {*variables_of(branch.else_case)}
    plain = te.create_schedule(b.op)
    same = tvm.lower(plain, [a, b], name="twice")
    assert tir.transform.SpecializeUnitStrides()(same)["twice"] is same["twice"]

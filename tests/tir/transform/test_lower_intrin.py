from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.ir import assert_structural_equal
from tvm.ir.op import register_intrin_lowering, register_op
from tvm.tir.expr import Div, FloorDiv, FloorMod, Mod, Ramp
from tvm.tir.interp import interpret
from tvm.tir.stmt import BufferStore, For
from tvm.tir.transform import LowerIntrin

from .checks import apply
from .programs import SERIAL, function, store

X = tir.decl_buffer((64,), "int32", "X")
Y = tir.decl_buffer((64,), "int32", "Y")


def kinds_in(func: tir.PrimFunc) -> set[str]:
    found: set[str] = set()

    def note(node: Any) -> None:
        found.add(node.op.name if isinstance(node, tir.Call) else type(node).__name__)

    tir.stmt_functor.post_order_visit(func.body, note)
    return found


def from_minus_24(value: Any) -> tir.PrimFunc:
    i = tir.Var("i")
    body = tir.BufferStore(Y, value(i), [i + 24])
    return function([X, Y], For(i, -24, 48, SERIAL, body))


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, -1, -2, -3, -8])
@pytest.mark.parametrize("operation", [FloorDiv, FloorMod])
def test_rounding_division_by_constants(operation: Any, divisor: int) -> None:
    func = from_minus_24(lambda i: operation(i, tir.IntImm("int32", divisor)))
    result = apply(LowerIntrin(), func)
    assert not {"FloorDiv", "FloorMod"} & kinds_in(result)
    y = np.zeros(64, "int32")
    interpret(result, y.copy(), y)
    numbers = np.arange(-24, 24)
    expected = numbers // divisor if operation is FloorDiv else numbers % divisor
    np.testing.assert_array_equal(y[:48], expected)


@pytest.mark.parametrize("operation", [FloorDiv, FloorMod])
def test_rounding_division_by_values(operation: Any) -> None:
    a, b = np.meshgrid(np.arange(-4, 4), [-5, -4, -3, -2, -1, 1, 2, 5])
    i = tir.Var("i")
    body = BufferStore(Y, operation(Y[i], X[i]), [i])
    result = apply(LowerIntrin(), function([X, Y], For(i, 0, 64, SERIAL, body)))
    assert not {"FloorDiv", "FloorMod"} & kinds_in(result)
    y = a.reshape(-1).astype("int32")
    x = b.reshape(-1).astype("int32")
    expected = y // x if operation is FloorDiv else y % x
    interpret(result, x, y)
    np.testing.assert_array_equal(y, expected)


def test_division_of_what_is_not_negative_truncates() -> None:
    i = tir.Var("i")
    body = tir.SeqStmt([
        store(Y, i, FloorDiv(i, tir.IntImm("int32", 7))), store(X, i, FloorMod(i, tir.IntImm("int32", 7)))
    ])  # fmt: skip
    after = tir.SeqStmt([
        store(Y, i, Div(i, tir.IntImm("int32", 7))), store(X, i, Mod(i, tir.IntImm("int32", 7)))
    ])  # fmt: skip
    result = apply(LowerIntrin(), function([X, Y], For(i, 0, 64, SERIAL, body)))
    assert_structural_equal(result.body, For(i, 0, 64, SERIAL, after), map_free_vars=True)


def test_division_by_a_power_of_two_shifts() -> None:
    result = apply(LowerIntrin(), from_minus_24(lambda i: FloorDiv(i, tir.IntImm("int32", 8))))
    assert "tir.shift_right" in kinds_in(result) and "Div" not in kinds_in(result)


def test_division_of_vectors() -> None:
    lanes = Ramp(-8, 1, 16)
    body = tir.SeqStmt([
        tir.BufferStore(Y, FloorDiv(lanes, tir.Broadcast(3, 16)), [Ramp(0, 1, 16)]),
        tir.BufferStore(X, FloorMod(lanes, tir.Broadcast(3, 16)), [Ramp(0, 1, 16)]),
    ])  # fmt: skip
    result = apply(LowerIntrin(), function([X, Y], body))
    x, y = np.zeros(64, "int32"), np.zeros(64, "int32")
    interpret(result, x, y)
    np.testing.assert_array_equal(y[:16], np.arange(-8, 8) // 3)
    np.testing.assert_array_equal(x[:16], np.arange(-8, 8) % 3)


@pytest.mark.parametrize("divisor", [tir.IntImm("int32", 7), X[0]])
def test_divisions_of_divisions_grow_by_the_same(divisor: tir.PrimExpr) -> None:
    def size(depth: int) -> int:
        value: tir.PrimExpr = Y[0]
        for _ in range(depth):
            value = FloorMod(FloorDiv(value, divisor), divisor)
        body = BufferStore(Y, value, [0])
        nodes: list[Any] = []
        result = apply(LowerIntrin(), function([X, Y], body))
        tir.stmt_functor.post_order_visit(result.body, nodes.append)
        return len(nodes)

    assert size(8) - size(6) == size(6) - size(4)


def test_facet_of_an_intrinsic_is_applied() -> None:
    register_op("tir.test_twice").set_facets(num_inputs=1, effect=tir.CallEffectKind.Pure)
    register_intrin_lowering("tir.test_twice", "default", f=lambda call: call.args[0] * 2)
    result = apply(
        LowerIntrin(), from_minus_24(lambda i: tir.Call("int32", "tir.test_twice", [i // 2]))
    )
    assert "tir.test_twice" not in kinds_in(result) and "FloorDiv" not in kinds_in(result)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_quotients_of_narrow_integers_stay_narrow(dtype: str) -> None:
    a = te.placeholder((100,), dtype, "a")
    b = te.compute((100,), lambda i: tir.floordiv(a[i] - 100, 7), "b")
    c = te.compute((100,), lambda i: tir.floormod(a[i] - 100, 7), "c")
    run = tvm.build(te.create_schedule([b.op, c.op]), [a, b, c], "llvm")
    data = np.arange(100).astype(dtype)
    arrays = [tvm.nd.array(data), *[tvm.nd.empty((100,), dtype) for _ in "bc"]]
    run(*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), (data - 100) // 7)
    np.testing.assert_array_equal(arrays[2].numpy(), (data - 100) % 7)

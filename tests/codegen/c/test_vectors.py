"""Vectors, memory and control flow in C, against the interpreter: one library for all programs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tests.codegen.llvm.helpers import flat_function
from tests.system_tools import needs_tool
from tvm import tir
from tvm.tir.interp import interpret
from tvm.tir.transform.lanes import LANE_MASKS

from .compiled import build_c

Body = Callable[..., tir.Stmt]
I32, F32 = "int32", "float32"


def const(value: int) -> tir.IntImm:
    return tir.const(value, I32)


def ramp(base: int, stride: int, lanes: int) -> tir.Ramp:
    return tir.Ramp(const(base), const(stride), lanes)


def load(buffer: tir.Buffer, index: tir.PrimExpr) -> tir.BufferLoad:
    return tir.BufferLoad(buffer, [index])


def store(buffer: tir.Buffer, value: tir.PrimExpr, index: tir.PrimExpr) -> tir.BufferStore:
    return tir.BufferStore(buffer, value, [index])


def bytes_of(name: str, dtype: str, value: tir.PrimExpr) -> tir.PrimExpr:
    return tir.call_intrin(dtype, f"tir.{name}", value)


def strided(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    return store(b, load(a, ramp(1, 3, 5)) + tir.Broadcast(load(a, const(2)), 5), ramp(0, 2, 5))


def backwards_in_place(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    return tir.SeqStmt(
        [
            store(a, load(a, ramp(7, -1, 8)), ramp(0, 1, 8)),
            store(b, tir.Broadcast(load(b, const(0)), 4) + load(b, ramp(0, 1, 4)), ramp(0, 1, 4)),
        ]
    )


def scatter_in_place(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    index = tir.Cast("int32x4", load(a, ramp(0, 1, 4)))
    return store(a, load(b, ramp(0, 1, 4)), index % tir.Broadcast(const(4), 4))


def shuffles(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    x, y = load(a, ramp(0, 1, 4)), load(a, ramp(8, 1, 4))
    mixed = tir.Shuffle([x, y], [const(i) for i in (7, 0, 5, 2)])
    one = tir.Shuffle([x + y], [const(2)])
    return store(b, mixed * tir.Broadcast(one, 4), ramp(0, 1, 4))


def halves(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    whole = load(a, ramp(0, 1, 8)) + load(b, ramp(0, 1, 8))
    low, high = tir.vectorlow("float32x4", whole), tir.vectorhigh("float32x4", whole)
    return store(b, tir.vectorcombine("float32x8", high, low), ramp(0, 1, 8))


def masked(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    lanes = ramp(0, 1, 8)
    few, many = lanes < tir.Broadcast(const(5), 8), lanes >= tir.Broadcast(const(2), 8)
    loaded = tir.BufferLoad(a, [ramp(12, 1, 8)], few)
    return tir.BufferStore(b, loaded * tir.Broadcast(tir.const(2.0, F32), 8), [lanes], many)


def nested_ramps(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    index = tir.Ramp(ramp(0, 1, 4), tir.Broadcast(const(8), 4), 2)
    twice = tir.Broadcast(load(a, ramp(3, 1, 4)), 2)
    return store(b, load(a, index) - twice, ramp(0, 1, 8))


def chosen_vector(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    i = tir.Var("i", I32)
    outside = load(a, tir.Ramp(i * 8, const(1), 8))
    value = tir.if_then_else(i < 2, outside, tir.Broadcast(tir.const(-1.0, F32), 8))
    reversed_ = tir.Shuffle([value], [const(7 - lane) for lane in range(8)])
    other = tir.if_then_else(i < 2, reversed_, tir.Broadcast(load(a, const(0)), 8))
    body = store(b, value * other, ramp(0, 1, 8) + tir.Broadcast(i * 8, 8))
    return tir.For(i, 0, 3, tir.ForKind.SERIAL, body)


def let_vector(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    v, s = tir.Var("v", "float32x4"), tir.Var("s", F32)
    inner = tir.Let(s, load(a, const(9)), tir.Broadcast(s * s, 4) + v)
    body = store(b, tir.Let(v, load(a, ramp(4, 1, 4)), inner * v), ramp(0, 1, 4))
    w = tir.Var("w", "float32x4")
    return tir.LetStmt(
        w, load(a, ramp(0, 1, 4)), tir.SeqStmt([body, store(b, w + w, ramp(8, 1, 4))])
    )


def bytes_and_words(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    words = bytes_of("reinterpret", "int32x4", load(a, ramp(0, 1, 4)))
    parts = bytes_of("reinterpret", "int8x16", load(a, ramp(4, 1, 4)))
    whole = bytes_of("reinterpret", "float32x4", parts)
    scalar = bytes_of("reinterpret", I32, tir.Shuffle([parts], [const(i) for i in (8, 9, 10, 11)]))
    total = tir.Cast("float32x4", words >> tir.Broadcast(const(20), 4)) + whole
    return store(b, total + tir.Broadcast(tir.Cast(F32, scalar >> 22), 4), ramp(0, 1, 4))


def wide_elements(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    c = tir.decl_buffer((6,), "float32x4", "C", data=a.data)
    d = tir.decl_buffer((6,), "float32x4", "D", data=b.data)
    one = store(d, load(c, const(1)) * tir.Broadcast(tir.const(2.0, F32), 4), const(2))
    return tir.SeqStmt([one, store(d, load(c, ramp(0, 2, 2)), ramp(0, 1, 2))])


def memory_of_two_types(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    temp = tir.Var("temp", tvm.ir.PointerType(tvm.ir.PrimType(F32)))
    floats = tir.decl_buffer((8,), F32, "floats", data=temp)
    words = tir.decl_buffer((8,), I32, "words", data=temp)
    body = tir.SeqStmt(
        [
            store(floats, load(a, ramp(0, 1, 8)), ramp(0, 1, 8)),
            store(b, load(floats, ramp(7, -1, 8)), ramp(0, 1, 8)),
            store(words, ramp(5, 3, 8), ramp(0, 1, 8)),
            store(words, load(words, const(3)) * 2, const(0)),
            store(b, tir.Cast("float32x8", load(words, ramp(0, 1, 8))), ramp(8, 1, 8)),
        ]
    )
    return tir.Allocate(temp, F32, [const(8)], tir.const(1, "bool"), body)


def loops(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    i, j = tir.Var("i", "int8"), tir.Var("j", "int64")
    count = tir.decl_buffer((1,), I32, "count")
    first = tir.For(
        i, tir.const(100, "int8"), tir.const(28, "int8"), tir.ForKind.SERIAL,
        store(b, load(b, const(0)) + tir.Cast(F32, i), const(0)),
    )  # fmt: skip
    second = tir.For(
        j, tir.const(2, "int64"), tir.Cast("int64", load(count, const(0))), tir.ForKind.SERIAL,
        store(b, load(a, tir.Cast(I32, j)), tir.Cast(I32, j)),
    )  # fmt: skip
    grows = store(count, load(count, const(0)) + 1, const(0))
    body = tir.SeqStmt(
        [
            store(count, const(0), const(0)),
            tir.While(tir.all(load(count, const(0)) < 9, load(a, load(count, const(0))) < 2.0), grows),
            first, second,
        ]
    )  # fmt: skip
    return tir.Allocate(count.data, I32, [const(1)], tir.const(1, "bool"), body)


def constants(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    numbers = np.array([0.1, np.inf, -0.0, 3e-39, -2.5], F32)
    data = tir.Var("data", tvm.ir.PointerType(tvm.ir.PrimType(F32)))
    table = tir.decl_buffer((5,), F32, "table", data=data)
    i = tir.Var("i", I32)
    body = store(b, load(table, i) + load(a, i) * 0.0, i)
    return tir.AllocateConst(
        data, F32, [5], tvm.nd.array(numbers), tir.For(i, 0, 5, tir.ForKind.SERIAL, body)
    )


PROGRAMS: dict[str, Body] = {
    f.__name__: f
    for f in (
        strided, backwards_in_place, scatter_in_place, shuffles, halves, masked, nested_ramps,
        chosen_vector, let_vector, bytes_and_words, wide_elements, memory_of_two_types, loops, constants,
    )
}  # fmt: skip


def functions(noalias: bool = True) -> dict[str, tir.PrimFunc]:
    found = {}
    for name, body in PROGRAMS.items():
        a, b = tir.decl_buffer((24,), F32, "A"), tir.decl_buffer((24,), F32, "B")
        attrs = {"tir.noalias": noalias, "global_symbol": name, LANE_MASKS: True}
        found[name] = flat_function(body, a, b).with_attrs(attrs)
    return found


@pytest.fixture(scope="module", params=["gcc", pytest.param("clang", marks=needs_tool("clang"))])
def library(request: pytest.FixtureRequest) -> tvm.runtime.Module:
    checks = ["-fsanitize=undefined", "-O2"]
    trap = "-fsanitize-undefined-trap-on-error" if request.param == "gcc" else "-fsanitize-trap=all"
    return build_c(tvm.IRModule(functions()), request.param, [*checks, trap])


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_agrees_with_the_interpreter(library: tvm.runtime.Module, name: str) -> None:
    source = np.random.default_rng(4)
    arrays = [source.uniform(0, 9, 24).astype(F32) for _ in range(2)]
    arrays[0][:4] = [1.0, 3.0, 0.0, 2.0]
    expected = [array.copy() for array in arrays]
    func = functions()[name]
    if name not in ("memory_of_two_types", "halves"):
        interpret(func, *expected)
    given = [tvm.nd.array(array) for array in arrays]
    library[name](*given)
    if name == "memory_of_two_types":
        words = np.arange(8) * 3 + 5.0
        words[0] = words[3] * 2
        expected[1][:16] = np.concatenate([arrays[0][7::-1], words])
    elif name == "halves":
        expected[1][:8] = np.roll(arrays[0][:8] + arrays[1][:8], 4)
    for ours, reference in zip(given, expected, strict=True):
        np.testing.assert_array_equal(ours.numpy(), reference)


def test_arguments_may_overlap_if_the_function_does_not_promise_otherwise() -> None:
    module = build_c(tvm.IRModule({"shuffles": functions(noalias=False)["shuffles"]}))
    array = tvm.nd.array(np.arange(24, dtype=F32))
    module["shuffles"](array, array)
    np.testing.assert_array_equal(array.numpy()[:4], np.array([11, 0, 9, 2], F32) * 12)

"""What programs look for in LLVM code: attributes, order, one-bit arguments, results that are truth values."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.topi.arm_cpu.pstate_attributes import SMEAttributes

SVE = "llvm -mtriple=aarch64-linux-gnu -mattr=+sve"


def plus_one(target: str) -> str:
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="b")
    source: str = tvm.build(te.create_schedule(b.op), [a, b], target).get_source("ll")
    return source


def test_functions_name_their_processor() -> None:
    text = plus_one("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake -mattr=+avx512f")
    assert '"target-cpu"="skylake"' in text and '"target-features"="+avx512f"' in text
    assert '"target-cpu"="generic"' in plus_one("llvm -mtriple=aarch64-linux-gnu -mattr=+neon")


@pytest.mark.parametrize("feature", ["+neon", "+sve", "+sme"])
def test_the_range_of_vscale(feature: str) -> None:
    text = plus_one(f"llvm -mtriple=aarch64-linux-gnu -mattr={feature}")
    assert ("vscale_range(1,16)" in text) == (feature != "+neon")


@pytest.mark.parametrize(
    ("key", "mode"),
    [
        (SMEAttributes.STREAMING_MODE, SMEAttributes.StreamingModeValues.ENABLED),
        (SMEAttributes.STREAMING_MODE, SMEAttributes.StreamingModeValues.COMPATIBLE),
        (SMEAttributes.ZA_STORAGE, SMEAttributes.ZAStorageValues.NEW),
        (SMEAttributes.ZA_STORAGE, SMEAttributes.ZAStorageValues.SHARED),
    ],
)
def test_modes_of_the_matrix_extension(key: str, mode: str) -> None:
    @T.prim_func
    def func(a: T.Buffer((16,), "float32"), c: T.Buffer((1,), "float32")) -> None:
        with T.block("extern"):
            T.block_attr({key: mode})
            c[0] = a[0] + T.float32(1)

    text = tvm.build(func, target="llvm -mtriple=aarch64-linux-gnu -mattr=+sme").get_source("ll")
    assert mode in text


def test_functions_stand_in_the_order_of_their_names() -> None:
    def call(name: str) -> tir.PrimFunc:
        v = tir.Var("v", "int32")
        return tir.PrimFunc([v], tir.Evaluate(v)).with_attr("global_symbol", name)

    mod = tvm.IRModule({tvm.ir.GlobalVar(n): call(n) for n in ("Kiwi", "Apple", "Fig")})
    text = tvm.build(mod, target="llvm").get_source("ll")
    found = re.findall(r"^define[^@]*@([a-zA-Z][a-zA-Z0-9_]*)", text, re.MULTILINE)
    assert found == sorted(found) and {"Kiwi", "Apple", "Fig"} <= set(found)


def test_one_bit_arguments_of_intrinsics() -> None:
    a = te.placeholder((4,), "int32", name="a")
    two, no = tir.const(2, "uint32"), tir.const(0, "int1")
    b = te.compute((4,), lambda i: tir.call_llvm_pure_intrin("int32", "llvm.ctlz", two, a[i], no))
    built = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    out = tvm.nd.array(np.zeros(4, "int32"))
    built(tvm.nd.array(np.array([1, 2, 255, 0], "int32")), out)
    assert out.numpy().tolist() == [31, 30, 24, 32]


@pytest.mark.parametrize("target", ["llvm", "stackvm"])
def test_truth_values_are_returned_as_such(target: str) -> None:
    @T.prim_func
    def is_small(v: T.int32) -> T.bool:
        return v < 10

    built = tvm.build(is_small, target=target)
    assert built(0) is True and built(15) is False


def test_volatile_memory() -> None:
    @T.prim_func
    def func(b: T.Buffer((4,), "float32")) -> None:
        data = T.allocate([4], "float32", scope="global")
        T.attr(data, "volatile_scope", 1)
        a = T.Buffer([4], data=data)
        b[0:4] = a.vload([T.Ramp(0, 1, 4)], predicate=T.Broadcast(T.bool(True), 4))

    with pytest.raises(tvm.TVMError, match="masked load intrinsic does not support"):
        tvm.build(func, target="llvm")

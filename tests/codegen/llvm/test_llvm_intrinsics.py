"""Intrinsics of LLVM by name and number, user code in LLVM's language, intrinsics of other targets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.codegen.llvm.intrinsics import INTRINSICS as WRITTEN
from tvm.error import LoweringError
from tvm.script import tir as T
from tvm.target import TargetError
from tvm.target.codegen import llvm_lookup_intrinsic_id
from tvm.tir.intrinsics import INTRINSICS

SIZE = 48
TWICE = """define float @twice(float %x) {
  %r = fadd float %x, %x
  ret float %r
}
"""


def apply_to_lanes(expression: Callable[[Any], Any], lanes: int, target: str = "llvm") -> Any:
    """``expression`` of a vector of ``lanes`` floats, over an array."""
    a, b = [tir.decl_buffer((SIZE,), "float32", name) for name in ("A", "B")]
    i = tir.Var("i", "int32")
    index = tir.Ramp(i * lanes, 1, lanes) if lanes > 1 else i
    store = tir.BufferStore(b, expression(tir.BufferLoad(a, [index])), [index])
    body = tir.For(i, 0, SIZE // lanes, tir.ForKind.SERIAL, store)
    func = tvm.build(tir.PrimFunc([a, b], body, attrs={"tir.noalias": True}), target=target)
    x = np.linspace(0.25, 4, SIZE, dtype="float32")
    out = tvm.nd.array(np.zeros_like(x))
    func(tvm.nd.array(x), out)
    return x, out.numpy()


@pytest.mark.parametrize("lanes", [1, 3, 8, 12, 24])
@pytest.mark.parametrize(
    "name", ["llvm.sqrt", "llvm.sqrt.v8f32", llvm_lookup_intrinsic_id("llvm.sqrt")]
)
@pytest.mark.parametrize("count", [(), (tir.const(1, "uint32"),)])
def test_intrinsic_by_name_or_number(name: Any, lanes: int, count: tuple[Any, ...]) -> None:
    if name == "llvm.sqrt.v8f32":
        lanes = 8
    dtype = f"float32x{lanes}" if lanes > 1 else "float32"
    x, got = apply_to_lanes(lambda v: tir.call_llvm_pure_intrin(dtype, name, *count, v), lanes)
    np.testing.assert_array_equal(got, np.sqrt(x))


def test_intrinsic_of_three_arguments() -> None:
    three = tir.const(3, "uint32")
    x, got = apply_to_lanes(
        lambda v: tir.call_llvm_intrin("float32x8", "llvm.fma", three, v, v, v), 8
    )
    np.testing.assert_allclose(got, x * x + x, rtol=2e-7)


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("llvm.nonsense", "llvm", "unknown intrinsic 'llvm.nonsense'"),
        ("llvm.fma", "llvm", "invalid intrinsic signature"),
        ("sqrt", "llvm", "starts with 'llvm.'"),
        ("llvm.x86.avx.rsqrt.ps.256", "llvm -mtriple=aarch64-linux-gnu", "not one of aarch64"),
        ("llvm.aarch64.neon.abs", "llvm -mtriple=x86_64-linux-gnu", "not one of x86_64"),
        ("llvm.x86.avx512.rsqrt14.ps.512", "llvm -mcpu=haswell", "requires a processor with avx512f"),
    ],
)  # fmt: skip
def test_wrong_intrinsic_is_rejected(name: str, target: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        apply_to_lanes(lambda v: tir.call_llvm_pure_intrin("float32x8", name, v), 8, target)


def test_number_that_stands_for_no_intrinsic_is_rejected() -> None:
    with pytest.raises(TargetError, match="number from llvm_lookup_intrinsic_id, got 99999"):
        apply_to_lanes(lambda v: tir.call_llvm_pure_intrin("float32", 99999, v), 1)


# ---- user code


def twice_by_pragma(code: str) -> None:
    a = te.placeholder((SIZE,), name="a")
    b = te.compute((SIZE,), lambda i: tir.call_pure_extern("float32", "twice", a[i]), name="b")
    s = te.create_schedule(b.op)
    s[b].pragma(s[b].op.axis[0], "import_llvm", code)
    func = tvm.build(s, [a, b], "llvm")
    x = np.arange(SIZE, dtype="float32")
    out = tvm.nd.array(np.zeros_like(x))
    func(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x * 2)


def test_user_code_as_text_and_files(tmp_path: Path) -> None:
    text, bitcode = tmp_path / "twice.ll", tmp_path / "twice.bc"
    text.write_text(TWICE)
    bitcode.write_bytes(llvm.parse_assembly(TWICE).as_bitcode())
    for code in (TWICE, str(text), str(bitcode)):
        twice_by_pragma(code)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("define nonsense\n", "got 'define nonsense'"),
        ("/nowhere/twice.ll", "got '/nowhere/twice.ll': No such file"),
    ],
)
def test_wrong_user_code_is_rejected(code: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        twice_by_pragma(code)


# ---- what an LLVM target has not

# replaced by passes before code is generated
LOWERED_BEFORE = {
    "tir.tvm_call_packed", "tir.tvm_call_cpacked", "tir.tvm_call_trace_packed",
    "tir.tvm_stack_make_array", "tir.tvm_stack_make_shape", "tir.q_multiply_shift",
    "tir.q_multiply_shift_per_axis", "tir.type_annotation", "tir.tvm_thread_context",
    "tir.anylist_resetitem", "tir.anylist_setitem_call_packed",
    "tir.anylist_setitem_call_cpacked", "tir.dma_copy", "tir.dma_wait", "tir.dma_start_group",
    "tir.dma_end_group",
}  # fmt: skip
OF_OTHERS = [
    op.name for op in INTRINSICS.values() if op.name not in WRITTEN and op.name not in LOWERED_BEFORE
]  # fmt: skip


@pytest.mark.parametrize("name", OF_OTHERS)
def test_intrinsic_of_another_target_is_rejected(name: str) -> None:
    count = max(INTRINSICS[name.removeprefix("tir.")].num_inputs, 0)
    # returned, so that the call is not removed as unused
    body = tir.Evaluate(tir.ret(tir.Call("int32", name, [tir.const(0, "int32")] * count)))
    func = tir.PrimFunc([], body, attrs={"global_symbol": "main"})
    with pytest.raises(LoweringError, match=f"target llvm has no code for the intrinsic {name}"):
        tvm.build(func, target="llvm")


def test_vscale_needs_scalable_vectors() -> None:
    out = tir.decl_buffer((1,), "int32", "out")
    func = tir.PrimFunc([out], tir.BufferStore(out, tir.vscale(), [0]))
    with pytest.raises(LoweringError, match="requires scalable vectors"):
        tvm.build(func, target="llvm")
    code = tvm.build(func, target="llvm -mtriple=aarch64-linux-gnu -mattr=+sve")
    assert "rdvl" in code.get_source("asm") or "cntd" in code.get_source("asm")


def test_scripts_call_intrinsics_by_number() -> None:
    @T.prim_func
    def roots(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = T.call_llvm_pure_intrin(
                "float32", T.llvm_lookup_intrinsic_id("llvm.sqrt"), T.uint32(1), A[i]
            )

    found = tvm.nd.array(np.zeros(4, "float32"))
    tvm.build(roots, target="llvm")(tvm.nd.array(np.array([1, 4, 9, 16], "float32")), found)
    np.testing.assert_array_equal(found.numpy(), [1, 2, 3, 4])

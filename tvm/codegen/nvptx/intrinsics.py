"""Intrinsics of kernels as LLVM code; the others are those of processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm.codegen.llvm.intrinsics import INTRINSICS as OF_PROCESSORS
from tvm.codegen.llvm.packed import PACKED
from tvm.codegen.llvm.types import INT32, TYPES
from tvm.error import LoweringError
from tvm.tir.expr import Call, IntImm, StringImm

from .matrix_units import MATRIX_UNITS

if TYPE_CHECKING:
    from .kernel import KernelWriter

Write = Callable[["KernelWriter", Call], Any]

HOST_ONLY = frozenset(PACKED) | {"tir.tvm_static_handle"}
WARP = 32


def _storage_sync(w: KernelWriter, call: Call) -> str:
    scope = call.args[0]
    assert isinstance(scope, StringImm)
    if scope.value.startswith("shared"):
        w.code.do("call void @llvm.nvvm.barrier0()")
    elif scope.value == "warp":
        w.code.do("call void @llvm.nvvm.bar.warp.sync(i32 -1)")
    else:
        raise LoweringError(f"nvptx has no barrier for memory of scope {scope.value}", at=call)
    return "0"


def _shuffle(kind: str, clamp: int) -> Write:
    """The value of another thread of the warp, 32 bits at a time."""

    def write(w: KernelWriter, call: Call) -> str:
        mask, value, lane, width, _ = call.args
        type_, code = TYPES[call.dtype], w.code
        if type_.lanes > 1 or type_.kind in ("pointer", "bool"):
            raise LoweringError(f"warps shuffle numbers, got {call.dtype}", at=call)
        if not isinstance(width, IntImm):
            raise LoweringError(f"warp shuffles need a constant width, got {width}", at=call)
        bounds = (WARP - width.value) << 8 | clamp
        chosen = w.convert(w.visit(lane), lane.dtype, INT32)
        members = w.visit(mask)
        word = f"i{type_.bits}"
        held = w.visit(value)
        if type_.text != word:
            held = code.pure(f"bitcast {type_.text} {held} to {word}")
        parts = []
        for first in range(0, type_.bits, 32):
            part = held if first == 0 else code.pure(f"lshr {word} {held}, {first}")
            if type_.bits != 32:
                part = code.pure(f"{'zext' if type_.bits < 32 else 'trunc'} {word} {part} to i32")
            parts.append(
                code.value(
                    f"call i32 @llvm.nvvm.shfl.sync.{kind}.i32(i32 {members}, i32 {part}, "
                    f"i32 {chosen}, i32 {bounds})"
                )
            )
        found = _joined(w, parts, word, type_.bits)
        return found if type_.text == word else code.pure(f"bitcast {word} {found} to {type_.text}")

    return write


def _joined(w: KernelWriter, parts: list[str], word: str, bits: int) -> str:
    """An integer of words of 32 bits, the lowest first."""
    if bits == 32:
        return parts[0]
    if bits < 32:
        return w.code.pure(f"trunc i32 {parts[0]} to {word}")
    low, high = [w.code.pure(f"zext i32 {part} to {word}") for part in parts]
    return w.code.pure(f"or {word} {low}, {w.code.pure(f'shl {word} {high}, 32')}")


def _active_mask(w: KernelWriter, call: Call) -> str:
    return w.code.value('call i32 asm sideeffect "activemask.b32 $0;", "=r"()')


def _atomic_add(w: KernelWriter, call: Call) -> str:
    dtype = call.args[1].dtype
    type_ = TYPES[dtype]
    if type_.kind not in ("signed", "unsigned", "float") or type_.bits < 32 or type_.lanes > 1:
        raise LoweringError(
            f"nvptx has atomic additions of integers and floats of 32 and 64 bits, got {dtype}",
            at=call,
        )
    return str(OF_PROCESSORS["tir.atomic_add"](w, call))


def _dp4a(w: KernelWriter, call: Call) -> str:
    """One instruction where the device has it."""
    a, b, acc = call.args
    if w.module.capability < 61:
        return str(OF_PROCESSORS["tir.dp4a"](w, call))
    words = []
    for factor in (a, b):
        text = w.visit(factor)
        words.append(w.code.pure(f"bitcast {TYPES[factor.dtype].text} {text} to i32"))
    kinds = ".".join(["u32" if factor.dtype.is_uint else "s32" for factor in (a, b)])
    operands = ", ".join([f"i32 {text}" for text in [*words, w.visit(acc)]])
    return w.code.value(f'call i32 asm "dp4a.{kinds} $0, $1, $2, $3;", "=r,r,r,r"({operands})')


def _return(w: KernelWriter, call: Call) -> str:
    w.code.do("ret void")
    w.code.start(w.code.new_label("after"))
    return "0"


INTRINSICS: dict[str, Write] = {
    "tir.tvm_storage_sync": _storage_sync,
    "tir.tvm_warp_shuffle": _shuffle("idx", 0x1F),
    "tir.tvm_warp_shuffle_up": _shuffle("up", 0),
    "tir.tvm_warp_shuffle_down": _shuffle("down", 0x1F),
    "tir.tvm_warp_activemask": _active_mask,
    "tir.atomic_add": _atomic_add,
    "tir.dp4a": _dp4a,
    "tir.ret": _return,
    "tir.prefetch": lambda w, call: "0",
    **MATRIX_UNITS,
}

"""Intrinsics of kernels, as all languages write them; the others are those of C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.codegen.c.arithmetic import bare
from tvm.codegen.c.types import INT32, INT64, TYPES
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.tir.expr import BufferLoad, Call, StringImm, Var

from .language import WriteCall

if TYPE_CHECKING:
    from .kernel import KernelWriter


def _storage_sync(w: KernelWriter, call: Call) -> str:
    scope = call.args[0]
    assert isinstance(scope, StringImm)
    if text := w.language.barrier(scope.value):
        w.code.do(text)
    return "0"


def _same(w: KernelWriter, call: Call) -> str:
    return str(w.visit(call.args[0]))


def _half(is_upper: bool) -> WriteCall:
    def write(w: KernelWriter, call: Call) -> str:
        first = call.args[0].dtype.lanes // 2 if is_upper else 0
        with w.at_lane(str(int(w.lane or 0) + first)):
            return str(w.visit(call.args[0]))

    return write


def _combine(w: KernelWriter, call: Call) -> str:
    half, lane = divmod(int(w.lane or 0), call.args[0].dtype.lanes)
    with w.at_lane(str(lane)):
        return str(w.visit(call.args[half]))


def _lane_mask(w: KernelWriter, call: Call) -> str:
    with w.in_front():
        base, limit = [w.convert(w.visit(arg), arg.dtype, INT64) for arg in call.args]
    return f"({base} + {w.lane} < {limit})"


def _access_ptr(w: KernelWriter, call: Call) -> str:
    kind, data, offset = call.args[:3]
    with w.wrapping(False):
        place = w.visit(offset)
    lanes = "" if kind.dtype.lanes == 1 else f" * {kind.dtype.lanes}"
    space = pointer_space(w, data)
    type_ = TYPES[kind.dtype.element].memory
    return f"(({space}{type_}*){w.visit(data)} + {place}{lanes})"


def _extern(w: KernelWriter, call: Call) -> str:
    """A function of the language, or of text that the program imports."""
    name = call.args[0]
    assert isinstance(name, StringImm)
    text = f"{name.value}({', '.join([bare(w.visit(arg)) for arg in call.args[1:]])})"
    if getattr(call.op, "name", "") == "tir.call_pure_extern":
        return text
    if call.dtype.is_void or call.dtype.is_handle:
        w.code.do(text)
        return "0"
    return w.code.define(TYPES[call.dtype.element].text, "result", text)


def dot_of_bytes(w: KernelWriter, call: Call) -> str:
    """acc + sum of the products of four bytes."""
    a, b, acc = call.args
    left, right = w.lane_texts(a, 4), w.lane_texts(b, 4)
    total = " + ".join([f"(int32_t){x} * {y}" for x, y in zip(left, right, strict=True)])
    with w.wrapping(True):
        return w.operation("+", INT32, f"({total})", w.visit(acc))


def atomic_target(w: KernelWriter, call: Call) -> tuple[str, str, DType]:
    """The address that an atomic operation is on, its address space and the type of its element."""
    address = call.args[0]
    if isinstance(address, Call) and isinstance(address.args[0], BufferLoad):
        buffer = address.args[0].buffer
        return str(w.visit(address)), pointer_space(w, buffer.data), buffer.dtype.element
    if isinstance(address, Call) and getattr(address.op, "name", "") == "tir.tvm_access_ptr":
        space = pointer_space(w, address.args[1])
        return str(w.visit(address)), space, address.args[0].dtype.element
    raise LoweringError("an atomic operation needs the address of an element", at=call)


def pointer_space(w: KernelWriter, data: PrimExpr) -> str:
    """The address space of the memory at a pointer."""
    return w.space(data) if isinstance(data, Var) else w.language.address_space("global")


def _unsupported(what: str) -> WriteCall:
    def write(w: KernelWriter, call: Call) -> str:
        raise LoweringError(f"{w.language.name} has no {what}", at=call)

    return write


COMMON: dict[str, WriteCall] = {
    "tir.tvm_storage_sync": _storage_sync,
    "tir.likely": _same,
    "tir.vectorlow": _half(is_upper=False),
    "tir.vectorhigh": _half(is_upper=True),
    "tir.vectorcombine": _combine,
    "tir.get_active_lane_mask": _lane_mask,
    "tir.tvm_access_ptr": _access_ptr,
    "tir.call_extern": _extern,
    "tir.call_pure_extern": _extern,
    "tir.prefetch": lambda w, call: "0",
    "tir.tvm_warp_shuffle": _unsupported("warp shuffles"),
    "tir.tvm_warp_shuffle_up": _unsupported("warp shuffles"),
    "tir.tvm_warp_shuffle_down": _unsupported("warp shuffles"),
    "tir.tvm_warp_activemask": _unsupported("warps"),
}


def packed_bytes(w: KernelWriter, node: PrimExpr) -> str:
    """Four bytes as one number of 32 bits."""
    if isinstance(node, BufferLoad) and (address := w.address_of_run(node, 4)) is not None:
        return f"(*(const int32_t*)({address}))"
    lanes = w.lane_texts(node, 4)
    parts = [f"((uint32_t)(uint8_t){text} << {8 * place})" for place, text in enumerate(lanes)]
    return f"({' | '.join(parts)})"

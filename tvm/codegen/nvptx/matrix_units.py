"""Products of matrix tiles by a warp, loads of their operands, and copies that go on by themselves.

The instructions of :mod:`tvm.codegen.gpu.ptx` as LLVM's inline assembly:

    %v9 = call { float, float } asm "mma.sync... {$0, $1}, ...", "=f,=f,r,0,1"(i32 %v5, float %v7, float %v8)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm.codegen.gpu.ptx import (
    COMMIT_GROUP,
    MatrixLoad,
    MatrixProduct,
    Registers,
    async_copy,
    number_of_bytes,
    wait_group,
)
from tvm.codegen.llvm.types import INT32, TYPES
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType, PrimType
from tvm.support.dtype import DType
from tvm.tir.expr import BufferLoad, Call, IntImm, Var

if TYPE_CHECKING:
    from .kernel import KernelWriter

_TYPES = {"f32": "float", "f64": "double", "b32": "i32"}


def _address(w: KernelWriter, pointer: PrimExpr, offset: PrimExpr) -> str:
    """The address of an element; offsets count elements of the type that the pointer points to."""
    item = TYPES[_pointee(pointer)].memory
    base = w.visit(pointer)
    return w.code.pure(f"getelementptr {item}, ptr {base}, i64 {w.wide(offset)}")


def _pointee(pointer: PrimExpr) -> DType:
    if isinstance(pointer, Var) and isinstance(pointer.type_annotation, PointerType):
        element = pointer.type_annotation.element_type
        if isinstance(element, PrimType):
            return element.dtype
    if isinstance(pointer, Call) and isinstance(pointer.args[0], BufferLoad):
        return pointer.args[0].buffer.dtype.element
    if isinstance(pointer, Call) and getattr(pointer.op, "name", "") == "tir.tvm_access_ptr":
        return pointer.args[0].dtype.element
    raise LoweringError("the instruction needs a pointer to elements of a known type", at=pointer)


def _shared(w: KernelWriter, address: str) -> str:
    """An address of shared memory as the word that instructions take."""
    local = w.code.pure(f"addrspacecast ptr {address} to ptr addrspace(3)")
    return w.code.pure(f"ptrtoint ptr addrspace(3) {local} to i32")


def _load(w: KernelWriter, address: str, registers: Registers) -> list[str]:
    type_ = _TYPES[registers.kind]
    return [
        f"{type_} {w.code.value(f'load {type_}, ptr {place}, align 4')}"
        for place in _places(w, address, registers)
    ]


def _store(w: KernelWriter, address: str, registers: Registers, result: str) -> None:
    """Store the registers that an instruction gave, as one value or a structure of several."""
    type_ = _TYPES[registers.kind]
    for number, place in enumerate(_places(w, address, registers)):
        value = result
        if registers.count > 1:
            value = w.code.value(f"extractvalue {_result(registers)} {result}, {number}")
        w.code.do(f"store {type_} {value}, ptr {place}, align 4")


def _places(w: KernelWriter, address: str, registers: Registers) -> list[str]:
    type_ = _TYPES[registers.kind]
    return [
        w.code.pure(f"getelementptr {type_}, ptr {address}, i64 {number}")
        for number in range(registers.count)
    ]


def _result(registers: Registers) -> str:
    type_ = _TYPES[registers.kind]
    if registers.count == 1:
        return type_
    return f"{{ {', '.join([type_] * registers.count)} }}"


def _assembly(text: str, result: str, constraints: Sequence[str], operands: Sequence[str]) -> str:
    """A call of inline assembly that may change memory."""
    names = ",".join([*constraints, "~{memory}"])
    return f'call {result} asm sideeffect "{text}", "{names}"({", ".join(operands)})'


def _mma(w: KernelWriter, call: Call) -> str:
    product, pairs = MatrixProduct.of(call), call.args[6:12]
    a, b, c = [_address(w, *pairs[i : i + 2]) for i in (0, 2, 4)]
    given = [
        *_load(w, a, product.a), *_load(w, b, product.b), *_load(w, c, product.c)
    ]  # fmt: skip
    constraints = [
        *[f"={product.c.constraint}"] * product.c.count,
        *[product.a.constraint] * product.a.count,
        *[product.b.constraint] * product.b.count,
        *[str(number) for number in range(product.c.count)],  # c is read where it is written
    ]
    text = _assembly(product.text("$"), _result(product.c), constraints, given)
    _store(w, c, product.c, w.code.value(text))
    return "0"


def _ldmatrix(w: KernelWriter, call: Call) -> str:
    load = MatrixLoad.of(call)
    registers = Registers("b32", load.count)
    target, source = _address(w, *call.args[3:5]), _shared(w, _address(w, *call.args[5:7]))
    constraints = [*["=r"] * load.count, "r"]
    text = _assembly(load.text("$"), _result(registers), constraints, [f"i32 {source}"])
    _store(w, target, registers, w.code.value(text))
    return "0"


def _copy_async(w: KernelWriter, call: Call) -> str:
    target = _shared(w, _address(w, *call.args[:2]))
    source = w.code.pure(f"addrspacecast ptr {_address(w, *call.args[2:4])} to ptr addrspace(1)")
    constraints, operands = ["r", "l"], [f"i32 {target}", f"ptr addrspace(1) {source}"]
    if len(call.args) > 5:
        condition = w.visit(call.args[5])
        if call.args[5].dtype != "bool":
            condition = w.code.pure(f"icmp ne {TYPES[call.args[5].dtype].text} {condition}, 0")
        size = w.code.pure(f"select i1 {condition}, i32 {number_of_bytes(call)}, i32 0")
        constraints.append("r")
        operands.append(f"i32 {size}")
    w.code.do(_assembly(async_copy(call, "$"), "void", constraints, operands))
    return "0"


def _commit_group(w: KernelWriter, call: Call) -> str:
    w.code.do(_assembly(COMMIT_GROUP, "void", [], []))
    return "0"


def _wait_group(w: KernelWriter, call: Call) -> str:
    w.code.do(_assembly(wait_group(call), "void", [], []))
    return "0"


def _mma_fill(w: KernelWriter, call: Call) -> str:
    count, (pointer, offset) = call.args[0], call.args[1:3]
    assert isinstance(count, IntImm)
    item = TYPES[_pointee(pointer)].memory
    address = _address(w, pointer, offset)
    for number in range(count.value):
        place = w.code.pure(f"getelementptr {item}, ptr {address}, i64 {number}")
        w.code.do(f"store {item} zeroinitializer, ptr {place}")
    return "0"


def _mma_store(w: KernelWriter, call: Call) -> str:
    """A warp's tile of 16 x 16 in memory: each thread has pairs of neighbours in rows that are 8 apart."""
    extents = [arg.value for arg in call.args[:2] if isinstance(arg, IntImm)]
    if extents != [16, 16]:
        raise LoweringError(f"mma_store takes tiles of 16 x 16, got {extents}", at=call)
    target, source, offset, stride = call.args[2:6]
    item = TYPES[_pointee(source)].memory
    values, base = _address(w, source, offset), w.visit(target)
    code = w.code
    thread = code.pure("call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    row = code.pure(f"lshr i32 {thread}, 2")
    column = code.pure(f"shl i32 {code.pure(f'and i32 {thread}, 3')}, 1")
    width = w.convert(w.visit(stride), stride.dtype, INT32)
    for number in range(8):
        value = code.value(
            f"load {item}, ptr {code.pure(f'getelementptr {item}, ptr {values}, i64 {number}')}"
        )
        r = code.pure(f"add i32 {row}, {number % 4 // 2 * 8}")
        c = code.pure(f"add i32 {column}, {number // 4 * 8 + number % 2}")
        place = code.pure(f"add i32 {code.pure(f'mul i32 {r}, {width}')}, {c}")
        wide = code.pure(f"sext i32 {place} to i64")
        code.do(
            f"store {item} {value}, ptr {code.pure(f'getelementptr {item}, ptr {base}, i64 {wide}')}"
        )
    return "0"


MATRIX_UNITS = {
    "tir.ptx_mma": _mma,
    "tir.ptx_ldmatrix": _ldmatrix,
    "tir.ptx_cp_async": _copy_async,
    "tir.ptx_commit_group": _commit_group,
    "tir.ptx_wait_group": _wait_group,
    "tir.mma_fill": _mma_fill,
    "tir.mma_store": _mma_store,
}

"""Instructions of NVIDIA's devices that CUDA C++ has no functions for, as assembly in the text.

Products of matrix tiles by a warp (mma.sync), loads of their operands (ldmatrix), and copies from global to shared
memory that go on by themselves (cp.async). Operands are registers of 32 bits, into which the elements of a
thread's arrays are packed in order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm.codegen.c.arithmetic import bare
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.tir.expr import Call, IntImm, StringImm

from .language import WriteCall

if TYPE_CHECKING:
    from .kernel import KernelWriter

# how the intrinsics name the types of elements: the name in PTX and the bits
_TYPES = {
    "fp16": ("f16", 16), "float16": ("f16", 16), "bf16": ("bf16", 16), "tf32": ("tf32", 32),
    "fp32": ("f32", 32), "float32": ("f32", 32), "fp64": ("f64", 64), "float64": ("f64", 64),
    "int8": ("s8", 8), "uint8": ("u8", 8), "int4": ("s4", 4), "uint4": ("u4", 4), "int32": ("s32", 32),
    "e4m3": ("e4m3", 8), "e5m2": ("e5m2", 8),
}  # fmt: skip
_REGISTERS = {"f32": ("float", "f"), "f64": ("double", "d")}  # others are words of 32 bits
WARP = 32


def _text(node: PrimExpr) -> str:
    assert isinstance(node, StringImm)
    return node.value


def _number(node: PrimExpr) -> int:
    if not isinstance(node, IntImm):
        raise LoweringError(f"the instruction needs a constant, got {node}")
    return node.value


def _type(name: str, call: Call) -> tuple[str, int]:
    if name not in _TYPES:
        raise LoweringError(
            f"ptx_mma needs one of the types {', '.join(_TYPES)}, got {name}", at=call
        )
    return _TYPES[name]


class _Operand:
    """The registers of one operand, in the memory of a thread's array."""

    def __init__(self, pointer: str, elements: int, name: str, bits: int) -> None:
        self.c_type, self.constraint = _REGISTERS.get(name, ("uint32_t", "r"))
        wide = 64 if name == "f64" else 32
        self.count = max(elements * bits // wide, 1)
        self.pointer = pointer

    def registers(self, mode: str = "") -> list[str]:
        """The constraints of inline assembly."""
        return [
            f'"{mode}{self.constraint}"((({self.c_type}*)({self.pointer}))[{place}])'
            for place in range(self.count)
        ]


def _names(start: int, count: int) -> str:
    return "{" + ", ".join([f"%{place}" for place in range(start, start + count)]) + "}"


def _address(w: KernelWriter, pointer: PrimExpr, offset: PrimExpr) -> str:
    return f"{w.visit(pointer)} + {w.visit(offset)}"


def _mma(w: KernelWriter, call: Call) -> str:
    shape, a_layout, b_layout, *names = [_text(arg) for arg in call.args[:6]]
    pairs = call.args[6:12]
    m, n, k = [int(extent) for extent in re.findall(r"\d+", shape)]
    a_type, b_type, c_type = [_type(name, call) for name in names]
    pointers = [_address(w, *pairs[i : i + 2]) for i in (0, 2, 4)]
    a = _Operand(pointers[0], m * k // WARP, *a_type)
    b = _Operand(pointers[1], k * n // WARP, *b_type)
    c = _Operand(pointers[2], m * n // WARP, *c_type)
    is_integer = c_type[0] == "s32"
    saturates = ".satfinite" if is_integer and _number(call.args[12]) else ""
    operation = f".{_text(call.args[13])}.popc" if len(call.args) > 13 else ""
    kinds = ".".join([c_type[0], a_type[0], b_type[0], c_type[0]])
    head = f"mma.sync.aligned.{shape}.{a_layout}.{b_layout}{saturates}.{kinds}{operation}"
    after = c.count
    operands = [
        _names(0, c.count), _names(after, a.count), _names(after + a.count, b.count), _names(0, c.count)
    ]  # fmt: skip
    _assembly(
        w, f"{head} {', '.join(operands)};", c.registers("+"), [*a.registers(), *b.registers()]
    )
    return "0"


def _ldmatrix(w: KernelWriter, call: Call) -> str:
    transposed, count, kind = _number(call.args[0]), _number(call.args[1]), _text(call.args[2])
    if kind.lstrip(".") == "b8" and transposed:
        raise LoweringError("cuda has no ldmatrix that transposes bytes", at=call)
    target = _Operand(_address(w, *call.args[3:5]), count * 2, "b16", 16)
    source = f"(uint32_t)__cvta_generic_to_shared({_address(w, *call.args[5:7])})"
    order = ".trans" if transposed else ""
    text = f"ldmatrix.sync.aligned.m8n8.x{count}{order}.shared.b16 {_names(0, count)}, [%{count}];"
    _assembly(w, text, target.registers("="), [f'"r"({source})'], is_volatile=True)
    return "0"


def _copy_async(w: KernelWriter, call: Call) -> str:
    size = _number(call.args[4])
    if size not in (4, 8, 16):
        raise LoweringError(f"ptx_cp_async copies 4, 8 or 16 bytes, got {size}", at=call)
    target = f"(uint32_t)__cvta_generic_to_shared({_address(w, *call.args[:2])})"
    source = _address(w, *call.args[2:4])
    caching = "cg" if size == 16 else "ca"
    text = f"cp.async.{caching}.shared.global [%0], [%1], {size}"
    operands = [f'"r"({target})', f'"l"((const void*)({source}))']
    if len(call.args) > 5:  # with a condition: zeros where it does not hold
        text += ", %2"
        operands.append(f'"r"({w.visit(call.args[5])} ? {size} : 0)')
    _assembly(w, f"{text};", [], operands, is_volatile=True)
    return "0"


def _commit_group(w: KernelWriter, call: Call) -> str:
    _assembly(w, "cp.async.commit_group;", [], [], is_volatile=True)
    return "0"


def _wait_group(w: KernelWriter, call: Call) -> str:
    _assembly(w, f"cp.async.wait_group {_number(call.args[0])};", [], [], is_volatile=True)
    return "0"


def _assembly(
    w: KernelWriter,
    text: str,
    outputs: Sequence[str],
    inputs: Sequence[str],
    is_volatile: bool = False,
) -> None:
    head = "asm volatile" if is_volatile else "asm"
    clobbers = ' : "memory"' if is_volatile else ""
    w.code.do(f'{head}("{text}" : {", ".join(outputs)} : {", ".join(inputs)}{clobbers})')


def _mma_fill(w: KernelWriter, call: Call) -> str:
    count, (pointer, offset) = _number(call.args[0]), call.args[1:3]
    name = w.code.name("place")
    with w.code.block(f"for (int32_t {name} = 0; {name} < {count}; ++{name})"):
        w.code.do(f"({_address(w, pointer, offset)})[{name}] = 0")
    return "0"


def _mma_store(w: KernelWriter, call: Call) -> str:
    """A warp's tile of 16 x 16 in memory: each thread has pairs of neighbours in rows that are 8 apart."""
    rows, columns = _number(call.args[0]), _number(call.args[1])
    if (rows, columns) != (16, 16):
        raise LoweringError(f"mma_store takes tiles of 16 x 16, got {rows} x {columns}", at=call)
    target, source, offset, stride = [w.visit(arg) for arg in call.args[2:6]]
    name = w.code.name("place")
    with w.code.block(f"for (int32_t {name} = 0; {name} < 8; ++{name})"):
        row = f"({name} % 4 / 2 * 8 + (int32_t)threadIdx.x / 4)"
        column = f"({name} / 4 * 8 + (int32_t)threadIdx.x % 4 * 2 + {name} % 2)"
        w.code.do(f"({target})[{row} * {stride} + {column}] = {source}[{bare(offset)} + {name}]")
    return "0"


PTX: dict[str, WriteCall] = {
    "tir.ptx_mma": _mma,
    "tir.ptx_ldmatrix": _ldmatrix,
    "tir.ptx_cp_async": _copy_async,
    "tir.ptx_commit_group": _commit_group,
    "tir.ptx_wait_group": _wait_group,
    "tir.mma_fill": _mma_fill,
    "tir.mma_store": _mma_store,
}

"""Instructions of NVIDIA's devices that CUDA C++ has no functions for, as assembly in the text.

Products of matrix tiles by a warp (mma.sync), loads of their operands (ldmatrix), and copies from global to shared
memory that go on by themselves (cp.async). Operands are registers of 32 bits, into which the elements of a
thread's arrays are packed in order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
# the type of registers in C, and inline assembly's name of them
_REGISTERS = {"f32": ("float", "f"), "f64": ("double", "d"), "b32": ("uint32_t", "r")}
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


@dataclass(frozen=True, slots=True)
class Registers:
    """The registers of one operand."""

    kind: str  # f32, f64 or b32, a word
    count: int

    @staticmethod
    def of(elements: int, name: str, bits: int) -> Registers:
        """What elements of a type are packed into."""
        kind = name if name in ("f32", "f64") else "b32"
        return Registers(kind, max(elements * bits // (64 if name == "f64" else 32), 1))

    @property
    def constraint(self) -> str:
        """How inline assembly names them."""
        return _REGISTERS[self.kind][1]

    @property
    def c_type(self) -> str:
        """The type of one of them in C++."""
        return _REGISTERS[self.kind][0]


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """One ``mma`` instruction: c += a * b."""

    head: str
    a: Registers
    b: Registers
    c: Registers

    @staticmethod
    def of(call: Call) -> MatrixProduct:
        """The instruction of a call of ``ptx_mma``."""
        shape, a_layout, b_layout, *names = [_text(arg) for arg in call.args[:6]]
        m, n, k = [int(extent) for extent in re.findall(r"\d+", shape)]
        a_type, b_type, c_type = [_type(name, call) for name in names]
        saturates = ".satfinite" if c_type[0] == "s32" and _number(call.args[12]) else ""
        operation = f".{_text(call.args[13])}.popc" if len(call.args) > 13 else ""
        kinds = ".".join([c_type[0], a_type[0], b_type[0], c_type[0]])
        return MatrixProduct(
            f"mma.sync.aligned.{shape}.{a_layout}.{b_layout}{saturates}.{kinds}{operation}",
            Registers.of(m * k // WARP, *a_type),
            Registers.of(k * n // WARP, *b_type),
            Registers.of(m * n // WARP, *c_type),
        )

    def text(self, mark: str) -> str:
        """The instruction, whose operands are numbered behind a mark: ``%0`` or ``$0``."""
        a, b, c = self.a.count, self.b.count, self.c.count
        starts = ((0, c), (c, a), (c + a, b), (0, c))
        return f"{self.head} {', '.join([_names(*part, mark) for part in starts])};"


def constraints_of(array: str, registers: Registers, mode: str = "") -> list[str]:
    """The operands of inline assembly for registers in an array."""
    return [f'"{mode}{registers.constraint}"({array}[{place}])' for place in range(registers.count)]


def _constraints(pointer: str, registers: Registers, mode: str = "") -> list[str]:
    """The same where the array is one of other elements."""
    return constraints_of(f"(({registers.c_type}*)({pointer}))", registers, mode)


def _names(start: int, count: int, mark: str) -> str:
    return "{" + ", ".join([f"{mark}{place}" for place in range(start, start + count)]) + "}"


def _address(w: KernelWriter, pointer: PrimExpr, offset: PrimExpr) -> str:
    with w.wrapping(False):
        return f"{w.visit(pointer)} + {w.visit(offset)}"


def _mma(w: KernelWriter, call: Call) -> str:
    product, pairs = MatrixProduct.of(call), call.args[6:12]
    a, b, c = [_address(w, *pairs[i : i + 2]) for i in (0, 2, 4)]
    inputs = [*_constraints(a, product.a), *_constraints(b, product.b)]
    _assembly(w, product.text("%"), _constraints(c, product.c, "+"), inputs)
    return "0"


@dataclass(frozen=True, slots=True)
class MatrixLoad:
    """One ``ldmatrix`` instruction: tiles of 8 x 8 from shared memory, a word of each to a thread."""

    count: int
    is_transposed: bool

    @staticmethod
    def of(call: Call) -> MatrixLoad:
        """The instruction of a call of ``ptx_ldmatrix``."""
        transposed, count, kind = _number(call.args[0]), _number(call.args[1]), _text(call.args[2])
        if kind.lstrip(".") == "b8" and transposed:
            raise LoweringError("there is no ldmatrix that transposes bytes", at=call)
        return MatrixLoad(count, bool(transposed))

    def text(self, mark: str) -> str:
        """The instruction, whose operands are numbered behind a mark: registers, then the address."""
        order = ".trans" if self.is_transposed else ""
        registers = _names(0, self.count, mark)
        return f"ldmatrix.sync.aligned.m8n8.x{self.count}{order}.shared.b16 {registers}, [{mark}{self.count}];"


def _ldmatrix(w: KernelWriter, call: Call) -> str:
    load = MatrixLoad.of(call)
    target = _constraints(_address(w, *call.args[3:5]), Registers("b32", load.count), "=")
    source = f"(uint32_t)__cvta_generic_to_shared({_address(w, *call.args[5:7])})"
    _assembly(w, load.text("%"), target, [f'"r"({source})'], is_volatile=True)
    return "0"


def async_copy(call: Call, mark: str) -> str:
    """The instruction of a call of ``ptx_cp_async``; operands are both addresses and the bytes to read."""
    size = number_of_bytes(call)
    caching = "cg" if size == 16 else "ca"
    read = f", {mark}2" if len(call.args) > 5 else ""  # zeros where the condition does not hold
    return f"cp.async.{caching}.shared.global [{mark}0], [{mark}1], {size}{read};"


def number_of_bytes(call: Call) -> int:
    """How many bytes a call of ``ptx_cp_async`` copies."""
    size = _number(call.args[4])
    if size not in (4, 8, 16):
        raise LoweringError(f"ptx_cp_async copies 4, 8 or 16 bytes, got {size}", at=call)
    return size


def _copy_async(w: KernelWriter, call: Call) -> str:
    text, size = async_copy(call, "%"), number_of_bytes(call)
    target = f"(uint32_t)__cvta_generic_to_shared({_address(w, *call.args[:2])})"
    operands = [f'"r"({target})', f'"l"((const void*)({_address(w, *call.args[2:4])}))']
    if len(call.args) > 5:
        operands.append(f'"r"({w.visit(call.args[5])} ? {size} : 0)')
    _assembly(w, text, [], operands, is_volatile=True)
    return "0"


def _commit_group(w: KernelWriter, call: Call) -> str:
    _assembly(w, COMMIT_GROUP, [], [], is_volatile=True)
    return "0"


COMMIT_GROUP = "cp.async.commit_group;"


def wait_group(call: Call) -> str:
    """The instruction of a call of ``ptx_wait_group``."""
    return f"cp.async.wait_group {_number(call.args[0])};"


def _wait_group(w: KernelWriter, call: Call) -> str:
    _assembly(w, wait_group(call), [], [], is_volatile=True)
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
    with w.wrapping(False):
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

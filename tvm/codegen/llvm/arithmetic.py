"""Arithmetic, comparisons, logic and conversions as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm.tir.expr as exprs
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.constants import wrap
from tvm.tir.fold import truncated
from tvm.tir.intrinsics import INTRINSICS

from .code import Code
from .narrow_float import narrow, widen
from .types import (
    BOOL,
    FLOAT32,
    TYPES,
    float_text,
    integer_text,
    is_constant,
    mask_type,
    splat,
    vector_text,
)


def _binary(integer: str, floating: str) -> Callable[[Any, exprs.BinaryOpExpr], str]:
    """A method for an operation that may overflow."""

    def write(self: ArithmeticWriter, node: exprs.BinaryOpExpr) -> str:
        a = self.visit(node.a)
        b = self.visit(node.b)
        type_ = TYPES[node.dtype]
        kind = type_.kind
        if kind == "signed":
            return self.code.pure(f"{integer}{self.no_wrap} {type_.text} {a}, {b}")
        if kind == "float":
            return self.code.pure(f"{floating}{self.fast} {type_.text} {a}, {b}")
        if kind == "narrow":
            return self.narrow_operation(f"{floating}{self.fast}", node.dtype, a, b)
        return self.code.pure(f"{integer} {type_.text} {a}, {b}")

    return write


def _comparison(signed: str, unsigned: str, floating: str) -> Callable[[Any, exprs.CmpExpr], str]:
    def write(self: ArithmeticWriter, node: exprs.CmpExpr) -> str:
        dtype = node.a.dtype
        a = self.visit(node.a)
        b = self.visit(node.b)
        type_ = TYPES[dtype]
        if type_.kind == "float":
            return self.code.pure(f"fcmp {floating} {type_.text} {a}, {b}")
        if type_.kind == "narrow":
            a, b = widen(self.code, a, dtype), widen(self.code, b, dtype)
            wide = TYPES[FLOAT32.with_lanes(dtype.lanes)].text
            return self.code.pure(f"fcmp {floating} {wide} {a}, {b}")
        predicate = signed if type_.kind == "signed" else unsigned
        return self.code.pure(f"icmp {predicate} {type_.text} {a}, {b}")

    return write


class ArithmeticWriter(Visitor):
    """Writes expressions without memory; ``visit`` returns the operand that holds the value."""

    code: Code
    fast: str  # fast-math flags with a blank before them
    # Loop variables, indices and conditions on them never overflow: that lets LLVM widen addresses.
    # Data wraps around, as in numpy.
    no_wrap: str

    def visit_int_imm(self, node: exprs.IntImm) -> str:
        return integer_text(node.dtype, node.value)

    def visit_float_imm(self, node: exprs.FloatImm) -> str:
        return float_text(node.dtype, node.value)

    visit_add = _binary("add", "fadd")
    visit_sub = _binary("sub", "fsub")
    visit_mul = _binary("mul", "fmul")

    visit_eq = _comparison("eq", "eq", "oeq")
    visit_ne = _comparison("ne", "ne", "une")
    visit_lt = _comparison("slt", "ult", "olt")
    visit_le = _comparison("sle", "ule", "ole")
    visit_gt = _comparison("sgt", "ugt", "ogt")
    visit_ge = _comparison("sge", "uge", "oge")

    # ---- division

    def visit_div(self, node: exprs.Div) -> str:
        return self._divide(node, "sdiv", "udiv", "fdiv")

    def visit_mod(self, node: exprs.Mod) -> str:
        return self._divide(node, "srem", "urem", "frem")

    def _divide(self, node: exprs.BinaryOpExpr, signed: str, unsigned: str, floating: str) -> str:
        a = self.visit(node.a)
        b = self.visit(node.b)
        type_ = TYPES[node.dtype]
        if type_.kind == "float":
            return self.code.pure(f"{floating}{self.fast} {type_.text} {a}, {b}")
        if type_.kind == "narrow":
            return self.narrow_operation(f"{floating}{self.fast}", node.dtype, a, b)
        name = signed if type_.kind == "signed" else unsigned
        divisor, rejected = self._divisor(node, b)
        found = self.code.pure(f"{name} {type_.text} {a}, {divisor}")
        return self._mended(node, name, found, rejected, a, b)

    def _divisor(self, node: exprs.BinaryOpExpr, b: str) -> tuple[str, str | None]:
        """The divisor with 1 in place of those that trap, and which lanes these are.

        They are zero and, as the least number divided by it has no place, -1.
        """
        type_ = TYPES[node.dtype]
        value = _constant(node.b)
        if value is not None and value not in (0, -1):
            return b, None
        mask, text = mask_type(type_.lanes), type_.text
        if type_.kind == "signed":
            above = self.code.pure(f"add {text} {b}, {splat(type_, '1')}")
            rejected = self.code.pure(f"icmp ult {text} {above}, {splat(type_, '2')}")
        else:
            rejected = self.code.pure(f"icmp eq {text} {b}, {splat(type_, '0')}")
        one = splat(type_, "1")
        safe = self.code.pure(f"select {mask} {rejected}, {text} {one}, {text} {b}")
        return safe, rejected

    def _mended(
        self, node: exprs.BinaryOpExpr, name: str, found: str, rejected: str | None, a: str, b: str
    ) -> str:
        """A quotient by the true divisor; a remainder of division by 1 is right as it is."""
        if rejected is None or name.endswith("rem"):
            return found
        type_ = TYPES[node.dtype]
        mask, text = mask_type(type_.lanes), type_.text
        other = self.code.pure(f"mul {text} {a}, {b}")  # 0, or -a
        return self.code.pure(f"select {mask} {rejected}, {text} {other}, {text} {found}")

    def visit_floor_div(self, node: exprs.FloorDiv) -> str:
        type_ = TYPES[node.dtype]
        if type_.kind == "float":
            quotient = self._divide(node, "", "", "fdiv")
            return self.intrinsic("llvm.floor", node.dtype, quotient)
        if type_.kind != "signed":
            return self._divide(node, "", "udiv", "fdiv")
        a, b, text = self.visit(node.a), self.visit(node.b), type_.text
        if (shift := _power_of_two(node.b)) is not None:
            return self.code.pure(f"ashr {text} {a}, {splat(type_, str(shift))}")
        c, rejected = self._divisor(node, b)
        quotient = self.code.pure(f"sdiv {text} {a}, {c}")
        wrong = self._rounded_up(text, type_.lanes, self.code.pure(f"srem {text} {a}, {c}"), c)
        down = self.code.pure(f"sext {mask_type(type_.lanes)} {wrong} to {text}")
        found = self.code.pure(f"add {text} {quotient}, {down}")
        return self._mended(node, "sdiv", found, rejected, a, b)

    def visit_floor_mod(self, node: exprs.FloorMod) -> str:
        type_ = TYPES[node.dtype]
        if type_.kind == "float":
            # a - floor(a / b) * b has b's sign
            quotient = self.intrinsic("llvm.floor", node.dtype, self._divide(node, "", "", "fdiv"))
            a, b = self.visit(node.a), self.visit(node.b)
            whole = self.code.pure(f"fmul {type_.text} {quotient}, {b}")
            return self.code.pure(f"fsub {type_.text} {a}, {whole}")
        if type_.kind != "signed":
            return self._divide(node, "", "urem", "frem")
        a, b, text = self.visit(node.a), self.visit(node.b), type_.text
        if (shift := _power_of_two(node.b)) is not None:
            return self.code.pure(f"and {text} {a}, {splat(type_, str((1 << shift) - 1))}")
        b, _ = self._divisor(node, b)
        rest = self.code.pure(f"srem {text} {a}, {b}")
        wrong = self._rounded_up(text, type_.lanes, rest, b)
        moved = self.code.pure(f"add {text} {rest}, {b}")
        mask = mask_type(type_.lanes)
        return self.code.pure(f"select {mask} {wrong}, {text} {moved}, {text} {rest}")

    def _rounded_up(self, text: str, lanes: int, rest: str, divisor: str) -> str:
        """Whether division towards zero gave more than the floor: rest and divisor differ in sign."""
        zero = "zeroinitializer" if lanes > 1 else "0"
        inexact = self.code.pure(f"icmp ne {text} {rest}, {zero}")
        mixed = self.code.pure(f"xor {text} {rest}, {divisor}")
        opposed = self.code.pure(f"icmp slt {text} {mixed}, {zero}")
        return self.code.pure(f"and {mask_type(lanes)} {inexact}, {opposed}")

    # ---- minimum and maximum

    def visit_min(self, node: exprs.Min) -> str:
        return self._extremum(node, "min")

    def visit_max(self, node: exprs.Max) -> str:
        return self._extremum(node, "max")

    def _extremum(self, node: exprs.BinaryOpExpr, name: str) -> str:
        a, b = self.visit(node.a), self.visit(node.b)
        return self.extremum(name, node.dtype, a, b)

    def extremum(self, name: str, dtype: DType, a: str, b: str) -> str:
        """Min or max of two operands, NaN if either is; beside a constant it is one instruction."""
        type_ = TYPES[dtype]
        text = type_.text
        if type_.kind == "float":
            operands = f"{text} {a}, {text} {b}"
            return self.code.pure(f"call{self.fast} nsz {text} @llvm.{name}imum({operands})")
        if type_.kind == "narrow":
            wide = FLOAT32.with_lanes(dtype.lanes)
            a, b = widen(self.code, a, dtype), widen(self.code, b, dtype)
            return narrow(self.code, self.extremum(name, wide, a, b), dtype)
        letter = "s" if type_.kind == "signed" else "u"
        return self.code.pure(f"call {text} @llvm.{letter}{name}({text} {a}, {text} {b})")

    # ---- logic

    def visit_and(self, node: exprs.And) -> str:
        return self._logical(node, "and")

    def visit_or(self, node: exprs.Or) -> str:
        return self._logical(node, "or")

    def visit_not(self, node: exprs.Not) -> str:
        a = self.visit(node.a)
        type_ = TYPES[node.dtype]
        return self.code.pure(f"xor {type_.text} {a}, {splat(type_, 'true')}")

    def _logical(self, node: exprs.And | exprs.Or, name: str) -> str:
        if node.dtype.lanes == 1 and may_trap(node.b, node.a):
            return self._short_circuit(node, name)
        a = self.visit(node.a)
        b = self.visit(node.b)
        return self.code.pure(f"{name} {TYPES[node.dtype].text} {a}, {b}")

    def _short_circuit(self, node: exprs.And | exprs.Or, name: str) -> str:
        code = self.code
        a = self.visit(node.a)
        origin, other, done = code.label, code.new_label("other"), code.new_label("done")
        code.branch(a, *((other, done) if name == "and" else (done, other)))
        code.start(other)
        with code.branch_scope():
            b = self.visit(node.b)
        last = code.label
        code.jump(done)
        code.start(done)
        known = "false" if name == "and" else "true"
        return code.value(f"phi i1 [ {known}, %{origin} ], [ {b}, %{last} ]")

    def visit_select(self, node: exprs.Select) -> str:
        condition = self.visit(node.condition)
        yes = self.visit(node.true_value)
        no = self.visit(node.false_value)
        text = TYPES[node.dtype].text
        mask = mask_type(node.condition.dtype.lanes)
        return self.code.pure(f"select {mask} {condition}, {text} {yes}, {text} {no}")

    # ---- conversions

    def visit_cast(self, node: exprs.Cast) -> str:
        if type(node.value) is exprs.FloatImm and TYPES[node.dtype].kind in ("signed", "unsigned"):
            # constants are converted here: LLVM leaves open what becomes of those that do not fit
            return integer_text(
                node.dtype, wrap(truncated(node.value.value, node.dtype), node.dtype)
            )
        return self.convert(self.visit(node.value), node.value.dtype, node.dtype)

    def convert(self, operand: str, source: DType, target: DType) -> str:
        """The operand converted to another dtype of as many lanes."""
        if source is target:
            return operand
        old, new = TYPES[source], TYPES[target]
        if old.kind == "narrow":
            wide = FLOAT32.with_lanes(source.lanes)
            return self.convert(widen(self.code, operand, source), wide, target)
        if new.kind == "narrow":
            wide = FLOAT32.with_lanes(target.lanes)
            return narrow(self.code, self.convert(operand, source, wide), target)
        if new.kind == "bool":
            zero = splat(
                old, "0x0" if old.kind == "float" else "null" if old.kind == "pointer" else "0"
            )
            compare = "fcmp une" if old.kind == "float" else "icmp ne"
            return self.code.pure(f"{compare} {old.text} {operand}, {zero}")
        if old.kind == "float" and new.kind in ("signed", "unsigned"):
            return self._truncated(operand, source, target)
        name = _conversion(old.kind, old.bits, new.kind, new.bits)
        if name is None:
            return operand
        return self.code.pure(f"{name} {old.text} {operand} to {new.text}")

    def _truncated(self, operand: str, source: DType, target: DType) -> str:
        """A float as an integer: what does not fit is what the processor makes of it, never undefined."""
        old, new = TYPES[source], TYPES[target]
        if new.kind == "unsigned" and new.bits == 64:
            return self._truncated_unsigned(operand, source, target)
        # smaller numbers wrap around from what int32, or of uint32 int64, can hold
        whole = as_dtype(
            "int32" if new.bits < 32 or (new.kind, new.bits) == ("signed", 32) else "int64"
        )
        whole = whole.with_lanes(target.lanes)
        text = TYPES[whole].text
        raw = self.code.pure(f"fptosi {old.text} {operand} to {text}")
        found = self.code.pure(f"freeze {text} {raw}")
        return self.convert(found, whole, target)

    def _truncated_unsigned(self, operand: str, source: DType, target: DType) -> str:
        """A float as uint64, by way of two halves of its range."""
        old, new = TYPES[source], TYPES[target]
        half = splat(old, float_text(source.element, 2.0**63))
        is_low = self.code.pure(f"fcmp olt {old.text} {operand}, {half}")
        raised = self.code.pure(f"fsub {old.text} {operand}, {half}")
        parts = []
        for part in (operand, raised):
            raw = self.code.pure(f"fptosi {old.text} {part} to {new.text}")
            parts.append(self.code.pure(f"freeze {new.text} {raw}"))
        low, high = parts
        top = splat(new, str(-(1 << 63)))
        high = self.code.pure(f"xor {new.text} {high}, {top}")
        mask = mask_type(new.lanes)
        return self.code.pure(f"select {mask} {is_low}, {new.text} {low}, {new.text} {high}")

    # ---- helpers for subclasses

    def narrow_operation(self, name: str, dtype: DType, a: str, b: str) -> str:
        """A floating-point instruction on bfloat16 or float8 operands, through float."""
        a, b = widen(self.code, a, dtype), widen(self.code, b, dtype)
        wide = TYPES[FLOAT32.with_lanes(dtype.lanes)].text
        return narrow(self.code, self.code.pure(f"{name} {wide} {a}, {b}"), dtype)

    def intrinsic(self, name: str, dtype: DType, *operands: str) -> str:
        """A call of an LLVM intrinsic whose operands have the type of its result."""
        if TYPES[dtype].kind == "narrow":
            wide = FLOAT32.with_lanes(dtype.lanes)
            found = self.intrinsic(name, wide, *[widen(self.code, o, dtype) for o in operands])
            return narrow(self.code, found, dtype)
        text = TYPES[dtype].text
        arguments = ", ".join([f"{text} {operand}" for operand in operands])
        flags = self.fast if TYPES[dtype].kind == "float" else ""
        return self.code.pure(f"call{flags} {text} @{name}({arguments})")

    def broadcast(self, operand: str, dtype: DType) -> str:
        """A scalar operand in each lane of a vector type."""
        type_ = TYPES[dtype]
        if type_.lanes == 1:
            return operand
        if is_constant(operand) and not operand.startswith("@"):
            return splat(type_, operand)
        text, zeros = type_.text, f"{vector_text(type_.lanes, 'i32')} zeroinitializer"
        first = self.code.pure(f"insertelement {text} poison, {type_.scalar} {operand}, i64 0")
        return self.code.pure(f"shufflevector {text} {first}, {text} poison, {zeros}")


def may_trap(node: PrimExpr, known: PrimExpr | None = None) -> bool:
    """Whether evaluating the expression needlessly can go wrong: it reads memory or divides.

    What ``known``, evaluated before, has read can be read again.
    """
    hazards = _hazards(node)
    return bool(hazards) and not hazards <= (_hazards(known) if known is not None else set())


def _hazards(node: PrimExpr) -> set[Any]:
    """Keys of the memory that an expression reads, and of other things that can go wrong."""
    found: set[Any] = set()
    pending: list[Any] = [node]
    while pending:
        current = pending.pop()
        kind = type(current)
        if kind is exprs.BufferLoad:
            found.add((current.buffer.data, *[_position(i) for i in current.indices]))
        elif kind is exprs.Call and current.op is STRUCT_GET:
            # one field of a structure is as safe as the others
            found.add(current.args[0] if isinstance(current.args[0], exprs.Var) else current)
        elif (
            kind is exprs.Call and getattr(current.op, "effect", None) != exprs.CallEffectKind.Pure
        ) or (kind in _DIVISIONS and type(current.b) is not exprs.IntImm):
            found.add(current)
        pending.extend(current.children())
    return found


def _position(index: PrimExpr) -> Any:
    return index.value if isinstance(index, exprs.IntImm) else index


STRUCT_GET = INTRINSICS["tvm_struct_get"]
_DIVISIONS = (exprs.Div, exprs.Mod, exprs.FloorDiv, exprs.FloorMod)


def _constant(node: PrimExpr) -> int | None:
    """The value of a constant or of all lanes of one."""
    if type(node) is exprs.Broadcast:
        node = node.value
    return node.value if type(node) is exprs.IntImm else None


def _power_of_two(node: PrimExpr) -> int | None:
    """The exponent of a constant divisor that is a power of two."""
    value = _constant(node)
    if value is None or value <= 0 or value & (value - 1):
        return None
    return value.bit_length() - 1


def _conversion(old: str, old_bits: int, new: str, new_bits: int) -> str | None:
    """The LLVM instruction for a conversion; None if the bits stay the same."""
    if old == "float":
        if new == "float":
            return "fpext" if new_bits > old_bits else "fptrunc"
        raise LoweringError(f"the LLVM code generator cannot convert {old} to {new}")
    if new == "float":
        return "sitofp" if old == "signed" else "uitofp"
    if "pointer" in (old, new):
        if old == new:
            return None
        return "ptrtoint" if old == "pointer" else "inttoptr"
    if old == "bool":
        return "zext"
    if new_bits == old_bits:
        return None
    if new_bits < old_bits:
        return "trunc"
    if old not in ("signed", "unsigned"):
        raise LoweringError(f"the LLVM code generator cannot convert {old} to {new}")
    return "sext" if old == "signed" else "zext"


__all__ = ["BOOL", "ArithmeticWriter", "may_trap"]

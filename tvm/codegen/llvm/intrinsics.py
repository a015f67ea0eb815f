"""Intrinsics as LLVM code: one row of :data:`INTRINSICS` each.

A row is a function of the writer and the call; it returns the operand that holds the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm.codegen.vector_math import next_short_float
from tvm.error import LoweringError
from tvm.support.dtype import DType
from tvm.tir.expr import Broadcast, BufferLoad, Call, FloatImm, IntImm, StringImm

from .memory import require_vectors
from .narrow_float import narrow, widen
from .packed import PACKED
from .processor_intrinsic import llvm_intrinsic
from .types import FLOAT32, INT32, TYPES, mask_type, splat

if TYPE_CHECKING:
    from .statements import FunctionWriter

Write = Callable[["FunctionWriter", Call], Any]


def _llvm(name: str) -> Write:
    """An LLVM intrinsic on operands of the result's type."""

    def write(w: FunctionWriter, call: Call) -> str:
        return w.intrinsic(name, call.dtype, *[w.visit(arg) for arg in call.args])

    return write


def _integer(name: str, extra: str = "") -> Write:
    """An LLVM intrinsic on the argument's type, converted to the result's."""

    def write(w: FunctionWriter, call: Call) -> str:
        dtype = call.args[0].dtype
        text = TYPES[dtype].text
        found = w.code.pure(f"call {text} @{name}({text} {w.visit(call.args[0])}{extra})")
        return w.convert(found, dtype, call.dtype)

    return write


def _bitwise(name: str) -> Write:
    def write(w: FunctionWriter, call: Call) -> str:
        a, b = [w.visit(arg) for arg in call.args]
        return w.code.pure(f"{name} {TYPES[call.dtype].text} {a}, {b}")

    return write


def _shift(name: str, signed: str) -> Write:
    """A shift; one by the number of bits, or more, leaves no bit but the sign's."""

    def write(w: FunctionWriter, call: Call) -> str:
        type_ = TYPES[call.dtype]
        text, most = type_.text, splat(type_, str(type_.bits - 1))
        a, b = [w.visit(arg) for arg in call.args]
        chosen = signed if type_.kind == "signed" else name
        distance = call.args[1].value if type(call.args[1]) is Broadcast else call.args[1]
        if type(distance) is IntImm and 0 <= distance.value < type_.bits:
            return w.code.pure(f"{chosen} {text} {a}, {b}")
        if chosen == "ashr":
            held = w.code.pure(f"call {text} @llvm.umin({text} {b}, {text} {most})")
            return w.code.pure(f"ashr {text} {a}, {held}")
        moved = w.code.pure(f"{chosen} {text} {a}, {b}")
        is_short = w.code.pure(f"icmp ule {text} {b}, {most}")
        nothing, mask = splat(type_, "0"), mask_type(type_.lanes)
        return w.code.pure(f"select {mask} {is_short}, {text} {moved}, {text} {nothing}")

    return write


def _bitwise_not(w: FunctionWriter, call: Call) -> str:
    type_ = TYPES[call.dtype]
    ones = splat(type_, "true" if type_.kind == "bool" else "-1")
    return w.code.pure(f"xor {type_.text} {w.visit(call.args[0])}, {ones}")


def _absolute(w: FunctionWriter, call: Call) -> str:
    type_ = TYPES[call.dtype]
    operand = w.visit(call.args[0])
    if type_.kind in ("float", "narrow"):
        return w.intrinsic("llvm.fabs", call.dtype, operand)
    if type_.kind != "signed":
        return str(operand)
    return w.code.pure(f"call {type_.text} @llvm.abs({type_.text} {operand}, i1 false)")


# ---- mathematical functions


def _math(name: str, libm: str | None = None) -> Write:
    """A function of floats: our own polynomial, or else the C library's."""

    def write(w: FunctionWriter, call: Call) -> str:
        operands = [w.visit(arg) for arg in call.args]
        return math_call(w, name, libm or name, call.dtype, operands)

    return write


def math_call(w: FunctionWriter, name: str, libm: str, dtype: DType, operands: list[str]) -> str:
    """The value of a mathematical function on operands of type ``dtype``."""
    type_ = TYPES[dtype]
    wide = FLOAT32.with_lanes(dtype.lanes)
    if type_.kind == "narrow":
        widened = [widen(w.code, o, dtype) for o in operands]
        return narrow(w.code, math_call(w, name, libm, wide, widened), dtype)
    if type_.bits == 16:
        widened = [w.convert(o, dtype, wide) for o in operands]
        return w.convert(math_call(w, name, libm, wide, widened), wide, dtype)
    if w.module.has_math(name, dtype):
        symbol = w.module.math_function(name, dtype)
        arguments = ", ".join([f"{type_.text} {o}" for o in operands])
        return w.code.pure(f"call {type_.text} @{symbol}({arguments})")
    return _libm(w, libm + ("f" if type_.bits == 32 else ""), dtype, operands)


def _libm(w: FunctionWriter, name: str, dtype: DType, operands: list[str]) -> str:
    """A function of the C library, lane by lane."""
    type_ = TYPES[dtype]
    scalar = type_.scalar
    w.module.declare_math(name, scalar, len(operands), w.name)
    results = []
    for lane in range(type_.lanes):
        lanes = [o if type_.lanes == 1 else w.lane(o, type_, lane) for o in operands]
        arguments = ", ".join([f"{scalar} {o}" for o in lanes])
        results.append(w.code.value(f"call {scalar} @{name}({arguments})"))
    return results[0] if type_.lanes == 1 else w.vector_of(results, dtype)


def _sigmoid(w: FunctionWriter, call: Call) -> str:
    operand, dtype = w.visit(call.args[0]), call.dtype
    if TYPES[dtype].bits != 64 or w.module.has_math("sigmoid", dtype):
        return math_call(w, "sigmoid", "sigmoid", dtype, [operand])
    # by way of exp(-|x|), which cannot overflow
    type_ = TYPES[dtype]
    one, zero = splat(type_, "0x3FF0000000000000"), splat(type_, "0x0")
    size = w.intrinsic("llvm.fabs", dtype, operand)
    power = math_call(w, "exp", "exp", dtype, [w.code.pure(f"fneg {type_.text} {size}")])
    below = w.code.pure(f"fadd {type_.text} {power}, {one}")
    is_negative = w.code.pure(f"fcmp olt {type_.text} {operand}, {zero}")
    mask = mask_type(type_.lanes)
    above = w.code.pure(f"select {mask} {is_negative}, {type_.text} {power}, {type_.text} {one}")
    return w.code.pure(f"fdiv {type_.text} {above}, {below}")


def _rsqrt(w: FunctionWriter, call: Call) -> str:
    return _reciprocal_root(w, call.dtype, w.visit(call.args[0]))


def _reciprocal_root(w: FunctionWriter, dtype: DType, operand: str) -> str:
    type_ = TYPES[dtype]
    wide = FLOAT32.with_lanes(dtype.lanes)
    if type_.kind == "narrow":
        found = _reciprocal_root(w, wide, widen(w.code, operand, dtype))
        return narrow(w.code, found, dtype)
    if type_.bits == 16:
        return w.convert(_reciprocal_root(w, wide, w.convert(operand, dtype, wide)), wide, dtype)
    root = w.intrinsic("llvm.sqrt", dtype, operand)
    one = splat(type_, "0x3FF0000000000000")
    return w.code.pure(f"fdiv {type_.text} {one}, {root}")


def _exp10(w: FunctionWriter, call: Call) -> str:
    """10**x through pow: the C library's exp10 is an extension."""
    if TYPES[call.dtype].bits != 64 or w.module.has_math("exp10", call.dtype):
        return math_call(w, "exp10", "exp10", call.dtype, [w.visit(call.args[0])])
    ten = splat(TYPES[call.dtype], "0x4024000000000000")
    return math_call(w, "pow", "pow", call.dtype, [ten, w.visit(call.args[0])])


def _pow(w: FunctionWriter, call: Call) -> str:
    """Small whole exponents are products, at most two roundings off."""
    x, y = call.args
    exponent = y.value if isinstance(y, Broadcast) else y
    type_ = TYPES[call.dtype]
    is_plain = type_.kind == "float" and type_.bits in (32, 64)
    if not is_plain or type(exponent) is not FloatImm or exponent.value not in (2.0, 3.0, 4.0):
        return str(_math("pow")(w, call))
    operand = w.visit(x)
    square = w.code.pure(f"fmul {type_.text} {operand}, {operand}")
    if exponent.value == 2.0:
        return square
    return w.code.pure(
        f"fmul {type_.text} {square}, {operand if exponent.value == 3.0 else square}"
    )


def _ldexp(w: FunctionWriter, call: Call) -> str:
    """x * 2**n, with n of any integer type."""
    dtype = call.dtype
    ints = INT32.with_lanes(dtype.lanes)
    exponent = w.convert(w.visit(call.args[1]), call.args[1].dtype, ints)
    # 16-bit floats go through float32, which holds all results exactly before the rounding
    wide = dtype if dtype.bits >= 32 else FLOAT32.with_lanes(dtype.lanes)
    text = TYPES[wide].text
    operand = w.convert(w.visit(call.args[0]), dtype, wide)
    found = w.code.pure(f"call {text} @llvm.ldexp({text} {operand}, {TYPES[ints].text} {exponent})")
    return w.convert(found, wide, dtype)


def _nextafter(w: FunctionWriter, call: Call) -> str:
    if call.dtype.bits == 16:
        return str(w.visit(next_short_float(*call.args)))
    return str(_math("nextafter")(w, call))


def _classify(predicate: str) -> Write:
    """A question about a float, by its distance from zero."""

    def write(w: FunctionWriter, call: Call) -> str:
        dtype = call.args[0].dtype
        operand = w.visit(call.args[0])
        if TYPES[dtype].kind == "narrow":
            operand, dtype = widen(w.code, operand, dtype), FLOAT32.with_lanes(dtype.lanes)
        type_ = TYPES[dtype]
        if type_.kind != "float":
            return splat(TYPES[call.dtype], "true" if predicate == "one" else "false")
        if predicate == "uno":
            return w.code.pure(f"fcmp uno {type_.text} {operand}, {operand}")
        distance = w.intrinsic("llvm.fabs", dtype, operand)
        infinity = splat(type_, "0xH7C00" if type_.bits == 16 else "0x7FF0000000000000")
        return w.code.pure(f"fcmp {predicate} {type_.text} {distance}, {infinity}")

    return write


# ---- choices


def _if_then_else(w: FunctionWriter, call: Call) -> str:
    """Only the chosen value is evaluated."""
    condition, yes, no = call.args
    text = TYPES[call.dtype].text
    if condition.dtype.lanes > 1:
        raise LoweringError("if_then_else of a vector condition must be lowered", at=call)
    code = w.code
    test = w.visit(condition)
    then, other, done = code.new_label("then"), code.new_label("else"), code.new_label("end")
    code.branch(test, then, other)
    code.start(then)
    with code.branch_scope():
        first = w.visit(yes)
    last_of_then = code.label
    code.jump(done)
    code.start(other)
    with code.branch_scope():
        second = w.visit(no)
    last_of_other = code.label
    code.jump(done)
    code.start(done)
    return code.value(f"phi {text} [ {first}, %{last_of_then} ], [ {second}, %{last_of_other} ]")


def _likely(w: FunctionWriter, call: Call) -> str:
    operand = w.visit(call.args[0])
    if call.dtype.lanes > 1:
        return str(operand)
    return w.code.pure(f"call i1 @llvm.expect(i1 {operand}, i1 true)")


def _assume(w: FunctionWriter, call: Call) -> str:
    w.code.do(f"call void @llvm.assume(i1 {w.visit(call.args[0])})")
    return "true"


def _same(w: FunctionWriter, call: Call) -> str:
    return str(w.visit(call.args[0]))


def _return(w: FunctionWriter, call: Call) -> str:
    value = call.args[0]
    operand = w.visit(value)
    if w.frame.result == "i32" and value.dtype.is_int:
        operand = w.convert(operand, value.dtype, INT32)
        w.code.do(f"ret i32 {operand}")
    else:
        w.code.do(f"ret {TYPES[value.dtype].text} {operand}")
    w.code.start(w.code.new_label("after"))
    return "0"


# ---- bits and vectors


def _reinterpret(w: FunctionWriter, call: Call) -> str:
    source = call.args[0]
    old, new = TYPES[source.dtype], TYPES[call.dtype]
    operand = w.visit(source)
    if old.text == new.text:
        return str(operand)
    if "pointer" in (old.kind, new.kind):
        return w.convert(operand, source.dtype, call.dtype)
    return w.code.pure(f"bitcast {old.text} {operand} to {new.text}")


def _large_uint(w: FunctionWriter, call: Call) -> str:
    low, high = [arg.value for arg in call.args if isinstance(arg, IntImm)]
    return str(high << 32 | low)


def _half(upper: bool) -> Write:
    def write(w: FunctionWriter, call: Call) -> str:
        source = call.args[0].dtype
        half = source.lanes // 2
        start = half if upper else 0
        operand = w.visit(call.args[0])
        return w.shuffle(source, operand, operand, list(range(start, start + half)))

    return write


def _combine(w: FunctionWriter, call: Call) -> str:
    a, b = call.args
    return w.shuffle(a.dtype, w.visit(a), w.visit(b), list(range(2 * a.dtype.lanes)))


def _dp4a(w: FunctionWriter, call: Call) -> str:
    """acc + sum of the products of four bytes."""
    a, b, acc = call.args
    wide = INT32.with_lanes(4)
    text = TYPES[wide].text
    left = w.convert(w.visit(a), a.dtype, wide)
    right = w.convert(w.visit(b), b.dtype, wide)
    product = w.code.pure(f"mul {text} {left}, {right}")
    total = w.code.pure(f"call i32 @llvm.vector.reduce.add({text} {product})")
    return w.code.pure(f"add i32 {total}, {w.visit(acc)}")


def _lane_mask(w: FunctionWriter, call: Call) -> str:
    require_vectors(w.module, call)
    base, limit = call.args
    text = TYPES[base.dtype].text
    mask = mask_type(call.dtype.lanes)
    start, end = w.visit(base), w.visit(limit)
    if base.dtype.is_int:
        # LLVM compares without signs
        rest = end if start == "0" else w.code.pure(f"sub nsw {text} {end}, {start}")
        start, end = "0", w.code.pure(f"call {text} @llvm.smax({text} {rest}, {text} 0)")
    return w.code.pure(f"call {mask} @llvm.get.active.lane.mask({text} {start}, {text} {end})")


# ---- memory


def _address_of(w: FunctionWriter, call: Call) -> str:
    load = call.args[0]
    assert isinstance(load, BufferLoad)
    if len(load.indices) != 1:
        raise LoweringError("address_of needs a flattened buffer", at=call)
    return w.element(load.buffer, load.indices[0])


def _access_ptr(w: FunctionWriter, call: Call) -> str:
    kind, data, offset = call.args[:3]
    item, index = TYPES[kind.dtype].memory, TYPES[offset.dtype].text
    return w.code.pure(
        f"getelementptr inbounds {item}, ptr {w.visit(data)}, {index} {w.index(offset)}"
    )


def _is_null(w: FunctionWriter, call: Call) -> str:
    address = call.args[0]
    text, null = w.visit(address), "null" if address.dtype.is_handle else "0"
    return w.code.pure(f"icmp eq {TYPES[address.dtype].text} {text}, {null}")


def _prefetch(w: FunctionWriter, call: Call) -> str:
    address, write, locality, kind = [w.visit(arg) for arg in call.args]
    w.code.do(f"call void @llvm.prefetch(ptr {address}, i32 {write}, i32 {locality}, i32 {kind})")
    return "0"


def _atomic_add(w: FunctionWriter, call: Call) -> str:
    address, value = call.args
    type_ = TYPES[value.dtype]
    if type_.kind not in ("signed", "unsigned", "float") or type_.lanes > 1:
        raise LoweringError(
            f"there are atomic additions of integers and IEEE floats, got {value.dtype}", at=call
        )
    name = "fadd" if type_.kind == "float" else "add"
    pointer, operand = w.visit(address), w.visit(value)
    return w.code.value(f"atomicrmw {name} ptr {pointer}, {type_.text} {operand} monotonic")


# ---- calls of functions


def _extern(w: FunctionWriter, call: Call) -> str:
    name = call.args[0]
    assert isinstance(name, StringImm)
    return w.call_symbol(name.value, call, call.args[1:])


def _vscale(w: FunctionWriter, call: Call) -> str:
    """How many times 128 bits a scalable vector register has."""
    require_vectors(w.module, call)
    text = TYPES[call.dtype].text
    return w.code.pure(f"call {text} @llvm.vscale.{text}()")


def _nothing(w: FunctionWriter, call: Call) -> str:
    return "0"


def _static_handle(w: FunctionWriter, call: Call) -> str:
    return w.module.static_handle()


_LIBM = (
    "exp exp2 log log2 log10 log1p tanh erf sin cos tan sinh cosh asin acos atan asinh acosh atanh "
    "atan2 hypot"
)

INTRINSICS: dict[str, Write] = {
    **{f"tir.{name}": _math(name) for name in _LIBM.split()},
    "tir.pow": _pow,
    "tir.exp10": _exp10,
    "tir.nextafter": _nextafter,
    "tir.sigmoid": _sigmoid,
    "tir.rsqrt": _rsqrt,
    "tir.sqrt": _llvm("llvm.sqrt"),
    "tir.floor": _llvm("llvm.floor"),
    "tir.ceil": _llvm("llvm.ceil"),
    "tir.trunc": _llvm("llvm.trunc"),
    "tir.round": _llvm("llvm.rint"),  # halves to even, as numpy's round
    "tir.nearbyint": _llvm("llvm.rint"),
    "tir.copysign": _llvm("llvm.copysign"),
    "tir.fma": _llvm("llvm.fma"),
    "tir.fabs": _absolute,
    "tir.abs": _absolute,
    "tir.fmod": _math("fmod"),
    "tir.ldexp": _ldexp,
    "tir.isnan": _classify("uno"),
    "tir.isinf": _classify("oeq"),
    "tir.isfinite": _classify("one"),
    "tir.popcount": _integer("llvm.ctpop"),
    "tir.clz": _integer("llvm.ctlz", ", i1 false"),
    "tir.bitwise_and": _bitwise("and"),
    "tir.bitwise_or": _bitwise("or"),
    "tir.bitwise_xor": _bitwise("xor"),
    "tir.bitwise_not": _bitwise_not,
    "tir.shift_left": _shift("shl", "shl"),
    "tir.shift_right": _shift("lshr", "ashr"),
    "tir.if_then_else": _if_then_else,
    "tir.likely": _likely,
    "tir.assume": _assume,
    "tir.ret": _return,
    "tir.tvm_thread_invariant": _same,
    "tir.reinterpret": _reinterpret,
    "tir.large_uint_imm": _large_uint,
    "tir.vectorlow": _half(upper=False),
    "tir.vectorhigh": _half(upper=True),
    "tir.vectorcombine": _combine,
    "tir.dp4a": _dp4a,
    "tir.get_active_lane_mask": _lane_mask,
    "tir.address_of": _address_of,
    "tir.tvm_access_ptr": _access_ptr,
    "tir.tvm_static_handle": _static_handle,
    "tir.isnullptr": _is_null,
    "tir.prefetch": _prefetch,
    "tir.atomic_add": _atomic_add,
    "tir.call_extern": _extern,
    "tir.call_pure_extern": _extern,
    "tir.call_llvm_intrin": llvm_intrinsic,
    "tir.call_llvm_pure_intrin": llvm_intrinsic,
    "tir.vscale": _vscale,
    "tir.undef": _nothing,
    "tir.tvm_storage_sync": _nothing,
    "tir.start_profile_intrinsic": _nothing,
    "tir.end_profile_intrinsic": _nothing,
    **PACKED,
}

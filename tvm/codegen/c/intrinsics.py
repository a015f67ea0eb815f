"""Intrinsics as C text: one row of :data:`INTRINSICS` each.

A row is a function of the writer and the call; it returns the text of the value, for the lane at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm.error import LoweringError
from tvm.ir.expr import GlobalVar
from tvm.ir.op import Op
from tvm.tir.expr import BufferLoad, Call, CallEffectKind, IntImm, StringImm

from .arithmetic import bare
from .packed import PACKED, runtime_call
from .types import FLOAT32, INT32, INT64, TYPES, float_text

if TYPE_CHECKING:
    from .statements import FunctionWriter

Write = Callable[["FunctionWriter", Call], Any]


def _math(name: str) -> Write:
    """A function of the C library on floats."""

    def write(w: FunctionWriter, call: Call) -> str:
        return w.call_math(name, call.dtype, [w.visit(arg) for arg in call.args])

    return write


def _in_float(write: Callable[[FunctionWriter, Call, Any], str]) -> Write:
    """A function written with C's operators, on floats of any size; ``convert`` brings operands to C's floats."""

    def apply(w: FunctionWriter, call: Call) -> str:
        if TYPES[call.dtype.element].kind == "narrow":
            return w.narrow(write(w, call, FLOAT32), call.dtype)
        return write(w, call, call.dtype.element)

    return apply


def _one_over(name: str) -> Callable[[FunctionWriter, Call, Any], str]:
    """``1 / sqrt(x)`` or ``1 / (1 + exp(-x))``."""

    def write(w: FunctionWriter, call: Call, dtype: Any) -> str:
        x = w.convert(w.visit(call.args[0]), call.args[0].dtype, dtype)
        one = float_text(dtype, 1.0)
        if name == "sigmoid":
            return f"({one} / ({one} + {w.call_math('exp', dtype, [f'(-{x})'])}))"
        return f"({one} / {w.call_math('sqrt', dtype, [x])})"

    return write


def _exp10(w: FunctionWriter, call: Call, dtype: Any) -> str:
    x = w.convert(w.visit(call.args[0]), call.args[0].dtype, dtype)
    return w.call_math("pow", dtype, [float_text(dtype, 10.0), x])


def _ldexp(w: FunctionWriter, call: Call, dtype: Any) -> str:
    x = w.convert(w.visit(call.args[0]), call.args[0].dtype, dtype)
    n = w.convert(w.visit(call.args[1]), call.args[1].dtype, INT32)
    return w.call_math("ldexp", dtype, [x, n])


def _nextafter(w: FunctionWriter, call: Call) -> str:
    if TYPES[call.dtype.element].kind == "narrow":
        raise LoweringError("nextafter needs float32 or float64 in C", at=call)
    return w.call_math("nextafter", call.dtype, [w.visit(arg) for arg in call.args])


def _absolute(w: FunctionWriter, call: Call) -> str:
    kind = TYPES[call.dtype.element].kind
    if kind in ("float", "narrow"):
        return w.call_math("fabs", call.dtype, [w.visit(call.args[0])])
    x = w.operand(call.args[0])
    if kind != "signed":
        return x
    with w.wrapping(True):
        return f"({x} < 0 ? {w.operation('-', call.dtype, '0', x)} : {x})"


def _fmod(w: FunctionWriter, call: Call) -> str:
    a, b = [w.visit(arg) for arg in call.args]
    return w.remainder(call.dtype, a, b, call.args[1])


def _classify(function: str) -> Write:
    """A question about a float."""

    def write(w: FunctionWriter, call: Call) -> str:
        x, dtype = w.visit(call.args[0]), call.args[0].dtype
        kind = TYPES[dtype.element].kind
        if kind == "narrow":
            x = w.widen(x, dtype)
        elif kind != "float":
            return "true" if function == "isfinite" else "false"
        return f"({function}({bare(x)}) != 0)"

    return write


# ---- bits


def _bitwise(sign: str) -> Write:
    def write(w: FunctionWriter, call: Call) -> str:
        type_ = TYPES[call.dtype.element]
        a, b = [w.visit(arg) for arg in call.args]
        if type_.kind == "bool":
            logical = {"&": "&&", "|": "||", "^": "!="}[sign]
            return f"({a} {logical} {b})"
        return f"(({type_.text})({a} {sign} {b}))" if type_.bits < 32 else f"({a} {sign} {b})"

    return write


def _bitwise_not(w: FunctionWriter, call: Call) -> str:
    type_, x = TYPES[call.dtype.element], w.visit(call.args[0])
    if type_.kind == "bool":
        return f"(!{x})"
    return f"(({type_.text})(~{x}))" if type_.bits < 32 else f"(~{x})"


def _shift(sign: str) -> Write:
    """A shift; one by the number of bits, or more, leaves no bit but the sign's."""

    def write(w: FunctionWriter, call: Call) -> str:
        type_ = TYPES[call.dtype.element]
        a, b = [w.visit(arg) for arg in call.args]
        distance = call.args[1]
        if not (isinstance(distance, IntImm) and 0 <= distance.value < type_.bits):
            name = "shift_left" if sign == "<<" else "shift_right"
            return w.helper(f"tvm_{name}_{type_.text.removesuffix('_t')}", bare(a), bare(b))
        if sign == "<<" or type_.kind == "unsigned":
            return f"(({type_.text})(({type_.unsigned}){a} {sign} {b}))"
        return f"(({type_.text})({a} {sign} {b}))" if type_.bits < 32 else f"({a} {sign} {b})"

    return write


def _unsigned_bits(w: FunctionWriter, call: Call) -> str:
    """The bits of an integer as an unsigned number of its size."""
    dtype = call.args[0].dtype.element
    return f"(uint{max(dtype.bits, 8)}_t){w.visit(call.args[0])}"


def _popcount(w: FunctionWriter, call: Call) -> str:
    return w.convert(w.helper("tvm_popcount", _unsigned_bits(w, call)), INT32, call.dtype)


def _clz(w: FunctionWriter, call: Call) -> str:
    length = w.helper("tvm_bit_length", _unsigned_bits(w, call))
    return w.convert(f"({call.args[0].dtype.bits} - {length})", INT32, call.dtype)


def _large_uint(w: FunctionWriter, call: Call) -> str:
    low, high = [arg.value for arg in call.args if isinstance(arg, IntImm)]
    return f"{high << 32 | low}ULL"


# ---- choices


def _if_then_else(w: FunctionWriter, call: Call) -> str:
    return w.choose_lane(call)


def _likely(w: FunctionWriter, call: Call) -> str:
    return f"TVM_LIKELY({bare(w.visit(call.args[0]))})"


def _same(w: FunctionWriter, call: Call) -> str:
    return str(w.visit(call.args[0]))


def _return(w: FunctionWriter, call: Call) -> str:
    value = call.args[0]
    text = w.visit(value)
    if w.result == "int32_t" and value.dtype.is_int:
        text = w.convert(text, value.dtype, INT32)
    w.code.do(f"return {bare(text)}")
    return "0"


# ---- vectors


def _reinterpret(w: FunctionWriter, call: Call) -> str:
    """The same bits as another type; arrays are copied byte by byte."""
    source, target = call.args[0], call.dtype
    old, new = TYPES[source.dtype.element], TYPES[target.element]
    if source.dtype.lanes == target.lanes:
        text = w.visit(source)
        if "pointer" in (old.kind, new.kind):
            return w.convert(text, source.dtype, target)
        if old.text == new.text:
            return str(text)
        if "float" not in (old.kind, new.kind):
            return f"(({new.text}){text})"
        if (old.bits, new.bits) == (32, 32):
            if old.kind == "float":
                return f"(({new.text}){w.helper('tvm_bits_of_float', bare(text))})"
            return w.helper("tvm_float_of_bits", f"(uint32_t){text}")
    with w.in_front():
        given = w.array_of(source)
        name = w.code.name("bits")
        count = "" if target.lanes == 1 else f"[{target.lanes}]"
        w.code.do(f"{new.text} {name}{count}")
        w.code.do(f"memcpy(&{name}, &{given}, sizeof({name}))")
    return name if target.lanes == 1 else f"{name}[{w.lane}]"


def _half(upper: bool) -> Write:
    def write(w: FunctionWriter, call: Call) -> str:
        count = call.args[0].dtype.lanes // 2
        with w.at_lane(f"({w.lane} + {count})" if upper else str(w.lane)):
            return str(w.visit(call.args[0]))

    return write


def _combine(w: FunctionWriter, call: Call) -> str:
    """Both halves, computed as a whole: each of them has half of the lanes."""
    a, b = call.args
    first, second, count = w.array_of(a), w.array_of(b), a.dtype.lanes
    if count == 1:
        return f"({w.lane} == 0 ? {first} : {second})"
    return f"({w.lane} < {count} ? {first}[{w.lane}] : {second}[{w.lane} - {count}])"


def _dp4a(w: FunctionWriter, call: Call) -> str:
    """acc + sum of the products of four bytes."""
    a, b, acc = call.args
    left, right = w.array_of(a), w.array_of(b)
    total = " + ".join([f"(int32_t){left}[{i}] * {right}[{i}]" for i in range(4)])
    with w.wrapping(True):
        return w.operation("+", INT32, f"({total})", w.visit(acc))


def _lane_mask(w: FunctionWriter, call: Call) -> str:
    base, limit = [w.convert(w.visit(arg), arg.dtype, INT64) for arg in call.args]
    return f"({base} + {w.lane} < {limit})"


# ---- memory


def _address_of(w: FunctionWriter, call: Call) -> str:
    load = call.args[0]
    assert isinstance(load, BufferLoad)
    if len(load.indices) != 1:
        raise LoweringError("address_of needs a flattened buffer", at=call)
    return w.element(load.buffer, load.indices[0])


def _access_ptr(w: FunctionWriter, call: Call) -> str:
    kind, data, offset = call.args[:3]
    with w.wrapping(False):
        place = w.visit(offset)
    lanes = "" if kind.dtype.lanes == 1 else f" * {kind.dtype.lanes}"
    return f"(({TYPES[kind.dtype.element].memory}*){w.visit(data)} + {place}{lanes})"


def _is_null(w: FunctionWriter, call: Call) -> str:
    address = call.args[0]
    return f"({w.visit(address)} == {'NULL' if address.dtype.is_handle else '0'})"


def _prefetch(w: FunctionWriter, call: Call) -> str:
    write, locality = [w.visit(arg) for arg in call.args[1:3]]
    address = call.args[0]
    if isinstance(address, Call) and getattr(address.op, "name", "") == "tir.address_of":
        load = address.args[0]
        assert isinstance(load, BufferLoad)
        # the last tile's place may lie outside of the array, where no pointer may point
        type_ = TYPES[load.buffer.dtype.element].memory
        place = w.convert(w.visit(load.indices[0]), load.indices[0].dtype, INT64)
        step = f"(uintptr_t)(sizeof({type_}) * {load.buffer.dtype.lanes})"
        text = (
            f"(const void*)((uintptr_t){w.visit(load.buffer.data)} + (uintptr_t){place} * {step})"
        )
    else:
        text = bare(w.visit(address))
    w.code.do(f"TVM_PREFETCH({text}, {write}, {locality})")
    return "0"


def _atomic_add(w: FunctionWriter, call: Call) -> str:
    address, value = call.args
    type_ = TYPES[value.dtype]
    if type_.kind not in ("signed", "unsigned", "float"):
        raise LoweringError(f"atomic_add in C needs integers or floats, got {value.dtype}", at=call)
    name = f"tvm_atomic_add_{type_.memory.removesuffix('_t')}"
    added = w.helper(name, f"({type_.memory}*){w.visit(address)}", w.visit(value))
    return w.code.define(type_.text, "before", added)


def _static_handle(w: FunctionWriter, call: Call) -> str:
    return f"(&{w.module.static_handle(w.name)})"


# ---- calls of functions


def _extern(w: FunctionWriter, call: Call) -> str:
    name = call.args[0]
    assert isinstance(name, StringImm)
    return call_symbol(w, name.value, call, call.args[1:])


def call_symbol(w: FunctionWriter, name: str, call: Call, args: Any) -> str:
    """A call of a C function; one with effects happens here and now."""
    if name in RUNTIME_FUNCTIONS:
        return runtime_call(w, name, call, args)
    is_pure = getattr(call.op, "effect", None) is CallEffectKind.Pure
    if not is_pure and any([part.dtype.lanes > 1 for part in (call, *args)]):
        raise LoweringError(
            f"target c cannot pass vectors to the function {name}: C has no such types",
            at=call, hint="pass pointers, or call it on scalars",
        )  # fmt: skip
    texts = _converted([w.visit(arg) for arg in args], args, w.module.parameters.get(name))
    result = w.module.results.get(name, TYPES[call.dtype.element].text)
    symbol = w.module.declare(name, result, [_parameter(arg.dtype) for arg in args])
    text = f"{symbol}({', '.join([bare(arg) for arg in texts])})"
    if is_pure:
        return text
    if result == "void":
        w.code.do(text)
        return "0"
    return w.code.define(result, "result", text)


def _converted(texts: list[str], args: Any, parameters: list[str] | None) -> list[str]:
    """Arguments of one of our own functions, whose pointers may be to other types than theirs."""
    if parameters is None:
        return texts
    return [
        f"({wanted}){text}" if arg.dtype.is_handle else text
        for text, arg, wanted in zip(texts, args, parameters, strict=True)
    ]


def _parameter(dtype: Any) -> str:
    return TYPES[dtype.element].text


def _no_llvm(w: FunctionWriter, call: Call) -> str:
    raise LoweringError(
        f"target c has no LLVM intrinsics, got {call.args[0]}",
        at=call, hint="use target llvm, or an intrinsic of tvm.tir",
    )  # fmt: skip


def _no_scalable(w: FunctionWriter, call: Call) -> str:
    raise LoweringError("target c has no scalable vectors, got vscale()", at=call)


def _nothing(w: FunctionWriter, call: Call) -> str:
    return "0"


_LIBM = (
    "exp exp2 log log2 log10 log1p tanh erf sin cos tan sinh cosh asin acos atan asinh acosh atanh "
    "pow atan2 hypot sqrt floor ceil trunc copysign fma"
)
# functions of the runtime, called by name
RUNTIME_FUNCTIONS = (
    "TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace", "TVMBackendAnyListSetPackedArg",
    "TVMBackendAnyListResetItem", "TVMBackendAnyListMoveFromPackedReturn",
)  # fmt: skip

INTRINSICS: dict[str, Write] = {
    **{f"tir.{name}": _math(name) for name in _LIBM.split()},
    "tir.exp10": _in_float(_exp10),
    "tir.sigmoid": _in_float(_one_over("sigmoid")),
    "tir.rsqrt": _in_float(_one_over("sqrt")),
    "tir.ldexp": _in_float(_ldexp),
    "tir.nextafter": _nextafter,
    "tir.round": _math("rint"),  # halves to even, as numpy's round
    "tir.nearbyint": _math("rint"),
    "tir.fabs": _absolute,
    "tir.abs": _absolute,
    "tir.fmod": _fmod,
    "tir.isnan": _classify("isnan"),
    "tir.isinf": _classify("isinf"),
    "tir.isfinite": _classify("isfinite"),
    "tir.popcount": _popcount,
    "tir.clz": _clz,
    "tir.bitwise_and": _bitwise("&"),
    "tir.bitwise_or": _bitwise("|"),
    "tir.bitwise_xor": _bitwise("^"),
    "tir.bitwise_not": _bitwise_not,
    "tir.shift_left": _shift("<<"),
    "tir.shift_right": _shift(">>"),
    "tir.if_then_else": _if_then_else,
    "tir.likely": _likely,
    "tir.assume": _nothing,
    "tir.ret": _return,
    "tir.tvm_thread_invariant": _same,
    "tir.tvm_context_id": _nothing,
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
    "tir.call_llvm_intrin": _no_llvm,
    "tir.call_llvm_pure_intrin": _no_llvm,
    "tir.vscale": _no_scalable,
    "tir.undef": _nothing,
    "tir.tvm_storage_sync": _nothing,
    "tir.start_profile_intrinsic": _nothing,
    "tir.end_profile_intrinsic": _nothing,
    **PACKED,
}


def write_call(w: FunctionWriter, call: Call) -> Any:
    """The value of a call."""
    if isinstance(call.op, GlobalVar):
        return call_symbol(w, call.op.name_hint, call, call.args)
    assert isinstance(call.op, Op)
    write = INTRINSICS.get(call.op.name)
    if write is None:
        raise LoweringError(
            f"target c has no code for the intrinsic {call.op.name}",
            at=call,
        )
    return write(w, call)

"""The packed calling convention: structures, calls of packed functions, functions of the runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm.error import LoweringError
from tvm.tir.expr import Call, IntImm, StringImm
from tvm.tir.transform.abi import ArgCode, StructField

from .arithmetic import bare
from .failure import tensors_match, write_report
from .types import FLOAT64, INT32, INT64, TYPES, VOID, string_text

if TYPE_CHECKING:
    from .statements import FunctionWriter

_ARRAY_FIELDS = {
    StructField.ARRAY_DATA: "data",
    StructField.ARRAY_SHAPE: "shape",
    StructField.ARRAY_STRIDES: "strides",
    StructField.ARRAY_NDIM: "ndim",
    StructField.ARRAY_TYPE_CODE: "dtype.code",
    StructField.ARRAY_TYPE_BITS: "dtype.bits",
    StructField.ARRAY_TYPE_LANES: "dtype.lanes",
    StructField.ARRAY_BYTE_OFFSET: "byte_offset",
    StructField.ARRAY_DEVICE_ID: "device.device_id",
    StructField.ARRAY_DEVICE_TYPE: "device.device_type",
}
_FIELD_TYPES = {
    StructField.ARRAY_DATA: "void*",
    StructField.ARRAY_SHAPE: "int64_t*",
    StructField.ARRAY_STRIDES: "int64_t*",
    StructField.ARRAY_NDIM: "int32_t",
    StructField.ARRAY_TYPE_CODE: "uint8_t",
    StructField.ARRAY_TYPE_BITS: "uint8_t",
    StructField.ARRAY_TYPE_LANES: "uint16_t",
    StructField.ARRAY_BYTE_OFFSET: "uint64_t",
    StructField.ARRAY_DEVICE_ID: "int32_t",
    StructField.ARRAY_DEVICE_TYPE: "DLDeviceType",
}
# what is reserved by its name in tvm_stack_alloca
_STACK_TYPES = {
    "array": "DLTensor",
    "arg_value": "TVMValue",
    "arg_tcode": "int32_t",
    "shape": "int64_t",
}


def _member(kind: str) -> tuple[str, str]:
    """The member of TVMValue that carries a kind of value, and its type."""
    if kind == "pointer":
        return "v_handle", "void*"
    return ("v_float64", "double") if kind in ("float", "narrow") else ("v_int64", "int64_t")


def _structure(w: FunctionWriter, call: Call) -> tuple[str, StructField]:
    """The text before a field of a structure, and the field."""
    base, index, kind = call.args[:3]
    assert isinstance(kind, IntImm)
    field = StructField(kind.value)
    type_ = "TVMValue" if field is StructField.VALUE_CONTENT else "DLTensor"
    pointer = f"(({type_}*){w.visit(base)})"
    if isinstance(index, IntImm) and index.value == 0:
        return f"{pointer}->", field
    return f"{pointer}[{bare(w.visit(index))}].", field


def _struct_get(w: FunctionWriter, call: Call) -> str:
    item, field = _structure(w, call)
    if field is StructField.ARRAY_ADDRESS:
        return f"((void*)&{item}data)"  # its first member
    type_ = TYPES[call.dtype]
    if field is not StructField.VALUE_CONTENT:
        found = f"{item}{_ARRAY_FIELDS[field]}"
        same = _FIELD_TYPES[field] == type_.text or type_.kind == "pointer"
        return found if same else f"(({type_.text}){found})"
    member, text = _member(type_.kind)
    found = f"{item}{member}"
    if type_.kind == "bool":
        return f"({found} != 0)"
    if type_.kind == "narrow":
        return w.narrow(f"(float){found}", call.dtype)
    return found if text == type_.text else f"(({type_.text}){found})"


def _struct_set(w: FunctionWriter, call: Call) -> str:
    item, field = _structure(w, call)
    value = call.args[3]
    text, dtype = w.visit(value), value.dtype
    if field is not StructField.VALUE_CONTENT:
        w.code.do(f"{item}{_ARRAY_FIELDS[field]} = ({_FIELD_TYPES[field]}){text}")
        return "0"
    kind = TYPES[dtype].kind
    if kind == "narrow":
        text = w.widen(text, dtype)
    member, type_ = _member(kind)
    w.code.do(f"{item}{member} = ({type_}){text}")
    return "0"


def _stack_alloca(w: FunctionWriter, call: Call) -> str:
    kind, count = call.args
    assert isinstance(kind, StringImm) and isinstance(count, IntImm)
    if kind.value not in _STACK_TYPES:
        raise LoweringError(f"tvm_stack_alloca has no item {kind.value!r}", at=call)
    name = w.code.name(f"{kind.value}_memory")
    w.code.do(f"{_STACK_TYPES[kind.value]} {name}[{max(count.value, 1)}]")
    return name


def _throw(w: FunctionWriter, call: Call) -> str:
    w.fail()
    return "NULL"


def _call_packed(w: FunctionWriter, call: Call) -> str:
    """Call through the handle of a registered function, looked up once."""
    name = call.args[0]
    assert isinstance(name, StringImm)
    handle = w.module.function_slot(name.value)
    find = w.module.slot("TVMBackendGetFuncFromEnv")
    context = w.module.context()
    with w.code.block(f"if ({handle} == NULL)"):
        w.fail_if(f"{find}({context}, {string_text(name.value)}, &{handle}) != 0")
    arguments, result, code = _packed_arguments(w, call)
    w.fail_if(f"{w.module.slot('TVMFuncCall')}({handle}, {arguments}) != 0")
    return _result(w, call, result, code)


def _call_cpacked(w: FunctionWriter, call: Call) -> str:
    """Call a packed function by its symbol."""
    name, resource = call.args[0], call.args[5] if len(call.args) > 5 else None
    assert isinstance(name, StringImm)
    arguments, result, code = _packed_arguments(w, call)
    symbol = w.module.declare(name.value, "int32_t", _PACKED_PARAMS)
    handle = "NULL" if resource is None else w.visit(resource)
    w.fail_if(f"{symbol}({arguments}, {handle}) != 0")
    return _result(w, call, result, code)


_PACKED_PARAMS = ("void*", "int32_t*", "int32_t", "void*", "int32_t*", "void*")


def _packed_arguments(w: FunctionWriter, call: Call) -> tuple[str, str, str]:
    """Values, codes, their number, where the result goes and its code; the result, and its code."""
    values, codes = f"((TVMValue*){w.visit(call.args[1])})", f"((int32_t*){w.visit(call.args[2])})"
    begin, end = [number.value for number in call.args[3:5] if isinstance(number, IntImm)]
    first = f"{values} + {begin}, {codes} + {begin}" if begin else f"{values}, {codes}"
    return (
        f"{first}, {end - begin}, {values} + {end}, {codes} + {end}",
        f"{values}[{end}]",
        f"{codes}[{end}]",
    )


def _result(w: FunctionWriter, call: Call, item: str, code: str) -> str:
    """What a packed function returned, as the type that the call has; another kind is an error."""
    dtype = call.dtype
    if dtype.is_void:
        return "0"
    type_ = TYPES[dtype]
    if type_.kind == "pointer":
        return w.code.define(type_.text, "result", f"{item}.v_handle")
    is_float = f"{code} == {int(ArgCode.FLOAT)}"
    # truth values are integers, or have a code of their own
    is_null = f"{code} == {int(ArgCode.NULL)}"
    is_whole = f"{code} == {int(ArgCode.INT)} || {code} == {int(ArgCode.BOOL)} || {is_null}"
    whole = f"({is_null} ? 0 : {item}.v_int64)"  # a function without a result gives 0
    if not dtype.is_float:
        _require_kind(w, call, is_whole)
        return w.named(w.convert(whole, INT64, dtype), dtype)
    _require_kind(w, call, f"{is_float} || {is_whole}")
    found = f"({is_float} ? {item}.v_float64 : (double){whole})"
    return w.named(w.convert(found, FLOAT64, dtype), dtype)


def _require_kind(w: FunctionWriter, call: Call, is_right: str) -> None:
    with w.code.block(f"if (!({is_right}))"):
        write_report(w, StringImm(wrong_kind(w.name, call)))
        w.fail()


def wrong_kind(caller: str, call: Call) -> str:
    """The text of an error: a packed function returned something else."""
    name = call.args[0].value if isinstance(call.args[0], StringImm) else "a packed function"
    return (
        f"TypeError: {caller} needs {call.dtype} from {name}, which returned another kind of value"
    )


def without_result(call: Call) -> Call:
    """The call as a statement: what a packed function returns to nobody may be of any kind."""
    return call.replace(dtype=VOID) if getattr(call.op, "name", "") in _CALLS else call


def runtime_call(w: FunctionWriter, symbol: str, call: Call, args: Any) -> str:
    """A function of the runtime, called through its context slot."""
    given = ", ".join([w.visit(arg) for arg in args])
    return w.code.define(TYPES[call.dtype].text, "status", f"{w.module.slot(symbol)}({given})")


def _runtime(symbol: str) -> Callable[[Any, Call], str]:
    return lambda w, call: runtime_call(w, symbol, call, call.args)


def _check_return(w: FunctionWriter, call: Call) -> str:
    """Leave the function with an error code unless the call gives what is expected."""
    expected, unexpected, nested = call.args
    found = w.named(w.visit(nested), nested.dtype)
    with w.code.block(f"if ({found} != {w.visit(expected)})"):
        w.code.do(f"return {w.convert(w.visit(unexpected), unexpected.dtype, INT32)}")
    return str(found)


_CALLS: dict[str, Callable[[Any, Call], str]] = {
    "tir.tvm_call_packed_lowered": _call_packed,
    "tir.tvm_call_trace_packed_lowered": _call_packed,
    "tir.tvm_call_cpacked_lowered": _call_cpacked,
}
PACKED: dict[str, Callable[[Any, Call], str]] = {
    "tir.tvm_struct_get": _struct_get,
    "tir.tvm_struct_set": _struct_set,
    "tir.tvm_tensors_match": tensors_match,
    "tir.tvm_stack_alloca": _stack_alloca,
    "tir.tvm_throw_last_error": _throw,
    **_CALLS,
    "tir.tvm_check_return": _check_return,
    "tir.TVMBackendAllocWorkspace": _runtime("TVMBackendAllocWorkspace"),
    "tir.TVMBackendFreeWorkspace": _runtime("TVMBackendFreeWorkspace"),
}

"""The packed calling convention: structures, calls of packed functions, errors.

Tensors are addressed field by field, so that LLVM lays them out as C does on the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import Call, IntImm, StringImm
from tvm.tir.transform.abi import FLOAT64, ArgCode

from .failure import write_report
from .tensor_check import tensors_match
from .types import INT64, TENSOR, TYPES, quoted

if TYPE_CHECKING:
    from .statements import FunctionWriter

# the classic numbers of fields: the field's place in TENSOR, its LLVM type
_ARRAY_FIELDS = {
    1: (0, "ptr"),  # data
    2: (7, "ptr"),  # shape
    3: (8, "ptr"),  # strides
    4: (3, "i32"),  # ndim
    5: (4, "i8"),  # type code
    6: (5, "i8"),  # type bits
    7: (6, "i16"),  # type lanes
    8: (9, "i64"),  # byte offset
    9: (2, "i32"),  # device id
    10: (1, "i32"),  # device type
}
VOID = as_dtype("void")
_ARRAY_ADDRESS, _VALUE = 0, 12
_VALUE_BYTES = 8
_STACK_ITEMS = {
    "array": (TENSOR, 16),
    "arg_value": ("i64", 8),
    "arg_tcode": ("i32", 4),
    "shape": ("i64", 8),
}


def _field(w: FunctionWriter, call: Call) -> tuple[str, int, str | None]:
    """The address of a field, its number and its type; no type if the value says it."""
    base, index, kind = call.args[:3]
    assert isinstance(kind, IntImm)
    pointer, number = w.visit(base), w.wide(index)
    if kind.value == _VALUE:
        return _item(w, "i64", pointer, number), kind.value, None
    if kind.value == _ARRAY_ADDRESS:
        return _item(w, TENSOR, pointer, number), kind.value, None
    if kind.value not in _ARRAY_FIELDS:
        raise LoweringError(f"a tensor has no field {kind.value}", at=call)
    place, text = _ARRAY_FIELDS[kind.value]
    address = f"getelementptr inbounds {TENSOR}, ptr {pointer}, i64 {number}, i32 {place}"
    return w.code.pure(address), kind.value, text


def _item(w: FunctionWriter, item: str, pointer: str, number: str) -> str:
    if number == "0":
        return pointer
    return w.code.pure(f"getelementptr inbounds {item}, ptr {pointer}, i64 {number}")


def _at(w: FunctionWriter, pointer: str, offset: int) -> str:
    if offset == 0:
        return pointer
    return w.code.pure(f"getelementptr inbounds i8, ptr {pointer}, i64 {offset}")


def _struct_get(w: FunctionWriter, call: Call) -> str:
    address, kind, text = _field(w, call)
    if kind == _ARRAY_ADDRESS:
        return address
    wanted = TYPES[call.dtype]
    if text is None:  # a TVMValue
        return w.code.value(f"load {wanted.memory}, ptr {address}, align 8")
    found = w.code.value(f"load {text}, ptr {address}")
    if text == wanted.text:
        return found
    return w.convert(found, _unsigned(text), call.dtype)


def _unsigned(text: str) -> DType:
    return as_dtype(f"u{text.replace('i', 'int')}")


def _struct_set(w: FunctionWriter, call: Call) -> str:
    address, _, text = _field(w, call)
    value = call.args[3]
    operand = w.visit(value)
    dtype = value.dtype
    if text is not None and text not in ("ptr", TYPES[dtype].text):
        operand, dtype = w.convert(operand, dtype, _unsigned(text)), _unsigned(text)
    if dtype.is_bool:
        operand, dtype = w.convert(operand, dtype, as_dtype("int64")), as_dtype("int64")
    w.code.do(f"store {TYPES[dtype].text} {operand}, ptr {address}")
    return "0"


def _stack_alloca(w: FunctionWriter, call: Call) -> str:
    kind, count = call.args
    assert isinstance(kind, StringImm) and isinstance(count, IntImm)
    if kind.value not in _STACK_ITEMS:
        raise LoweringError(f"tvm_stack_alloca has no item {kind.value!r}", at=call)
    item, align = _STACK_ITEMS[kind.value]
    return w.code.stack(f"[{max(count.value, 1)} x {item}]", 1, align)


def _throw(w: FunctionWriter, call: Call) -> str:
    w.fail()
    w.code.start(w.code.new_label("after"))
    return "null"


def _call_packed(w: FunctionWriter, call: Call) -> str:
    """Call through the handle of a registered function, looked up once."""
    name = call.args[0]
    if not isinstance(name, StringImm):
        raise LoweringError(
            f"call_packed requires the name of a function as its first argument, got {name}",
            at=call,
        )
    code = w.code
    values, codes, count, result, result_code = _packed_arguments(w, call)
    handle = _function_handle(w, name.value)
    slot = w.module.context_slot("TVMFuncCall")
    function = code.value(f"load ptr, ptr {slot}, align 8")
    status = code.value(
        f"call i32 {function}(ptr {handle}, ptr {values}, ptr {codes}, i32 {count}, "
        f"ptr {result}, ptr {result_code})"
    )
    w.return_if_failed(status)
    return _result(w, call, result, result_code)


def _call_cpacked(w: FunctionWriter, call: Call) -> str:
    """Call a packed function by its symbol."""
    name, resource = call.args[0], call.args[5] if len(call.args) > 5 else None
    assert isinstance(name, StringImm)
    values, codes, count, result, result_code = _packed_arguments(w, call)
    handle = "null" if resource is None else w.visit(resource)
    w.module.declare(name.value, "i32", ["ptr", "ptr", "i32", "ptr", "ptr", "ptr"])
    status = w.code.value(
        f"call i32 @{quoted(name.value)}(ptr {values}, ptr {codes}, i32 {count}, ptr {result}, "
        f"ptr {result_code}, ptr {handle})"
    )
    w.return_if_failed(status)
    return _result(w, call, result, result_code)


def _packed_arguments(w: FunctionWriter, call: Call) -> tuple[str, str, int, str, str]:
    """Pointers to the arguments, their codes, their number, and where the result goes."""
    values, codes = w.visit(call.args[1]), w.visit(call.args[2])
    begin, end = _int(call.args[3]), _int(call.args[4])
    return (
        _at(w, values, begin * _VALUE_BYTES),
        _at(w, codes, begin * 4),
        end - begin,
        _at(w, values, end * _VALUE_BYTES),
        _at(w, codes, end * 4),
    )


def _int(node: PrimExpr) -> int:
    assert isinstance(node, IntImm)
    return node.value


def _result(w: FunctionWriter, call: Call, address: str, code_address: str) -> str:
    """What a packed function returned, as the type that the call has; another kind is an error."""
    dtype = call.dtype
    if dtype.is_void:
        return "0"
    if not (dtype.is_int or dtype.is_uint or dtype.is_bool or dtype.is_float):
        return w.code.value(f"load {TYPES[dtype].text}, ptr {address}, align 8")
    code = w.code.value(f"load i32, ptr {code_address}, align 4")
    is_float = w.code.value(f"icmp eq i32 {code}, {int(ArgCode.FLOAT)}")
    # truth values are integers, or have a code of their own
    is_int = w.code.value(f"icmp eq i32 {code}, {int(ArgCode.INT)}")
    is_bool = w.code.value(f"icmp eq i32 {code}, {int(ArgCode.BOOL)}")
    # a function without a result gives 0
    is_null = w.code.value(f"icmp eq i32 {code}, {int(ArgCode.NULL)}")
    has_whole = w.code.value(f"or i1 {is_int}, {is_bool}")
    is_whole = w.code.value(f"or i1 {has_whole}, {is_null}")
    loaded = w.code.value(f"load i64, ptr {address}, align 8")
    whole = w.code.value(f"select i1 {is_null}, i64 0, i64 {loaded}")
    if not dtype.is_float:
        _require_kind(w, call, is_whole)
        return w.convert(whole, INT64, dtype)
    _require_kind(w, call, w.code.value(f"or i1 {is_float}, {is_whole}"))
    fraction = w.code.value(f"load double, ptr {address}, align 8")
    converted = w.code.value(f"sitofp i64 {whole} to double")
    value = w.code.value(f"select i1 {is_float}, double {fraction}, double {converted}")
    return w.convert(value, FLOAT64, dtype)


def without_result(call: Call) -> Call:
    """The call as a statement: what a packed function returns to nobody may be of any kind."""
    return call.replace(dtype=VOID) if getattr(call.op, "name", "") in _PACKED_CALLS else call


def _require_kind(w: FunctionWriter, call: Call, is_right: str) -> None:
    code = w.code
    passed, failed = code.new_label("passed"), code.new_label("failed")
    code.branch(is_right, passed, failed, ", !prof !0")
    code.start(failed)
    name = call.args[0].value if isinstance(call.args[0], StringImm) else "a packed function"
    text = (
        f"TypeError: {w.name} needs {call.dtype} from {name}, which returned another kind of value"
    )
    with code.branch_scope():
        write_report(w, StringImm(text))
    w.fail()
    code.start(passed)


def _function_handle(w: FunctionWriter, name: str) -> str:
    code = w.code
    slot = w.module.function_slot(name)
    known = code.value(f"load ptr, ptr {slot}, align 8")
    is_known = code.value(f"icmp ne ptr {known}, null")
    origin, find, ready = code.label, code.new_label("find"), code.new_label("ready")
    code.branch(is_known, ready, find, ", !prof !0")
    code.start(find)
    function = code.value(
        f"load ptr, ptr {w.module.context_slot('TVMBackendGetFuncFromEnv')}, align 8"
    )
    context = code.value(f"load ptr, ptr {w.module.context()}, align 8")
    status = code.value(
        f"call i32 {function}(ptr {context}, ptr {w.module.string(name)}, ptr {slot})"
    )
    w.return_if_failed(status)
    found = code.value(f"load ptr, ptr {slot}, align 8")
    last = code.label
    code.jump(ready)
    code.start(ready)
    return code.value(f"phi ptr [ {known}, %{origin} ], [ {found}, %{last} ]")


def through_slot(w: FunctionWriter, symbol: str, dtype: DType, args: Sequence[PrimExpr]) -> str:
    """A function of the runtime, called through its context slot."""
    operands = ", ".join([f"{TYPES[a.dtype].text} {w.visit(a)}" for a in args])
    function = w.code.value(f"load ptr, ptr {w.module.context_slot(symbol)}, align 8")
    return w.code.value(f"call {TYPES[dtype].text} {function}({operands})")


def _runtime(symbol: str) -> Callable[[Any, Call], str]:
    return lambda w, call: through_slot(w, symbol, call.dtype, call.args)


def _check_return(w: FunctionWriter, call: Call) -> str:
    """Leave the function with an error code unless the call gives what is expected."""
    expected, unexpected, nested = call.args
    code = w.code
    found = w.visit(nested)
    passed, failed = code.new_label("passed"), code.new_label("failed")
    is_ok = code.value(f"icmp eq {TYPES[nested.dtype].text} {found}, {w.visit(expected)}")
    code.branch(is_ok, passed, failed, ", !prof !0")
    code.start(failed)
    code.do(f"ret i32 {w.visit(unexpected)}")
    code.start(passed)
    return str(found)


_PACKED_CALLS = {
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
    **_PACKED_CALLS,
    "tir.tvm_check_return": _check_return,
    "tir.TVMBackendAllocWorkspace": _runtime("TVMBackendAllocWorkspace"),
    "tir.TVMBackendFreeWorkspace": _runtime("TVMBackendFreeWorkspace"),
}
# the same functions, called by name
RUNTIME_FUNCTIONS = (
    "TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace", "TVMBackendAnyListSetPackedArg",
    "TVMBackendAnyListResetItem", "TVMBackendAnyListMoveFromPackedReturn",
)  # fmt: skip

"""Calls that are part of the language: of functions, on memory, across threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tvm._ffi.registry import register_func
from tvm.error import RuntimeTypeError
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.op import Op
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

from .expr import BOOL, HANDLE, INT32, BufferLoad, Call, StringImm, as_expr, const
from .intrinsics import INTRINSICS

if TYPE_CHECKING:
    from tvm.ir.span import Span

VOID = as_dtype("void")
make_call: Callable[..., PrimExpr] = Call._make


def intrinsic_call(
    dtype: DType, name: str, args: Sequence[Any], span: Span | None = None
) -> PrimExpr:
    """A call of the intrinsic ``tir.<name>``; the number of arguments is checked."""
    op = INTRINSICS[name]
    if op.num_inputs not in (-1, len(args)):
        raise RuntimeTypeError(f"tir.{name} requires {op.num_inputs} arguments, got {len(args)}")
    return make_call(dtype, op, tuple([as_argument(arg) for arg in args]), span)


def as_argument(value: Any) -> PrimExpr:
    """An argument of a call; a buffer stands for its pointer."""
    return value.data if hasattr(value, "data_alignment") else as_expr(value)


# ---- calls of functions


def call_intrin(dtype: Any, func_name: str | Op, *args: Any, span: Span | None = None) -> Call:
    """Call an intrinsic by its operator or its name (``"tir.exp"``)."""
    return Call(dtype, func_name, [as_argument(arg) for arg in args], span)


def large_uint_imm(dtype: Any, low: int, high: int, span: Span | None = None) -> Call:
    """A constant of 64 bits without sign, from its two halves."""
    halves = [const(half, "uint32") for half in (low, high)]
    return call_intrin(dtype, "tir.large_uint_imm", *halves, span=span)


register_func("node.LargeUIntImm", large_uint_imm, override=True)


def call_extern(dtype: Any, func_name: str, *args: Any, span: Span | None = None) -> PrimExpr:
    """Call a C function that may have effects."""
    return intrinsic_call(as_dtype(dtype), "call_extern", (func_name, *args), span)


def call_pure_extern(dtype: Any, func_name: str, *args: Any, span: Span | None = None) -> PrimExpr:
    """Call a C function that has no effects."""
    return intrinsic_call(as_dtype(dtype), "call_pure_extern", (func_name, *args), span)


def call_llvm_intrin(dtype: Any, name: str | int, *args: Any, span: Span | None = None) -> PrimExpr:
    """Call an LLVM intrinsic by name; the first argument of the classic form, a count of
    signature arguments, is accepted."""
    return intrinsic_call(as_dtype(dtype), "call_llvm_intrin", (name, *args), span)


def call_llvm_pure_intrin(
    dtype: Any, name: str | int, *args: Any, span: Span | None = None
) -> PrimExpr:
    """Call an LLVM intrinsic that has no effects."""
    return intrinsic_call(as_dtype(dtype), "call_llvm_pure_intrin", (name, *args), span)


def _packed(name: str, args: tuple[Any, ...], span: Span | None) -> PrimExpr:
    if not args or not isinstance(args[0], (str, StringImm)):
        raise RuntimeTypeError(f"{name} requires the name of a function as its first argument")
    packed = [described(arg) if hasattr(arg, "data_alignment") else arg for arg in args]
    return intrinsic_call(INT32, name, packed, span)


def described(buffer: Any) -> PrimExpr:
    """A buffer as an argument of a packed call: an array's description on the stack."""
    shape = tvm_stack_make_shape(*buffer.shape)
    strides = tvm_stack_make_shape(*buffer.strides) if buffer.strides else const(0, INT32)
    return tvm_stack_make_array(
        buffer.data, shape, strides, len(buffer.shape), const(0, buffer.dtype), buffer.elem_offset
    )


def call_packed(*args: Any, span: Span | None = None) -> PrimExpr:
    """Call a packed function: its name, then the arguments."""
    return _packed("tvm_call_packed", args, span)


def call_cpacked(*args: Any, span: Span | None = None) -> PrimExpr:
    """Call a packed function by its C symbol: its name, then the arguments."""
    return _packed("tvm_call_cpacked", args, span)


def call_packed_lowered(*args: Any, span: Span | None = None) -> PrimExpr:
    """A packed call whose arguments lie on a stack."""
    return _packed("tvm_call_packed_lowered", args, span)


def call_cpacked_lowered(*args: Any, span: Span | None = None) -> PrimExpr:
    """A packed call by C symbol whose arguments lie on a stack."""
    return _packed("tvm_call_cpacked_lowered", args, span)


def call_tir(global_var: GlobalVar, *args: Any) -> PrimExpr:
    """Call a function of the same module."""
    return Call(VOID, global_var, [as_argument(arg) for arg in args])


def trace(args: Sequence[Any], trace_action: str = "tvm.default_trace_action") -> PrimExpr:
    """Pass values to a packed function while the program runs; the result is the last value."""
    if not isinstance(args, list):
        raise RuntimeTypeError(f"trace requires a list of values, got {type(args).__name__}")
    values = [as_expr(value) for value in args]
    return intrinsic_call(values[-1].dtype, "tvm_call_trace_packed", (trace_action, *values))


def ret(val: Any, span: Span | None = None) -> PrimExpr:
    """Return a value from the function."""
    value = as_expr(val)
    return intrinsic_call(value.dtype, "ret", (value,), span)


def tvm_check_return(expected: int, return_unexpected: int, nested_call: PrimExpr) -> PrimExpr:
    """Return ``return_unexpected`` unless the call gives ``expected``."""
    return intrinsic_call(INT32, "tvm_check_return", (expected, return_unexpected, nested_call))


def tvm_throw_last_error() -> PrimExpr:
    """Fail with the runtime's last error."""
    return intrinsic_call(HANDLE, "tvm_throw_last_error", ())


def assume(cond: Any = None) -> PrimExpr:
    """Tell the compiler that a condition holds."""
    return intrinsic_call(BOOL, "assume", (as_expr(True if cond is None else cond, BOOL),))


def undef() -> PrimExpr:
    """Some int32, whatever it is."""
    return intrinsic_call(INT32, "undef", ())


# ---- memory


def address_of(buffer_load: Any, span: Span | None = None) -> PrimExpr:
    """The address of an element."""
    if hasattr(buffer_load, "data_alignment"):
        zeros = [const(0, extent.dtype) for extent in buffer_load.shape]
        buffer_load = BufferLoad(buffer_load, tuple(zeros))
    return intrinsic_call(HANDLE, "address_of", (buffer_load,), span)


def type_annotation(dtype: Any) -> PrimExpr:
    """A data type as an argument."""
    return intrinsic_call(as_dtype(dtype), "type_annotation", ())


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> PrimExpr:
    """A pointer ``offset`` elements after ``data``; see :meth:`Buffer.access_ptr`."""
    kind = ptype if isinstance(ptype, PrimExpr) else type_annotation(ptype)
    return intrinsic_call(HANDLE, "tvm_access_ptr", (kind, data, offset, extent, rw_mask))


def lookup_param(param_name: str, span: Span | None = None) -> PrimExpr:
    """A parameter of the module, by name."""
    return intrinsic_call(HANDLE, "lookup_param", (param_name,), span)


def tvm_tuple(*value: Any) -> PrimExpr:
    """Several values as one."""
    return intrinsic_call(HANDLE, "tvm_tuple", value)


def tvm_struct_get(arr: Any, index: Any, field: int, dtype: Any) -> PrimExpr:
    """A field of the ``index``-th structure of an array of structures."""
    return intrinsic_call(as_dtype(dtype), "tvm_struct_get", (arr, index, field))


def tvm_struct_set(arr: Any, index: Any, field: int, value: Any) -> PrimExpr:
    """Set a field of a structure."""
    return intrinsic_call(INT32, "tvm_struct_set", (arr, index, field, value))


def tvm_stack_alloca(dtype_str: str, num: Any) -> PrimExpr:
    """Structures on the stack."""
    return intrinsic_call(HANDLE, "tvm_stack_alloca", (dtype_str, num))


def tvm_stack_make_shape(*args: Any) -> PrimExpr:
    """A shape on the stack."""
    return intrinsic_call(HANDLE, "tvm_stack_make_shape", args)


def tvm_stack_make_array(
    data: Any, shape: Any, strides: Any, ndim: Any, arr_dtype: Any, elem_offset: Any
) -> PrimExpr:
    """An array's description on the stack."""
    return intrinsic_call(
        HANDLE, "tvm_stack_make_array", (data, shape, strides, ndim, arr_dtype, elem_offset)
    )


def TVMBackendAllocWorkspace(
    device_type: Any, device_id: Any, nbytes: Any, dtype_code_hint: Any, dtype_bits_hint: Any
) -> PrimExpr:
    """Temporary memory of a device."""
    args = (device_type, device_id, nbytes, dtype_code_hint, dtype_bits_hint)
    return intrinsic_call(HANDLE, "TVMBackendAllocWorkspace", args)


def TVMBackendFreeWorkspace(device_type: Any, device_id: Any, ptr: Any) -> PrimExpr:
    """Give temporary memory back."""
    return intrinsic_call(INT32, "TVMBackendFreeWorkspace", (device_type, device_id, ptr))


def anylist_getitem(list_handle: Any, index: Any) -> PrimExpr:
    """An item of a list of any values."""
    return intrinsic_call(HANDLE, "anylist_getitem", (list_handle, index))


def anylist_resetitem(list_handle: Any, index: Any) -> PrimExpr:
    """Empty an item of a list of any values."""
    return intrinsic_call(INT32, "anylist_resetitem", (list_handle, index))


def anylist_setitem_call_packed(
    list_handle: Any, index: Any, func_name: str, *args: Any
) -> PrimExpr:
    """Set an item to the result of a packed call."""
    return intrinsic_call(
        INT32, "anylist_setitem_call_packed", (list_handle, index, func_name, *args)
    )


def anylist_setitem_call_cpacked(
    list_handle: Any, index: Any, func_name: str, *args: Any
) -> PrimExpr:
    """Set an item to the result of a packed call by C symbol."""
    return intrinsic_call(
        INT32, "anylist_setitem_call_cpacked", (list_handle, index, func_name, *args)
    )


# ---- vectors


def vectorlow(dtype: Any, vec: Any) -> PrimExpr:
    """The lower half of a vector."""
    return intrinsic_call(as_dtype(dtype), "vectorlow", (vec,))


def vectorhigh(dtype: Any, vec: Any) -> PrimExpr:
    """The upper half of a vector."""
    return intrinsic_call(as_dtype(dtype), "vectorhigh", (vec,))


def vectorcombine(dtype: Any, vec1: Any, vec2: Any) -> PrimExpr:
    """Two vectors joined."""
    return intrinsic_call(as_dtype(dtype), "vectorcombine", (vec1, vec2))


def dp4a(vec1: Any, vec2: Any, acc: Any = 0) -> PrimExpr:
    """The dot product of two vectors of four bytes, added to ``acc``."""
    return intrinsic_call(INT32, "dp4a", (vec1, vec2, acc))


def vscale() -> PrimExpr:
    """The factor by which scalable vectors are longer than their minimum."""
    return intrinsic_call(INT32, "vscale", ())


def get_active_lane_mask(dtype: Any, base: Any, limit: Any) -> PrimExpr:
    """For each lane, whether ``base`` plus the lane is below ``limit``."""
    return intrinsic_call(as_dtype(dtype), "get_active_lane_mask", (base, limit))


def get_vscale_expr(dtype: Any, min_size: int = 128) -> PrimExpr:
    """The number of elements of a scalable vector of at least ``min_size`` bits."""
    lanes = as_expr(min_size // as_dtype(dtype).bits)
    return lanes * vscale()


# ---- threads


def tvm_thread_allreduce(*freduce_args: Any) -> PrimExpr:
    """Combine a value over the threads of a block."""
    return intrinsic_call(HANDLE, "tvm_thread_allreduce", freduce_args)


def tvm_thread_invariant(cond: Any) -> PrimExpr:
    """A condition that is the same for all threads."""
    return intrinsic_call(as_expr(cond).dtype, "tvm_thread_invariant", (cond,))


def tvm_storage_sync(storage_scope: str) -> PrimExpr:
    """Wait for the threads that share memory of this scope."""
    return intrinsic_call(INT32, "tvm_storage_sync", (storage_scope,))


def _shuffle(name: str, mask: Any, value: Any, *rest: Any) -> PrimExpr:
    operand = as_expr(value)
    return intrinsic_call(operand.dtype, name, (mask, operand, *rest))


def tvm_warp_shuffle(mask: Any, value: Any, warp_id: Any, width: Any, warp_size: Any) -> PrimExpr:
    """The value that another thread of the warp has."""
    return _shuffle("tvm_warp_shuffle", mask, value, warp_id, width, warp_size)


def tvm_warp_shuffle_up(mask: Any, value: Any, offset: Any, width: Any, warp_size: Any) -> PrimExpr:
    """The value of the thread ``offset`` below."""
    return _shuffle("tvm_warp_shuffle_up", mask, value, offset, width, warp_size)


def tvm_warp_shuffle_down(
    mask: Any, value: Any, offset: Any, width: Any, warp_size: Any
) -> PrimExpr:
    """The value of the thread ``offset`` above."""
    return _shuffle("tvm_warp_shuffle_down", mask, value, offset, width, warp_size)


def tvm_warp_activemask() -> PrimExpr:
    """A bit for each active thread of the warp."""
    return intrinsic_call(as_dtype("uint32"), "tvm_warp_activemask", ())


def start_profile_intrinsic(id: int) -> PrimExpr:
    """The start of a profiled part."""
    return intrinsic_call(HANDLE, "start_profile_intrinsic", (id,))


def end_profile_intrinsic(id: int) -> PrimExpr:
    """The end of a profiled part."""
    return intrinsic_call(HANDLE, "end_profile_intrinsic", (id,))


__all__ = [
    "TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace", "address_of", "anylist_getitem",
    "anylist_resetitem", "anylist_setitem_call_cpacked", "anylist_setitem_call_packed", "assume",
    "call_cpacked", "call_cpacked_lowered", "call_extern", "call_intrin", "call_llvm_intrin",
    "call_llvm_pure_intrin", "call_packed", "call_packed_lowered", "call_pure_extern", "call_tir",
    "dp4a", "end_profile_intrinsic", "get_active_lane_mask", "get_vscale_expr", "lookup_param",
    "ret", "start_profile_intrinsic", "trace", "tvm_access_ptr", "tvm_check_return",
    "tvm_stack_alloca", "tvm_stack_make_array", "tvm_stack_make_shape", "tvm_storage_sync",
    "tvm_struct_get", "tvm_struct_set", "tvm_thread_allreduce", "tvm_thread_invariant",
    "tvm_throw_last_error", "tvm_tuple", "tvm_warp_activemask", "tvm_warp_shuffle",
    "tvm_warp_shuffle_down", "tvm_warp_shuffle_up", "type_annotation", "undef", "vectorcombine",
    "vectorhigh", "vectorlow", "vscale",
]  # fmt: skip

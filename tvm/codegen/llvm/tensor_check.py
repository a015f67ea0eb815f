"""The check of all tensor arguments of known type and shape: a table, read by one function.

    assert tvm_tensors_match(args, codes, (0, "f: argument 0 (buffer A)", "float32", ..., 4, 8), ...)

A kernel holds one call and one branch. A row has what a tensor must be; the function that reads the
rows reports what is wrong itself, so such an assertion needs no message.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import Call, IntImm, StringImm
from tvm.tir.transform.abi import (
    CODE_NAMES,
    DTYPE_CODES,
    POINTER_CODES,
    TENSORS_MATCH,
    UNKNOWN_CODE,
)

from .failure import MAX_VALUES, REPORT, define_report, name_function
from .types import TENSOR, quoted

if TYPE_CHECKING:
    from .module import ModuleWriter
    from .statements import FunctionWriter

MATCH = "tvm.tensors_match"
_PARAMS = ("ptr", "ptr", "i64", "ptr")
_ENTRY = "{ i64, ptr, ptr }"  # an argument's position and name, and what it must be
# of a block that reports: its text, and the values in it behind the argument's name
FAILURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "bad_kind": ("TypeError: %s needs to be a tensor or a pointer, got %s", ("%kind",)),
    "bad_null": ("TypeError: %s must not be null", ()),
    "bad_rank": ("ValueError: %s needs %lld dimensions, got %lld", ("%rank", "%ndim")),
    "bad_type": (
        "TypeError: %s needs dtype %s, got %s%lld",
        ("%type_needed", "%type_given", "%bits"),
    ),
    "bad_extent": (
        "ValueError: %s needs shape[%lld] == %lld, got %lld",
        ("%axis", "%extent", "%found"),
    ),
    "bad_offset": (
        "ValueError: %s needs byte_offset == %lld, got %lld",
        ("%offset", "%given_offset"),
    ),
    "bad_device": ("ValueError: %s needs %s, got %lld", ("%device_text", "%device_given")),
    "bad_number": (
        "ValueError: %s needs the device of the arguments before it, got %lld",
        ("%number_given",),
    ),
    "bad_data": ("ValueError: %s has no data", ()),
    "bad_alignment": ("ValueError: %s needs data aligned to %lld bytes", ("%alignment",)),
    "bad_strides": ("ValueError: %s needs a compact layout (strides null or row-major)", ()),
}


def reports_itself(condition: PrimExpr) -> bool:
    """Whether a condition has set the runtime's last error when it does not hold."""
    return isinstance(condition, Call) and condition.op is TENSORS_MATCH


def tensors_match(w: FunctionWriter, call: Call) -> str:
    """Call the shared function on a table."""
    values, codes, *rows = call.args
    check = _check(w.module)
    entries = [_entry(w.module, row.args) for row in rows if isinstance(row, Call)]
    table = w.module.constant(
        f"[{len(entries)} x {_ENTRY}] [{', '.join([f'{_ENTRY} {entry}' for entry in entries])}]"
    )
    operands = f"ptr {w.visit(values)}, ptr {w.visit(codes)}, i64 {len(entries)}, ptr {table}"
    return w.code.value(f"call i1 @{check}({operands})")


def _entry(module: ModuleWriter, row: Sequence[PrimExpr]) -> str:
    position, name, *required = row
    assert isinstance(position, IntImm) and isinstance(name, StringImm)
    label = module.string(name.value)
    return f"{{ i64 {position.value}, ptr {label}, ptr {_row(module, required)} }}"


def _row(module: ModuleWriter, required: list[PrimExpr]) -> str:
    """What a tensor must be, as a constant; equal rows are one."""
    dtype_name, device, device_text, *numbers = required
    assert isinstance(dtype_name, StringImm) and isinstance(device_text, StringImm)
    assert isinstance(device, IntImm)
    alignment, offset, *shape = [n.value for n in numbers if isinstance(n, IntImm)]
    dtype = as_dtype(dtype_name.value)
    fields = [
        f"i64 {len(shape)}",
        f"i64 {alignment - 1}",
        f"i64 {offset}",
        f"i32 {device.value}",
        f"i8 {dtype.type_code}",
        f"i8 {dtype.bits}",
        f"i16 {dtype.lanes}",
        f"ptr {module.string(dtype_name.value)}",
        f"ptr {module.string(device_text.value)}",
        f"[{len(shape)} x i64] [{', '.join([f'i64 {extent}' for extent in shape])}]",
    ]
    return module.constant(f"{_row_type(len(shape))} {{ {', '.join(fields)} }}")


def _row_type(rank: int) -> str:
    """Rank, alignment - 1, byte offset, device type, element type, its name, the device's, shape."""
    return f"{{ i64, i64, i64, i32, i8, i8, i16, ptr, ptr, [{rank} x i64] }}"


def _failure(module: ModuleWriter, label: str, text: str, *values: str) -> str:
    """A block that reports and says no."""
    word, given = module.options.word, ["%name", *values]
    lines = [f"{label}:"]
    if word != "i64":
        lines += [f"  {value}.{label} = trunc i64 {value} to {word}" for value in given]
        given = [f"{value}.{label}" for value in given]
    given += ["0"] * (MAX_VALUES - len(given))
    operands = ", ".join([f"{word} {value}" for value in given])
    pattern = module.string(text.replace("%lld", module.options.word_format))
    return "\n".join(
        [*lines, f"  call void @{REPORT}(ptr {pattern}, {operands})", "  ret i1 false"]
    )


def _check(module: ModuleWriter) -> str:
    """The symbol of the function that reads the table."""
    if module.is_part:
        module.declare(_SHARED_MATCH, "i1", _PARAMS)
        return quoted(_SHARED_MATCH)
    if MATCH not in module.results:
        define_check(module)
    return MATCH


def define_check(module: ModuleWriter, is_shared: bool = False) -> None:
    """Write the function that reads the table, for this module or for all parts of one."""
    name, linkage = (_SHARED_MATCH, "weak_odr hidden") if is_shared else (MATCH, "internal")
    module.results[name] = "i1"
    define_report(module)
    kind_name = name_function(module, CODE_NAMES, UNKNOWN_CODE)
    dtype_name = name_function(module, DTYPE_CODES, UNKNOWN_CODE)
    accepted = " ".join([f"i32 {int(code)}, label %pointer" for code in POINTER_CODES])
    failures = [
        _failure(module, label, text, *values) for label, (text, values) in FAILURES.items()
    ]
    checks = _CHECKS.format(
        linkage=linkage,
        match=quoted(name),
        accepted=accepted,
        kind_name=kind_name,
        dtype_name=dtype_name,
        tensor=TENSOR,
        row=_row_type(0),
        entry=_ENTRY,
    )
    module.helpers.append("\n".join([checks, *failures, "}", ""]))


_CHECKS = """\
define {linkage} i1 @{match}(ptr %args, ptr %codes, i64 %tensors, ptr %table) noinline nounwind {{
entry:
  br label %next_argument
next_argument:
  %k = phi i64 [ 0, %entry ], [ %k_after, %matches ]
  %device = phi i32 [ -1, %entry ], [ %number, %matches ]
  %more_arguments = icmp ult i64 %k, %tensors
  br i1 %more_arguments, label %check_argument, label %all_match
check_argument:
  %position_at = getelementptr {entry}, ptr %table, i64 %k, i32 0
  %position = load i64, ptr %position_at
  %label_at = getelementptr {entry}, ptr %table, i64 %k, i32 1
  %label = load ptr, ptr %label_at
  %name = ptrtoint ptr %label to i64
  %row_at = getelementptr {entry}, ptr %table, i64 %k, i32 2
  %row = load ptr, ptr %row_at
  %code_at = getelementptr i32, ptr %codes, i64 %position
  %code = load i32, ptr %code_at
  %array_at = getelementptr i64, ptr %args, i64 %position
  %array = load ptr, ptr %array_at
  switch i32 %code, label %unknown [ {accepted} ]
unknown:
  %code64 = sext i32 %code to i64
  %kind_text = call ptr @{kind_name}(i64 %code64)
  %kind = ptrtoint ptr %kind_text to i64
  br label %bad_kind
pointer:
  %is_null = icmp eq ptr %array, null
  br i1 %is_null, label %bad_null, label %check_rank
check_rank:
  %ndim_at = getelementptr {tensor}, ptr %array, i64 0, i32 3
  %ndim32 = load i32, ptr %ndim_at
  %ndim = sext i32 %ndim32 to i64
  %rank = load i64, ptr %row
  %same_rank = icmp eq i64 %ndim, %rank
  br i1 %same_rank, label %check_type, label %bad_rank
check_type:
  %type_at = getelementptr {tensor}, ptr %array, i64 0, i32 4
  %type = load i32, ptr %type_at
  %row_type_at = getelementptr {row}, ptr %row, i64 0, i32 4
  %row_type = load i32, ptr %row_type_at
  %same_type = icmp eq i32 %type, %row_type
  br i1 %same_type, label %check_shape, label %other_type
other_type:
  %type_code = load i8, ptr %type_at
  %type_code64 = zext i8 %type_code to i64
  %type_text = call ptr @{dtype_name}(i64 %type_code64)
  %type_given = ptrtoint ptr %type_text to i64
  %bits_at = getelementptr {tensor}, ptr %array, i64 0, i32 5
  %bits8 = load i8, ptr %bits_at
  %bits = zext i8 %bits8 to i64
  %type_needed_at = getelementptr {row}, ptr %row, i64 0, i32 7
  %type_needed_name = load ptr, ptr %type_needed_at
  %type_needed = ptrtoint ptr %type_needed_name to i64
  br label %bad_type
check_shape:
  %shape_at = getelementptr {tensor}, ptr %array, i64 0, i32 7
  %shape = load ptr, ptr %shape_at
  %extents = getelementptr {row}, ptr %row, i64 0, i32 9
  br label %next_extent
next_extent:
  %axis = phi i64 [ 0, %check_shape ], [ %axis_after, %same_extent ]
  %size = phi i64 [ 1, %check_shape ], [ %size_after, %same_extent ]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %check_extent, label %check_offset
check_extent:
  %extent_at = getelementptr i64, ptr %extents, i64 %axis
  %extent = load i64, ptr %extent_at
  %found_at = getelementptr i64, ptr %shape, i64 %axis
  %found = load i64, ptr %found_at
  %equal = icmp eq i64 %found, %extent
  br i1 %equal, label %same_extent, label %bad_extent
same_extent:
  %axis_after = add i64 %axis, 1
  %size_after = mul i64 %size, %extent
  br label %next_extent
check_offset:
  %offset_at = getelementptr {row}, ptr %row, i64 0, i32 2
  %offset = load i64, ptr %offset_at
  %given_offset_at = getelementptr {tensor}, ptr %array, i64 0, i32 9
  %given_offset = load i64, ptr %given_offset_at
  %same_offset = icmp eq i64 %offset, %given_offset
  br i1 %same_offset, label %check_device, label %bad_offset
check_device:
  %device_at = getelementptr {row}, ptr %row, i64 0, i32 3
  %device_type = load i32, ptr %device_at
  %device_text_at = getelementptr {row}, ptr %row, i64 0, i32 8
  %device_text_name = load ptr, ptr %device_text_at
  %device_text = ptrtoint ptr %device_text_name to i64
  %device_given_at = getelementptr {tensor}, ptr %array, i64 0, i32 1
  %device_given32 = load i32, ptr %device_given_at
  %device_given = sext i32 %device_given32 to i64
  %same_device = icmp eq i32 %device_given32, %device_type
  br i1 %same_device, label %check_number, label %bad_device
check_number:
  %number_at = getelementptr {tensor}, ptr %array, i64 0, i32 2
  %number = load i32, ptr %number_at
  %number_given = sext i32 %number to i64
  %any = icmp slt i32 %device, 0
  %same_number = icmp eq i32 %number, %device
  %right_number = or i1 %any, %same_number
  br i1 %right_number, label %check_data, label %bad_number
check_data:
  %data = load ptr, ptr %array
  %has_data = icmp ne ptr %data, null
  %is_empty = icmp eq i64 %size, 0
  %data_ok = or i1 %has_data, %is_empty
  br i1 %data_ok, label %check_alignment, label %bad_data
check_alignment:
  %mask_at = getelementptr {row}, ptr %row, i64 0, i32 1
  %mask = load i64, ptr %mask_at
  %alignment = add i64 %mask, 1
  %address = ptrtoint ptr %data to i64
  %over = and i64 %address, %mask
  %aligned = icmp eq i64 %over, 0
  br i1 %aligned, label %check_strides, label %bad_alignment
check_strides:
  %strides_at = getelementptr {tensor}, ptr %array, i64 0, i32 8
  %strides = load ptr, ptr %strides_at
  %no_strides = icmp eq ptr %strides, null
  br i1 %no_strides, label %matches, label %next_stride
next_stride:
  %left = phi i64 [ %rank, %check_strides ], [ %last, %same_stride ]
  %step = phi i64 [ 1, %check_strides ], [ %step_after, %same_stride ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %matches, label %check_stride
check_stride:
  %last = sub i64 %left, 1
  %count_at = getelementptr i64, ptr %extents, i64 %last
  %count = load i64, ptr %count_at
  %stride_at = getelementptr i64, ptr %strides, i64 %last
  %stride = load i64, ptr %stride_at
  %is_unit = icmp eq i64 %count, 1
  %is_step = icmp eq i64 %stride, %step
  %compact = or i1 %is_unit, %is_step
  br i1 %compact, label %same_stride, label %bad_strides
same_stride:
  %step_after = mul i64 %step, %count
  br label %next_stride
matches:
  %k_after = add i64 %k, 1
  br label %next_argument
all_match:
  ret i1 true"""
# libraries of other versions of this package may be linked beside: of them, each has its own
_SHARED_MATCH = f"{MATCH}.{blake2b(_CHECKS.encode(), digest_size=4).hexdigest()}"

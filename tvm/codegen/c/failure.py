"""Reports of failed assertions, and the check of a tensor argument.

assert n == 16, ("f: argument 0 needs shape[0] == 16, got ", n)

if (!(n == 16)) {
  tvm_report("f: argument 0 needs shape[0] == 16, got %lld", (long long)n);
  return -1;
}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tvm.codegen.llvm.failure import format_of, text_choices
from tvm.codegen.llvm.tensor_check import FAILURES
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import Call, IntImm, StringImm
from tvm.tir.transform.abi import CODE_NAMES, DTYPE_CODES, POINTER_CODES, UNKNOWN_CODE

from .types import string_text

if TYPE_CHECKING:
    from .module import ModuleWriter
    from .statements import FunctionWriter


CHECK = "tvm_tensors_match"
CHECKS = ("tvm_tensor_matches", CHECK)


def write_report(w: FunctionWriter, message: PrimExpr) -> None:
    """Set the runtime's last error."""
    if not isinstance(message, Call):
        text = message.value if isinstance(message, StringImm) else str(message)
        w.code.do(f"{w.module.slot('TVMAPISetLastError')}({string_text(text)})")
        return
    pattern, operands = format_of(
        message, "%lld", lambda part: _text(w, part), lambda part: f"(long long){w.visit(part)}"
    )
    w.module.slot("TVMAPISetLastError")
    w.code.do(w.helper("tvm_report", ", ".join([string_text(pattern), *operands])))


def _text(w: FunctionWriter, part: PrimExpr) -> str:
    """A text; one that depends on a number comes from a function the module shares."""
    names, number = text_choices(part)
    if number is None:
        return f"(const char*){w.visit(part)}"
    *cases, (_, other) = names
    known = {value: text for value, text in cases if value is not None}
    return f"{name_function(w.module, known, other)}((int64_t){w.visit(number)})"


def name_function(module: ModuleWriter, names: Mapping[int, str], other: str) -> str:
    """The name of a function from a number to its name; equal ones are written once."""
    cases = "".join([f"    case {value}: return {string_text(t)};\n" for value, t in names.items()])
    body = f"(int64_t number) {{\n  switch (number) {{\n{cases}    default: return {string_text(other)};\n  }}\n}}\n"
    return module.shared("tvm_name", "static const char* ", body)


def tensors_match(w: FunctionWriter, call: Call) -> str:
    """Call the shared function on a table of the arguments and of what they must be."""
    values, codes, *rows = call.args
    _define_check(w.module)
    entries = ", ".join([_entry(w.module, row.args) for row in rows if isinstance(row, Call)])
    table = w.module.shared(
        "tvm_arguments", "static const TVMTensorArgument ", f"[] = {{{entries}}};\n"
    )
    return f"{CHECK}({w.visit(values)}, {w.visit(codes)}, {len(rows)}, {table})"


def _entry(module: ModuleWriter, row: Sequence[PrimExpr]) -> str:
    position, name, dtype_name, device_type, device_text, *numbers = row
    assert isinstance(position, IntImm) and isinstance(name, StringImm)
    assert isinstance(dtype_name, StringImm) and isinstance(device_text, StringImm)
    assert isinstance(device_type, IntImm)
    alignment, offset, *shape = [n.value for n in numbers if isinstance(n, IntImm)]
    dtype = as_dtype(dtype_name.value)
    extents = "NULL"
    if shape:
        body = f"[] = {{{', '.join([f'{extent}LL' for extent in shape])}}};\n"
        extents = module.shared("tvm_shape", "static const int64_t ", body)
    fields = [
        str(len(shape)), extents, f"{alignment}ULL", f"{offset}ULL", str(device_type.value),
        f"{{{dtype.type_code}, {dtype.bits}, {dtype.lanes}}}",
        string_text(dtype_name.value), string_text(device_text.value),
    ]  # fmt: skip
    required = module.shared(
        "tvm_row", "static const TVMTensorRow ", f" = {{{', '.join(fields)}}};\n"
    )
    return f"{{{position.value}, {string_text(name.value)}, &{required}}}"


def _failure(label: str, *values: str) -> str:
    """Report and say no."""
    text, _ = FAILURES[label]
    return f"tvm_report({', '.join([string_text(text), 'name', *values])})"


def _define_check(module: ModuleWriter) -> None:
    if module.has_check:
        return
    module.has_check = True
    module.slot("TVMAPISetLastError")
    module.use("tvm_report")
    accepted = " && ".join([f"code != {int(code)}" for code in POINTER_CODES])
    text = _CHECK.replace("@accepted", accepted)
    for label, values in _VALUES.items():
        text = text.replace(f"@{label};", f"{_failure(label, *values)};")
    text = text.replace("@kind", name_function(module, CODE_NAMES, UNKNOWN_CODE))
    text = text.replace("@dtype", name_function(module, DTYPE_CODES, UNKNOWN_CODE))
    module.functions.append(text)


_VALUES = {
    "bad_kind": ("@kind(code)",),
    "bad_null": (),
    "bad_rank": ("(long long)row->ndim", "(long long)tensor->ndim"),
    "bad_type": ("row->dtype_name", "@dtype(tensor->dtype.code)", "(long long)tensor->dtype.bits"),
    "bad_extent": ("(long long)i", "(long long)row->shape[i]", "(long long)tensor->shape[i]"),
    "bad_offset": ("(long long)row->byte_offset", "(long long)tensor->byte_offset"),
    "bad_device": ("row->device_text", "(long long)tensor->device.device_type"),
    "bad_number": ("(long long)tensor->device.device_id",),
    "bad_data": (),
    "bad_alignment": ("(long long)row->alignment",),
    "bad_strides": (),
}

_CHECK = """\
typedef struct {
  int32_t ndim;
  const int64_t* shape;
  uint64_t alignment;
  uint64_t byte_offset;
  int32_t device_type;
  DLDataType dtype;
  const char* dtype_name;
  const char* device_text;
} TVMTensorRow;

typedef struct {
  int32_t position;
  const char* name;
  const TVMTensorRow* row;
} TVMTensorArgument;

/* Whether an argument is what its row says; if not, the error is reported. */
static bool tvm_tensor_matches(const char* name, int32_t code, const DLTensor* tensor, int32_t device_id, const TVMTensorRow* row) {
  int64_t size = 1;
  int32_t i;
  if (@accepted) {
    @bad_kind;
    return false;
  }
  if (tensor == NULL) {
    @bad_null;
    return false;
  }
  if (tensor->ndim != row->ndim) {
    @bad_rank;
    return false;
  }
  if (tensor->dtype.code != row->dtype.code || tensor->dtype.bits != row->dtype.bits || tensor->dtype.lanes != row->dtype.lanes) {
    @bad_type;
    return false;
  }
  for (i = 0; i < row->ndim; ++i) {
    if (tensor->shape[i] != row->shape[i]) {
      @bad_extent;
      return false;
    }
    size *= row->shape[i];
  }
  if (tensor->byte_offset != row->byte_offset) {
    @bad_offset;
    return false;
  }
  if ((int32_t)tensor->device.device_type != row->device_type) {
    @bad_device;
    return false;
  }
  if (device_id >= 0 && tensor->device.device_id != device_id) {
    @bad_number;
    return false;
  }
  if (tensor->data == NULL && size != 0) {
    @bad_data;
    return false;
  }
  if (((uintptr_t)tensor->data & (row->alignment - 1)) != 0) {
    @bad_alignment;
    return false;
  }
  if (tensor->strides != NULL) {
    int64_t step = 1;
    for (i = row->ndim - 1; i >= 0; --i) {
      if (row->shape[i] != 1 && tensor->strides[i] != step) {
        @bad_strides;
        return false;
      }
      step *= row->shape[i];
    }
  }
  return true;
}

/* Whether all arguments are what the table says, on the device of the first. */
static bool tvm_tensors_match(void* args, const int32_t* codes, int32_t count, const TVMTensorArgument* table) {
  int32_t device_id = -1;
  int32_t i;
  for (i = 0; i < count; ++i) {
    int32_t position = table[i].position;
    const DLTensor* tensor = (const DLTensor*)((TVMValue*)args)[position].v_handle;
    if (!tvm_tensor_matches(table[i].name, codes[position], tensor, device_id, table[i].row)) {
      return false;
    }
    device_id = tensor->device.device_id;
  }
  return true;
}
"""

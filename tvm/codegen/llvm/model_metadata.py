"""The description of a model as LLVM data, and the function that gives its address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm.codegen.model_metadata import FUNCTION, VERSION, ConstantInfo, ModelMetadata, TensorInfo
from tvm.tir.transform.abi import ArgCode

from .types import byte_string, quoted

if TYPE_CHECKING:
    from .module import ModuleWriter

_TENSOR = "{ ptr, ptr, i64, { i8, i8, i16 } }"
_CONSTANT = "{ ptr, i64, i64, ptr }"


def write_model_metadata(writer: ModuleWriter, metadata: ModelMetadata) -> None:
    """Add the data and the packed function to a module."""
    parts = [
        f"i64 {VERSION}",
        *_tensors(writer, metadata.inputs),
        *_tensors(writer, metadata.outputs),
        *_tensors(writer, metadata.workspace_pools),
        *_constants(writer, metadata.constants),
        f"ptr {writer.string(metadata.mod_name)}",
    ]
    types = ", ".join([part.split()[0] for part in parts])
    data = writer.constant(f"{{ {types} }} {{ {', '.join(parts)} }}")
    writer.definitions.append(
        f"define i32 @{quoted(FUNCTION)}(ptr %args, ptr %codes, i32 %count, ptr %result, "
        "ptr %result_code, ptr %resource) #0 {\n"
        f"  store ptr {data}, ptr %result, align 8\n"
        f"  store i32 {int(ArgCode.HANDLE)}, ptr %result_code, align 4\n"
        "  ret i32 0\n}"
    )
    writer.results[FUNCTION] = "i32"
    writer.exports.functions.append(FUNCTION)


def _tensors(writer: ModuleWriter, tensors: Sequence[TensorInfo]) -> list[str]:
    """The fields that point to tensors and count them."""
    if not tensors:
        return ["ptr null", "i64 0"]
    items = [_tensor(writer, tensor) for tensor in tensors]
    array = writer.constant(
        f"[{len(items)} x {_TENSOR}] [{', '.join([f'{_TENSOR} {i}' for i in items])}]"
    )
    return [f"ptr {array}", f"i64 {len(items)}"]


def _tensor(writer: ModuleWriter, tensor: TensorInfo) -> str:
    extents = ", ".join([f"i64 {extent}" for extent in tensor.shape])
    rank = len(tensor.shape)
    shape = writer.constant(f"[{rank} x i64] [{extents}]") if rank else "null"
    code, bits, lanes = tensor.type_fields
    name = writer.string(tensor.name)
    dtype = f"{{ i8, i8, i16 }} {{ i8 {code}, i8 {bits}, i16 {lanes} }}"
    return f"{{ ptr {name}, ptr {shape}, i64 {rank}, {dtype} }}"


def _constants(writer: ModuleWriter, constants: Sequence[ConstantInfo]) -> list[str]:
    """The fields that point to constants and count them."""
    if not constants:
        return ["ptr null", "i64 0"]
    items = []
    for constant in constants:
        size = len(constant.data)
        data = writer.constant(f"[{size} x i8] {byte_string(constant.data)}")
        name = writer.string(constant.name)
        items.append(f"{{ ptr {name}, i64 {constant.byte_offset}, i64 {size}, ptr {data} }}")
    array = writer.constant(
        f"[{len(items)} x {_CONSTANT}] [{', '.join([f'{_CONSTANT} {i}' for i in items])}]"
    )
    return [f"ptr {array}", f"i64 {len(items)}"]

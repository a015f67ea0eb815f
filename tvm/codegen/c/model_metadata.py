"""The description of a model as C data, and the function that gives its address."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.codegen.model_metadata import FUNCTION, VERSION, ConstantInfo, ModelMetadata, TensorInfo
from tvm.tir.transform.abi import ArgCode

from .types import string_text

_BYTES_IN_LINE = 32


def model_metadata_text(metadata: ModelMetadata) -> str:
    """Definitions of the data and of the packed function."""
    fields = [
        f"{VERSION}",
        *_pointer("inputs", metadata.inputs),
        *_pointer("outputs", metadata.outputs),
        *_pointer("workspace_pools", metadata.workspace_pools),
        *_pointer("constants", metadata.constants),
        string_text(metadata.mod_name),
    ]
    return "\n".join(
        [
            "#include <tvm/runtime/metadata_types.h>",
            *_tensors("inputs", metadata.inputs),
            *_tensors("outputs", metadata.outputs),
            *_tensors("workspace_pools", metadata.workspace_pools),
            *_constants("constants", metadata.constants),
            f"static const struct TVMMetadata tvm_model = {{\n  {', '.join(fields)}\n}};",
            f"TVM_DLL int32_t {FUNCTION}(TVMValue* args, int32_t* codes, int32_t count, TVMValue* result,",
            "                               int32_t* result_code, void* resource) {",
            "  (void)args;\n  (void)codes;\n  (void)count;\n  (void)resource;",
            "  result[0].v_handle = (void*)&tvm_model;",
            f"  result_code[0] = {int(ArgCode.HANDLE)};",
            "  return 0;\n}",
        ]
    )


def _pointer(name: str, items: Sequence[object]) -> list[str]:
    return [f"tvm_{name}", str(len(items))] if items else ["NULL", "0"]


def _tensors(name: str, tensors: Sequence[TensorInfo]) -> list[str]:
    if not tensors:
        return []
    shapes = [
        f"static const int64_t tvm_{name}_shape{i}[] = {{{', '.join(map(str, tensor.shape))}}};"
        for i, tensor in enumerate(tensors)
        if tensor.shape
    ]
    rows = []
    for i, tensor in enumerate(tensors):
        shape = f"tvm_{name}_shape{i}" if tensor.shape else "NULL"
        code, bits, lanes = tensor.type_fields
        text = string_text(tensor.name)
        rows.append(f"  {{{text}, {shape}, {len(tensor.shape)}, {{{code}, {bits}, {lanes}}}}},\n")
    return [*shapes, f"static const struct TVMTensorInfo tvm_{name}[] = {{\n{''.join(rows)}}};"]


def _constants(name: str, constants: Sequence[ConstantInfo]) -> list[str]:
    if not constants:
        return []
    parts, rows = [], []
    for i, constant in enumerate(constants):
        data = constant.data
        lines = [
            ",".join(map(str, data[at : at + _BYTES_IN_LINE]))
            for at in range(0, len(data), _BYTES_IN_LINE)
        ]
        text = ",\n  ".join(lines)
        parts.append(f"static const uint8_t tvm_{name}_data{i}[] = {{\n  {text}\n}};")
        label = string_text(constant.name)
        rows.append(f"  {{{label}, {constant.byte_offset}, {len(data)}, tvm_{name}_data{i}}},\n")
    return [*parts, f"static const struct TVMConstantInfo tvm_{name}[] = {{\n{''.join(rows)}}};"]

"""Containers, objects, modules and devices as global functions ``runtime.*``, under their classic names.

Programs reach them as ``tvm.get_global_func("runtime.Array")`` or ``tvm.runtime._ffi_api.Array``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm._ffi import _core
from tvm._ffi.registry import get_global_func, register_func
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime import ndarray
from tvm.runtime.container import (
    ADT,
    Array,
    Map,
    ShapeTuple,
    String,
    adt_of_native,
    getitem_helper,
    make_map,
)
from tvm.runtime.export import BLOB, imports_to_c, packed_imports
from tvm.runtime.module import load_static_library
from tvm.runtime.name_transforms import sanitize_name
from tvm.runtime.object import Object
from tvm.runtime.packed_func import NativeValue, PackedFunc, convert_to_tvm_func
from tvm.runtime.profiling import PAPIMetricCollector
from tvm.runtime.vm import Executable
from tvm.support.dtype import dtype as as_dtype


def _make_map(*keys_and_values: Any) -> Map:
    if len(keys_and_values) % 2:
        raise ValueError(f"Map needs keys and values in turn, got {len(keys_and_values)} arguments")
    return make_map(dict(zip(keys_and_values[::2], keys_and_values[1::2], strict=True)))


def _map_item(mapping: Any, key: Any) -> Any:
    if key not in mapping:
        raise KeyError(key)
    return mapping[key]


def _map_items(mapping: Any) -> Array:
    return Array([part for item in mapping.items() for part in item])


def _item(sequence: Any, index: int) -> Any:
    return getitem_helper(sequence, type(sequence).__getitem__, len(sequence), index)


def _pointer_hash(value: Any) -> int:
    native = value._native if isinstance(value, Object) else None
    return id(value) if native is None else int(native.handle.value or 0)


def _set_stream(device_type: int, device_id: int, stream: Any) -> None:
    address = stream.value if isinstance(stream, ctypes.c_void_p) else stream
    Device(device_type, device_id).set_raw_stream(ctypes.c_void_p(address) if address else None)


def _allocate(shape: Any, dtype: Any, device: Device, mem_scope: str | None) -> Any:
    return ndarray.empty(tuple(shape), dtype, device, mem_scope)


def _create_view(array: Any, shape: Any, dtype: Any, relative_byte_offset: int = 0) -> Any:
    return array._create_view(tuple(shape), as_dtype(dtype), relative_byte_offset)


def _module_function(module: Any, name: str, query_imports: bool) -> PackedFunc | None:
    there_is = module.implements_function(name, query_imports)
    return module.get_function(name, query_imports) if there_is else None


def _imports_as_array(module: Any) -> Any:
    """The modules that it imports, as an array of bytes."""
    return ndarray.array(np.frombuffer(packed_imports(module), "uint8"))


def _spread_container(
    value: Any, make_array: PackedFunc, make_map: PackedFunc, make_shape: PackedFunc | None = None
) -> None:
    """Give the items of a container to the function that makes the native one.

    Shapes are arrays of integers, unless there is a function for them: among values of programs,
    where tagged tuples are tuples.
    """
    if isinstance(value, Map):
        make_map(*_map_items(value))
    elif isinstance(value, ShapeTuple):
        (make_shape or make_array)(*value)
    elif isinstance(value, Array) or (make_shape is not None and isinstance(value, ADT)):
        make_array(*value)


def _native_items(native: NativeValue) -> list[Any]:
    item = get_global_func("runtime.NativeItem")
    return [item(native, i) for i in range(get_global_func("runtime.NativeSize")(native))]


def _array_of_native(native: NativeValue) -> Array:
    return Array(_native_items(native))


def _shape_of_native(native: NativeValue) -> ShapeTuple:
    return ShapeTuple(_native_items(native))


def _map_of_native(native: NativeValue) -> Map:
    count = 2 * get_global_func("runtime.NativeSize")(native)
    item = get_global_func("runtime.NativeItem")
    return Map({item(native, i): item(native, i + 1) for i in range(0, count, 2)})


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Array": lambda *items: Array(items),
    "ArrayGetItem": _item,
    "ArraySize": len,
    "Map": _make_map,
    "MapSize": len,
    "MapGetItem": _map_item,
    "MapCount": lambda mapping, key: int(key in mapping),
    "MapItems": _map_items,
    "SpreadContainer": _spread_container,
    "PrintLine": lambda text: print(text),
    "String": String,
    "GetFFIString": str,
    "ShapeTuple": lambda *extents: ShapeTuple(extents),
    "GetShapeTupleSize": len,
    "GetShapeTupleElem": _item,
    "ADT": lambda tag, *fields: ADT(tag, fields),
    "Tuple": lambda *fields: ADT(0, fields),
    "GetADTTag": lambda adt: adt.tag,
    "GetADTSize": len,
    "GetADTFields": _item,
    "BoxBool": bool,
    "UnBoxBool": bool,
    "ObjectPtrHash": _pointer_hash,
    "SanitizeName": sanitize_name,
    "TVMSetStream": _set_stream,
    "TVMArrayAllocWithScope": _allocate,
    "TVMArrayCreateView": _create_view,
    "ModuleGetFunction": _module_function,
    "ModuleLoadStaticLibrary": load_static_library,
    "ModulePackImportsToC": imports_to_c,
    "ModulePackImportsToNDArray": _imports_as_array,
    "ModuleImportsBlobName": lambda: BLOB,
    "GetNumOfGlobals": lambda executable: len(Executable(executable).globals),
    "GetGlobalFields": lambda executable, i: Executable(executable).globals[i],
    "GetNumOfPrimitives": lambda executable: len(Executable(executable).primitive_ops),
    "GetPrimitiveFields": lambda executable, i: Executable(executable).primitive_ops[i],
    "profiling.PAPIMetricCollector": PAPIMetricCollector,
}

for _name, _function in FUNCTIONS.items():
    # a type is not called when it crosses, so it needs a function around it
    register_func(f"runtime.{_name}", convert_to_tvm_func(_function), override=True)

_core.set_object_converter(_core.type_index("Array"), _array_of_native)
_core.set_object_converter(_core.type_index("Map"), _map_of_native)
_core.set_object_converter(_core.type_index("runtime.ADT"), adt_of_native)
_core.set_object_converter(_core.type_index("runtime.ShapeTuple"), _shape_of_native)

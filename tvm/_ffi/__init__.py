"""The binding of the native runtime: packed calls, the global registry, errors."""

from tvm._ffi import _api, base, libinfo, native_object, registry, runtime_ctypes
from tvm._ffi._api import _init_api, _init_api_prefix
from tvm._ffi.base import register_error
from tvm._ffi.registry import (
    extract_ext_funcs,
    get_global_func,
    get_object_type_index,
    list_global_func_names,
    register_extension,
    register_func,
    register_object,
    remove_global_func,
)

__all__ = [
    "extract_ext_funcs",
    "get_global_func",
    "get_object_type_index",
    "list_global_func_names",
    "register_error",
    "register_extension",
    "register_func",
    "register_object",
    "remove_global_func",
]

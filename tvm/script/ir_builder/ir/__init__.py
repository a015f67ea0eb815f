"""Modules: ``from tvm.script.ir_builder import ir as I``."""

from .ir import (
    GlobalVar,
    Range,
    current_ir_module,
    decl_function,
    def_function,
    dummy_global_info,
    ir_module,
    lookup_vdevice,
    module_attrs,
    module_get_attr,
    module_get_attrs,
    module_global_infos,
    module_set_attr,
    vdevice,
)

__all__ = [
    "GlobalVar", "Range", "current_ir_module", "decl_function", "def_function",
    "dummy_global_info", "ir_module", "lookup_vdevice", "module_attrs", "module_get_attr",
    "module_get_attrs", "module_global_infos", "module_set_attr", "vdevice",
]  # fmt: skip

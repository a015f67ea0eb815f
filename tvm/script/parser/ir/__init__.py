"""Modules: ``from tvm.script.parser import ir as I``, the same as ``tvm.script.ir``."""

from ...ir_builder.ir import (
    GlobalVar,
    Range,
    dummy_global_info,
    lookup_vdevice,
    module_attrs,
    module_get_attr,
    module_get_attrs,
    module_global_infos,
    module_set_attr,
    vdevice,
)
from . import parser
from .entry import ir_module

__all__ = [
    "GlobalVar", "Range", "dummy_global_info", "ir_module", "lookup_vdevice", "module_attrs",
    "module_get_attr", "module_get_attrs", "module_global_infos", "module_set_attr", "parser",
    "vdevice",
]  # fmt: skip

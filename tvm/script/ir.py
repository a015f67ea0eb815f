"""``from tvm.script import ir as I``: the words of modules."""

from .parser.ir import (
    GlobalVar,
    Range,
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
    "GlobalVar", "Range", "dummy_global_info", "ir_module", "lookup_vdevice", "module_attrs",
    "module_get_attr", "module_get_attrs", "module_global_infos", "module_set_attr", "vdevice",
]  # fmt: skip

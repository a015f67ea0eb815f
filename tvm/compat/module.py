"""``tvm.module`` of old."""

from tvm.runtime.module import Module, enabled, load_module, system_lib

load = load_module

__all__ = ["Module", "enabled", "load", "load_module", "system_lib"]

"""An older name of ``debug_executor``."""

from tvm.contrib.debugger.debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]

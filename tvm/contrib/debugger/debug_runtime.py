"""The debugging executor under its name of release 0.7."""

from typing import Any

from tvm.contrib.debugger.debug_executor import GraphModuleDebug
from tvm.support.deprecation import warn_renamed

from . import debug_executor


def create(
    graph_json_str: str, libmod: Any, ctx: Any, dump_root: str | None = None
) -> GraphModuleDebug:
    """An executor of a graph, as :func:`tvm.contrib.debugger.debug_executor.create` makes it."""
    return debug_executor.create(graph_json_str, libmod, ctx, dump_root)


warn_renamed("tvm.contrib.debugger.debug_runtime", "tvm.contrib.debugger.debug_executor")

__all__ = ["GraphModuleDebug", "create"]

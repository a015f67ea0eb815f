"""The graph executor under its name of release 0.7."""

from typing import Any

from tvm.contrib.graph_executor import GraphModule, get_device
from tvm.support.deprecation import warn_renamed

from . import graph_executor


def create(graph_json_str: str, libmod: Any, ctx: Any) -> GraphModule:
    """An executor of a graph, as :func:`tvm.contrib.graph_executor.create` makes it."""
    return graph_executor.create(graph_json_str, libmod, ctx)


warn_renamed("tvm.contrib.graph_runtime", "tvm.contrib.graph_executor")

__all__ = ["GraphModule", "create", "get_device"]

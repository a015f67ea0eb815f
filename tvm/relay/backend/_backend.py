"""Compiling functions that were lowered."""

from __future__ import annotations

from typing import Any

from tvm.driver import build as build_functions
from tvm.ir.module import IRModule
from tvm.relay.backend.storage_info import plan_graph_memory as GraphPlanMemory
from tvm.runtime.module import Module
from tvm.target import Target

__all__ = ["GraphPlanMemory", "build"]


def build(mod: IRModule, target: Any, target_host: Any = None) -> Module:
    """The module of lowered functions, compiled for a target.

    Parameters
    ----------
    target_host : the machine of the host code, if it is another one.
    """
    chosen, host = Target.canon_target_and_host(target, target_host)
    return build_functions(mod, target=chosen, target_host=host)

"""The graph executor's code generator under its classic name.

codegen = GraphExecutorCodegen(None, "llvm")
graph_json, kernels, params = codegen.codegen(module, module["main"])
"""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.relay.backend.codegen_modules import GraphCodegen
from tvm.relay.function import Function
from tvm.runtime.ndarray import NDArray
from tvm.target import Target


class GraphExecutorCodegen:
    """Lowers fused functions for one target.

    Parameters
    ----------
    mod : unused in all releases.
    target : Target or str
        For which machine.
    """

    def __init__(self, mod: Any, target: Any) -> None:
        self._codegen = GraphCodegen()
        self._codegen.init(mod, target)

    def codegen(
        self, ir_module: IRModule, func: Function
    ) -> tuple[str, dict[Target, IRModule], dict[str, NDArray]]:
        """The graph, the kernels by target, and the parameters of a function, which is fused if it
        has calls of operators by themselves."""
        self._codegen.codegen(ir_module, func, "default")
        params = {
            name: self._codegen.get_param_by_name(name) for name in self._codegen.list_params_name()
        }
        return self._codegen.get_graph_json(), self._codegen.get_irmodule(), params

"""The graph executor's code generator under its classic name.

codegen = GraphExecutorCodegen(None, "llvm")
graph_json, kernels, params = codegen.codegen(module, module["main"])
"""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relay.backend.graph import to_json
from tvm.relay.backend.lowering import lower_fused
from tvm.relay.backend.memory_plan import plan_memory
from tvm.relay.function import Function
from tvm.relay.progress import progress
from tvm.relay.transform import FuseOps, InferType
from tvm.runtime.ndarray import NDArray
from tvm.support.scope import compiling
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
        del mod
        targets = Target.canon_multi_target(target)
        if not targets:
            raise TVMError("GraphExecutorCodegen requires a target, got none")
        self.target = targets[0]

    def codegen(
        self, ir_module: IRModule, func: Function
    ) -> tuple[str, dict[Target, IRModule], dict[str, NDArray]]:
        """The graph, the kernels by target, and the parameters of a function, which is fused if it
        has calls of operators by themselves."""
        module = ir_module.clone()
        module["main"] = func
        fused = InferType()(FuseOps()(InferType()(module)))
        with compiling(), progress() as step:
            model = lower_fused(fused, self.target, "default", step)
        plan = plan_memory(model.graph.graph)
        device_type = self.target.get_target_device_type()
        graph_json = to_json(model.graph.graph, plan.storage_ids, device_type)
        return graph_json, {self.target: model.kernels}, model.graph.params

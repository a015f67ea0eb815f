"""Launches of kernels that are the same in each run are recorded once and replayed.

storage = memory.alloc_storage(...)        gv = call_builtin_with_ctx("vm.builtin.cuda_graph.get_cached_alloc", (cuda_graph_alloc, 0))
a = memory.alloc_tensor(storage, ...)      storage = gv[0]
exp(x, a)                              ->  a = memory.alloc_tensor(storage, ...)
exp(a, b)                                  exp(x, a)
                                           call_builtin_with_ctx("vm.builtin.cuda_graph.run_or_capture", (main_cuda_graph_capture, (a, b), 0))

All functions of a module share the storages: those of one scope by size, the largest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.pass_context import register_pass_config
from tvm.ir.transform import ModulePass, Pass, PassInfo
from tvm.relax.bind import copied_in
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Function,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    relax_functions,
)
from tvm.relax.op.base import call_builtin_with_ctx
from tvm.relax.struct_info import ShapeExpr, TupleStructInfo
from tvm.support import deep
from tvm.tir.expr import IntImm

from .cuda_graph_plan import GraphPlan, Planner, Region

_ENABLED = "relax.backend.use_cuda_graph"
register_pass_config(_ENABLED, bool)


class _Rewriter:
    """Puts the calls into one function."""

    def __init__(
        self, builder: BlockBuilder, name: str, plan: GraphPlan, alloc: GlobalVar | None,
        places: Mapping[Var, int], info: TupleStructInfo, first: int,
    ) -> None:  # fmt: skip
        self.builder = builder
        self.name = name
        self.alloc = alloc
        self.places = places
        self.info = info
        self.storages: Var | None = None
        self.indices = {id(region): first + i for i, region in enumerate(plan.regions)}
        self.owners = {b.var: region for region in plan.regions for b in region.bindings}
        self.bindings: list[Binding] = []

    def function(self, func: Function) -> Function:
        blocks = [self._block(block) for block in func.body.blocks]
        return func.replace(body=func.body.replace(blocks=tuple(blocks)))

    def _block(self, block: BindingBlock) -> BindingBlock:
        self.bindings = []
        for binding in block.bindings:
            region = self.owners.get(binding.var)
            if binding.var in self.places:
                self._storage(binding.var)
            elif region is None:
                self.bindings.append(binding)
            elif binding is region.bindings[-1]:
                self._launch(region)
        return block.replace(bindings=tuple(self.bindings))

    def _emit(self, value: RelayExpr) -> Var:
        made = self.builder.normalize(value)
        var = Var("gv", made.struct_info)
        self.bindings.append(VarBinding(var, made))
        return var

    def _storage(self, var: Var) -> None:
        if self.storages is None:
            self.storages = self._emit(
                call_builtin_with_ctx(
                    "vm.builtin.cuda_graph.get_cached_alloc",
                    [self.alloc, PrimValue(0)],
                    sinfo_args=[self.info],
                )
            )
        item = self.builder.normalize(TupleGetItem(self.storages, self.places[var]))
        self.bindings.append(VarBinding(var, item))

    def _launch(self, region: Region) -> None:
        func = self._recorded(region)
        gvar = self.builder.add_func(func, f"{self.name}_cuda_graph_capture")
        shape = [ShapeExpr(list(region.symbols))] if region.symbols else []
        inputs = Tuple([*region.inputs, *shape])
        args = [gvar, inputs, PrimValue(self.indices[id(region)]), *shape]
        made = self._emit(
            call_builtin_with_ctx(
                "vm.builtin.cuda_graph.run_or_capture", args, sinfo_args=[func.ret_struct_info]
            )
        )
        outputs = list(region.outputs)
        for binding in region.bindings:
            if binding.var in region.outputs:
                index = [var is binding.var for var in outputs].index(True)
                item = self.builder.normalize(TupleGetItem(made, index))
                self.bindings.append(VarBinding(binding.var, item))

    def _recorded(self, region: Region) -> Function:
        """The function of a region."""
        shape = ShapeExpr(list(region.symbols))
        params = [
            *region.inputs,
            *([Var("shape_expr", shape.struct_info)] if region.symbols else []),
        ]
        return _returning(self.builder.get(), params, region.bindings, list(region.outputs))


def _returning(
    mod: IRModule, params: list[Var], bindings: list[VarBinding], outputs: list[Var]
) -> Function:
    """A private function of bindings in a row that returns a tuple."""
    result = Tuple(outputs)
    info = TupleStructInfo([var.struct_info for var in outputs])
    var = Var("gv", info)
    block = BindingBlock([*bindings, VarBinding(var, result)])
    body = SeqExpr([block], var)
    made = Function(params, body, info, True, {"relax.force_pure": True})
    normal = BlockBuilder(mod).normalize(made)
    assert isinstance(normal, Function)
    return copied_in(mod, normal)


def _merged(plans: list[GraphPlan]) -> tuple[list[VarBinding], dict[Var, int]]:
    """The storages that serve all functions, and which of them each function's are."""
    by_scope: dict[str, list[list[VarBinding]]] = {}
    for plan in plans:
        own: dict[str, list[VarBinding]] = {}
        for binding in plan.storages:
            own.setdefault(_scope(binding), []).append(binding)
        for scope, storages in own.items():
            by_scope.setdefault(scope, []).append(sorted(storages, key=_bytes, reverse=True))
    shared: list[VarBinding] = []
    places: dict[Var, int] = {}
    for _, lists in sorted(by_scope.items()):
        for rank in range(max([len(storages) for storages in lists])):
            having = [storages[rank] for storages in lists if rank < len(storages)]
            places.update({binding.var: len(shared) for binding in having})
            shared.append(max(having, key=_bytes))
    return shared, places


def _scope(storage: VarBinding) -> str:
    call = storage.value
    assert isinstance(call, Call) and isinstance(call.args[2], StringImm)
    return str(call.args[2].value)


def _bytes(storage: VarBinding) -> int:
    call = storage.value
    assert isinstance(call, Call) and isinstance(call.args[0], ShapeExpr)
    size = call.args[0].values[0]
    assert isinstance(size, IntImm)
    return int(size.value)


def rewrite_cuda_graph(mod: IRModule) -> IRModule:
    """The module with regions that CUDA graphs record."""
    functions = sorted(relax_functions(mod).items(), key=lambda item: item[0].name_hint)
    plans = {gvar: Planner(mod, func).run() for gvar, func in functions}
    shared, places = _merged(list(plans.values()))
    builder = BlockBuilder(mod)
    alloc = None
    if shared:
        alloc = builder.add_func(
            _returning(mod, [], shared, [b.var for b in shared]), "cuda_graph_alloc"
        )
    info = TupleStructInfo([b.var.struct_info for b in shared])
    count = 0
    for gvar, func in functions:
        plan = plans[gvar]
        if plan.storages or plan.regions:
            rewriter = _Rewriter(builder, gvar.name_hint, plan, alloc, places, info, count)
            builder.update_func(gvar, rewriter.function(func))
            count += len(plan.regions)
    return builder.get() if shared or count else mod


def RewriteCUDAGraph() -> Pass:
    """Let CUDA graphs record what is the same in each run, where the configuration asks for it.

    ``PassContext(config={"relax.backend.use_cuda_graph": True})`` does. The pass stands behind
    `StaticPlanBlockMemory`. A function's attribute ``num_input`` says that its other parameters are
    weights, which stay where they are, and ``relax.rewrite_cuda_graph.capture_symbolic_vars`` names
    symbolic variables for whose values there is a recording each.

    Returns
    -------
    Pass
    """

    @deep
    def run(mod: IRModule, context: Any) -> IRModule:
        return rewrite_cuda_graph(mod) if context.get(_ENABLED, False) else mod

    return ModulePass(run, PassInfo(0, "RewriteCUDAGraph", ()))

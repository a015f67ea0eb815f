"""Give each part of a program to the compiler for which it costs the least.

nn.relu(nn.conv2d(%x, %w))
    ->
def @collage_dnnl_nn_conv2d_nn_relu(%FunctionVar_0, Compiler="dnnl", Primitive=1) { .. }
@collage_dnnl_nn_conv2d_nn_relu(%x)

Candidates are the matches of the compilers' pattern tables, neighbours of one compiler joined, and
the kernels that we would make; an estimator tells what each costs, and those are taken that cover
the program at the least total cost. Those of one compiler that touch become one function.
"""

from __future__ import annotations

from collections.abc import Iterable

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import register_pass_config
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.backend.target_hooks import is_external
from tvm.relay.expr import Call, Tuple, TupleGetItem, Var
from tvm.relay.function import Function, is_external_function
from tvm.relay.transform.collage_candidates import Part, PartFinder
from tvm.relay.transform.collage_costs import CostEstimator
from tvm.relay.transform.collage_search import cheapest_cover, united, worthwhile
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import (
    keep_span,
    nodes_outside_functions,
    operands,
    post_order_by,
    with_operands,
)
from tvm.runtime.name_transforms import sanitize_name
from tvm.support import UniqueNames
from tvm.target import Target
from tvm.target.compilation_config import CompilationConfig

TVM_DEPTH = "relay.collage.tvm_max_depth"
BYOC_DEPTH = "relay.collage.byoc_max_depth"
# how matches of a compiler are joined: "cutlass.NoFusion", "x.TVMFusion", "x.ArbitraryFusion"
BYOC_STYLE = "relay.collage.byoc_fusion_style"
register_pass_config(TVM_DEPTH, int)
register_pass_config(BYOC_DEPTH, int)
register_pass_config(BYOC_STYLE, list)
_TVM_DEPTH, _BYOC_DEPTH = 4, 8
_FUSIONS = ("NoFusion", "TVMFusion", "ArbitraryFusion")


def CollagePartition(
    config: CompilationConfig, cost_estimator: CostEstimator | None = None
) -> Pass:
    """The pass.

    Parameters
    ----------
    config : its targets say which compilers there are: those of kinds that are external.
    cost_estimator : tells what a part costs on a target; by default it is measured.
    """
    estimator = cost_estimator or CostEstimator()

    def run(mod: IRModule, context: PassContext) -> IRModule:
        mod = infer_types(mod)
        chooser = _Chooser(mod, config, estimator, context)
        new = map_relay_functions(mod, lambda f: f if is_external_function(f) else chooser.run(f))
        return infer_types(mod.with_functions({**new.functions, **chooser.made}))

    return ModulePass(run, PassInfo(0, "CollagePartition"))


class _Chooser:
    """Chooses parts of the functions of one module."""

    def __init__(
        self,
        mod: IRModule,
        config: CompilationConfig,
        estimator: CostEstimator,
        context: PassContext,
    ) -> None:
        self.mod = mod
        self.estimator = estimator
        targets = config.primitive_targets
        self.compilers = [t for t in targets if is_external(t)]
        self.ours = next((t for t in targets if t not in self.compilers), config.host_target)
        self.tvm_depth = int(context.config.get(TVM_DEPTH, 0) or _TVM_DEPTH)
        self.byoc_depth = int(context.config.get(BYOC_DEPTH, 0) or _BYOC_DEPTH)
        self.fusion = _fusion_styles(context.config.get(BYOC_STYLE, ()))
        self.made: dict[GlobalVar, Function] = {}
        self._names = UniqueNames({gvar.name_hint: 1 for gvar in mod.functions})
        self._costs: dict[int, list[tuple[Function, Target, float]]] = {}

    def run(self, func: Function) -> Function:
        order = nodes_outside_functions(func.body)
        steps = [n for n in order if isinstance(n, (Call, Tuple, TupleGetItem))]
        finder = PartFinder(func.body, order, self.mod)
        parts = finder.native(self.ours, self.tvm_depth)
        for target in self.compilers:
            parts += finder.external(target, self.byoc_depth, self._fusion(target))
        parts = worthwhile(parts)
        costs = {id(part): self._cost(part) for part in parts}
        chosen = cheapest_cover(steps, parts, costs)
        alone = [p for p in chosen if self._fusion(p.target) == "NoFusion"]
        together = [p for p in chosen if p.target in self.compilers and p not in alone]
        taken = [*(p for p in alone if p.target in self.compilers), *united(together, finder)]
        return func.replace(body=self._rewritten(func.body, taken, finder)) if taken else func

    def _fusion(self, target: Target) -> str:
        return self.fusion.get(target.kind.name, "ArbitraryFusion")

    def _cost(self, part: Part) -> float:
        if not any([isinstance(node, Call) for node in part.inside.values()]):
            return 0.0  # tuples are no work
        func = part.function()
        known = self._costs.setdefault(structural_hash(func), [])
        for other, target, cost in known:
            if target is part.target and structural_equal(other, func):
                return cost
        cost = self.estimator.estimate(self._module(func, part.target), part.target)
        known.append((func, part.target, cost))
        return cost

    def _module(self, func: Function, target: Target) -> IRModule:
        """A module whose `main` is the part, in the hands of its compiler."""
        functions = {g: f for g, f in self.mod.functions.items() if g.name_hint != "main"}
        if target not in self.compilers:
            return infer_types(self.mod.with_functions({**functions, GlobalVar("main"): func}))
        called = _for_compiler(func, target.kind.name, "collage_candidate")
        params = [Var(p.name_hint, p.type_annotation) for p in func.params]
        main = Function(params, Call(called, list(params)))
        return infer_types(self.mod.with_functions({**functions, GlobalVar("main"): main}))

    def _rewritten(self, body: RelayExpr, taken: list[Part], finder: PartFinder) -> RelayExpr:
        part_of = {id(output): part for part in taken for output in part.outputs}

        def below(node: RelayExpr) -> list[RelayExpr]:
            if (part := part_of.get(id(node))) is not None:
                return part.inputs()
            return [o for o in operands(node) if not isinstance(o, (Function, Op, GlobalVar))]

        done: dict[int, RelayExpr] = {}
        for node in post_order_by([body], below):
            if id(node) in done:
                continue
            if (part := part_of.get(id(node))) is not None:
                done.update(self._called(part, finder, done))
            else:
                new = with_operands(node, [done.get(id(o), o) for o in operands(node)])
                done[id(node)] = new if new is node else keep_span(node, new)
        return done[id(body)]

    def _called(
        self, part: Part, finder: PartFinder, done: dict[int, RelayExpr]
    ) -> dict[int, RelayExpr]:
        """Calls of a new function for a part, by the outputs that they give."""
        compiler = part.target.kind.name
        gvar = GlobalVar(
            self._names.fresh(f"collage_{sanitize_name(compiler)}{part.label(finder.place)}")
        )
        self.made[gvar] = _for_compiler(part.function(), compiler, gvar.name_hint)
        call = Call(gvar, [done[id(i)] for i in part.inputs()])
        if len(part.outputs) == 1:
            return {id(part.outputs[0]): keep_span(part.outputs[0], call)}
        return {
            id(output): keep_span(output, TupleGetItem(call, i))
            for i, output in enumerate(part.outputs)
        }


def _fusion_styles(styles: Iterable[object]) -> dict[str, str]:
    """How matches are joined, by the compiler."""
    found = {}
    for style in styles:
        compiler, _, fusion = str(style).rpartition(".")
        if not compiler or fusion not in _FUSIONS:
            raise TVMError(
                f"{BYOC_STYLE} requires a compiler and one of {list(_FUSIONS)}, "
                f"'cutlass.NoFusion', got '{style}'"
            )
        found[compiler] = fusion
    return found


def _for_compiler(func: Function, compiler: str, symbol: str) -> Function:
    return func.with_attr({"Primitive": 1, "Compiler": compiler, "global_symbol": symbol})

"""Give each part of a program to the compiler for which it costs the least.

nn.relu(nn.conv2d(%x, %w))
    ->
def @collage_dnnl_0(%FunctionVar_0, Compiler="dnnl", Primitive=1) { .. }
@collage_dnnl_0(%x)

Candidates are the matches of the compilers' pattern tables, neighbours of one compiler joined, and
the kernels that we would make; an estimator tells what each costs, and those are taken that cover
the program at the least total cost.
"""

from __future__ import annotations

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.pass_context import register_pass_config
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.backend.target_hooks import is_external
from tvm.relay.expr import Call, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.transform.collage_candidates import Part, PartFinder, cheapest_cover
from tvm.relay.transform.collage_costs import CostEstimator
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import nodes_outside_functions, rewrite_post_order
from tvm.support import UniqueNames
from tvm.target import Target
from tvm.target.compilation_config import CompilationConfig

TVM_DEPTH = "relay.collage.tvm_max_depth"
BYOC_DEPTH = "relay.collage.byoc_max_depth"
BYOC_STYLE = "relay.collage.byoc_fusion_style"  # "cutlass.NoFusion": its matches stay apart
register_pass_config(TVM_DEPTH, int)
register_pass_config(BYOC_DEPTH, int)
register_pass_config(BYOC_STYLE, list)
_DEPTH = 4


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
        functions = {}
        for gvar, func in mod.functions.items():
            if isinstance(func, Function) and not func.attrs.get("Compiler"):
                func = chooser.run(func)
            functions[gvar] = func
        return infer_types(mod.with_functions({**functions, **chooser.made}))

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
        self.tvm_depth = int(context.config.get(TVM_DEPTH, 0) or _DEPTH)
        self.byoc_depth = int(context.config.get(BYOC_DEPTH, 0) or _DEPTH)
        self.apart = {
            str(style).split(".")[0]
            for style in context.config.get(BYOC_STYLE, ())
            if str(style).endswith(".NoFusion")
        }
        self.made: dict[GlobalVar, Function] = {}
        self._names = UniqueNames()
        self._costs: dict[int, list[tuple[Function, Target, float]]] = {}

    def run(self, func: Function) -> Function:
        order = nodes_outside_functions(func.body)
        steps = [n for n in order if isinstance(n, (Call, Tuple, TupleGetItem))]
        finder = PartFinder(func.body, order, self.mod)
        parts = finder.native(self.ours, self.tvm_depth)
        for target in self.compilers:
            joins = target.kind.name not in self.apart
            parts += finder.external(target, self.byoc_depth, joins)
        costs = {id(part): self._cost(part, order) for part in parts}
        chosen = cheapest_cover(steps, parts, costs)
        taken = {id(p.root): p for p in chosen if p.target in self.compilers}
        return self._rewritten(func, taken, order)

    def _cost(self, part: Part, order: list[RelayExpr]) -> float:
        if not isinstance(part.root, Call):
            return 0.0  # tuples are no work
        func = part.function(order)
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

    def _rewritten(
        self, func: Function, taken: dict[int, Part], order: list[RelayExpr]
    ) -> Function:
        if not taken:
            return func
        done: dict[int, RelayExpr] = {}

        def replace(old: RelayExpr, new: RelayExpr) -> RelayExpr:
            if (part := taken.get(id(old))) is not None:
                compiler = part.target.kind.name
                gvar = GlobalVar(self._names.fresh(f"collage_{compiler}_{len(self.made)}"))
                called = part.function(order)
                self.made[gvar] = _for_compiler(called, compiler, gvar.name_hint)
                new = Call(gvar, [done.get(id(e), e) for e in part.inputs(order)])
            done[id(old)] = new
            return new

        return func.replace(body=rewrite_post_order(func.body, replace))


def _for_compiler(func: Function, compiler: str, symbol: str) -> Function:
    attrs = {"Primitive": 1, "Compiler": compiler, "Inline": 1, "global_symbol": symbol}
    return func.with_attr(attrs)

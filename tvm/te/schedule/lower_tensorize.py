"""The statements of a stage with a tensorized loop: the loops around it, and the intrinsic.

for i.outer:                              for i.outer:
    tensorized i.inner in range(16):  ->      bind C[i.outer*16 : i.outer*16 + 16] to its buffer:
        C[i.outer*16 + i.inner] = ...             vadd16(...)

What the loops compute has to be what the intrinsic was declared to compute: both are written over
the intrinsic's axes, with indices from the beginning of the regions, and compared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir import structural_equal
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op as tir_op
from tvm.tir.constants import is_one
from tvm.tir.expr import Call, IterVar, ProducerLoad, Range, Reduce, Select, Var
from tvm.tir.stmt import AttrStmt, IfThenElse, Stmt, seq
from tvm.tir.stmt_functor import Substituter, substitute, variables_of

from ..tensor import BaseComputeOp, ComputeOp, Tensor, TensorComputeOp
from ..tensor_intrin import TensorIntrin
from .infer_bound import read_regions
from .intervals import from_range, point, simple, to_range
from .loop_nest import LoopNest, guard, make_loop_nest, wrap
from .lower_compute import Check, Nester, find_checks, place_checks, spatial_loops, store_guards
from .message_passing import descend_from, pass_up_domain
from .relations import Ranges, Sets, Values
from .stage import Stage

Region = tuple[Range, ...]
Reads = list[tuple[Tensor, Region]]


def find_tensorized(stage: Stage) -> int | None:
    """The position of the tensorized loop, if there is one."""
    for position, iv in enumerate(stage.leaf_iter_vars):
        if stage.attr_of(iv).tensor_intrin is not None:
            return position
    return None


def provide_tensorized(
    stage: Stage, position: int, ranges: Ranges, threads: Collection[IterVar], nester: Nester
) -> Stmt:
    """The loops around the one at ``position``, with its intrinsic inside."""
    intrin = stage.attr_of(stage.leaf_iter_vars[position]).tensor_intrin
    assert intrin is not None and isinstance(stage.op, ComputeOp)
    try:
        return _Tensorized(stage, stage.op, intrin, position, ranges, threads, nester).build()
    except ScheduleError as error:
        error.add_context(f"stage {stage.op.name}")
        raise


@dataclass
class _Tensorized:
    stage: Stage
    op: BaseComputeOp
    intrin: TensorIntrin
    position: int
    ranges: Ranges
    threads: Collection[IterVar]
    nester: Nester

    def build(self) -> Stmt:
        stage, position = self.stage, self.position
        self._require_plain_loops()
        main = make_loop_nest(stage, self.ranges, self.threads)
        checks = find_checks(stage, self.ranges, main.values, ())
        self._require_free_of_inner(checks, main)
        nest = LoopNest(main.levels[:position], main.values)
        outside, depths = place_checks(checks, nest, self.ranges, self.nester)
        domains = self._root_domains(main.values)
        reads, matched = self._regions(domains, main.values)

        reducing = descend_from(stage, self.op.reduce_axis)
        around = stage.leaf_iter_vars[:position]
        common = next((i for i, iv in enumerate(around) if iv in reducing), position)
        guards = store_guards(stage, main.values)
        if common == position:
            if self.intrin.body is None:
                raise ScheduleError(
                    f"tensorize requires a body of {self.intrin.name}, which has reset and update "
                    "only, where no loop of the reduction is around it"
                )
            body = guard(guards, self._bind(self.intrin.body, domains, reads, matched))
            return guard(outside, self.nester.nest(nest.levels, body, self.threads))

        inside = [
            *self.threads,
            *[lv.thread for lv in nest.levels[:common] if lv.thread is not None],
        ]
        update = self._update(domains, reads, matched, reducing, main.values)
        update = self.nester.nest(nest.levels[common:], guard(guards, update), inside)
        parts = [update]
        if self.intrin.reduce_init is not None:
            done = [iv for iv, depth in depths.items() if iv is not None and depth <= common]
            parts.insert(0, self._reset(main, common, [*reducing, *done], inside, matched))
        body = self.nester.nest(nest.levels[:common], seq(parts), self.threads)
        return guard(outside, body)

    def _regions(
        self, domains: dict[IterVar, Range], values: Values
    ) -> tuple[Reads, dict[Var, PrimExpr]]:
        """What one call reads, and the values of the intrinsic's variables."""
        op = self.op
        if isinstance(op, TensorComputeOp):
            return _declared_regions(op, values)
        assert isinstance(op, ComputeOp)
        reads = read_regions(op, domains, self.ranges.analyzer)
        matcher = matcher_of(op, self.intrin, domains, reads, self.ranges.analyzer)
        # the intrinsic's body may mention loops that the call stands in
        loops = [*self.stage.leaf_iter_vars[: self.position], *matcher.fixed]
        matcher.matched.update({iv.var: values[iv] for iv in loops if values[iv] is not iv.var})
        matcher.check()
        return list(reads.items()), matcher.matched

    def _require_plain_loops(self) -> None:
        for iv in self.stage.leaf_iter_vars[self.position :]:
            is_bound = self.stage.attr_of(iv).bind_thread is not None
            if is_bound or self.nester.holds_stages(iv):
                raise ScheduleError(
                    "tensorize requires loops that the intrinsic can take the place of, got "
                    f"{iv.var.name}, "
                    + ("which is bound to threads" if is_bound else "inside which stages run"),
                    hint="bind and attach outside the tensorized loop",
                )

    def _require_free_of_inner(self, checks: Sequence[Check], main: LoopNest) -> None:
        inner = {iv.var for iv in self.stage.leaf_iter_vars[self.position :]}
        for _, check in checks:
            if any(var in inner for var in variables_of(check)):
                raise ScheduleError(
                    f"tensorize requires regions that are complete, got the condition {check} "
                    "on a tensorized loop",
                    hint="split by a factor of the extent, or pad the computation",
                )

    def _root_domains(self, values: Values) -> dict[IterVar, Range]:
        return domains_of_call(self.stage, self.position, self.ranges, values)

    def _update(
        self,
        domains: dict[IterVar, Range],
        reads: Reads,
        matched: dict[Var, PrimExpr],
        reducing: Collection[IterVar],
        values: Values,
    ) -> Stmt:
        """One part of the reduction; the first one clears the outputs if there is no reset."""
        intrin = self.intrin
        if intrin.reduce_update is None:
            raise ScheduleError(
                f"tensorize requires an update of {intrin.name} where a loop of the reduction is "
                f"around it, got a body only",
                hint="return (body, reset, update) from the intrinsic's function, or tensorize "
                "all loops of the reduction",
            )
        update = self._bind(intrin.reduce_update, domains, reads, matched)
        if intrin.reduce_init is not None:
            return update
        if intrin.body is None:
            raise ScheduleError(
                f"tensorize requires a body or a reset of {intrin.name}, got an update only"
            )
        around = [iv for iv in self.stage.leaf_iter_vars[: self.position] if iv in reducing]
        spatial = descend_from(self.stage, self.op.axis)
        if mixed := [iv.var.name for iv in around if iv in spatial]:
            raise ScheduleError(
                f"tensorize requires a reset of {intrin.name} where the loop {mixed[0]} was fused "
                "from spatial and reduction axes"
            )
        first = [
            tir_op.equal(values[iv], self.ranges[iv].min)
            for iv in around
            if not is_one(self.ranges[iv].extent)
        ]
        body = self._bind(intrin.body, domains, reads, matched)
        return IfThenElse(tir_op.all(*first), body, update) if first else body

    def _reset(
        self,
        main: LoopNest,
        common: int,
        skip: list[IterVar],
        inside: Collection[IterVar],
        matched: dict[Var, PrimExpr],
    ) -> Stmt:
        """Clear the outputs, once each."""
        stage, leaves = self.stage, self.stage.leaf_iter_vars
        spatial = descend_from(stage, self.op.axis)
        reducing = descend_from(stage, self.op.reduce_axis)
        loops = spatial_loops(stage, leaves[common : self.position], spatial, reducing)
        if any(iv in reducing and iv in spatial for iv in leaves[common:]):
            raise ScheduleError(
                "tensorize requires loops that are spatial or of the reduction, got one fused "
                "from both"
            )
        known = {level.iv: main.values[level.iv] for level in main.levels[:common]}
        inner = {iv: main.values[iv] for iv in leaves[self.position :] if iv not in reducing}
        nest = make_loop_nest(stage, self.ranges, inside, loops, {**known, **inner})
        checks = find_checks(stage, self.ranges, nest.values, skip)
        outside = place_checks(checks, nest, self.ranges, self.nester)[0]
        domains = self._root_domains(nest.values)
        assert self.intrin.reduce_init is not None
        body = self._bind(self.intrin.reduce_init, domains, [], matched)
        body = guard(store_guards(stage, nest.values), body)
        return guard(outside, wrap(nest.levels, body))

    def _bind(
        self,
        body: Stmt,
        domains: dict[IterVar, Range],
        reads: Reads,
        matched: dict[Var, PrimExpr],
    ) -> Stmt:
        """Let the intrinsic's buffers stand for the regions."""
        written: Region = tuple([domains[iv] for iv in self.op.axis])
        regions = [(tensor, written) for tensor in self.op.outputs]
        if reads:
            regions = [*reads, *regions]
            buffers = self.intrin.buffers
        else:
            buffers = self.intrin.buffers[len(self.intrin.inputs) :]
        body = substitute(body, matched)
        for (tensor, region), buffer in zip(reversed(regions), reversed(buffers), strict=True):
            ends = [end for domain in region for end in (domain.min, domain.extent)]
            body = AttrStmt([buffer, tensor], "buffer_bind_scope", tir_op.tvm_tuple(*ends), body)
        return body


def provide_intrinsic_calls(
    stage: Stage, ranges: Ranges, threads: Collection[IterVar], nester: Nester
) -> Stmt:
    """The loops of an operation that was written as calls of an intrinsic."""
    op, position = stage.op, len(stage.leaf_iter_vars)
    assert isinstance(op, TensorComputeOp)
    return _Tensorized(stage, op, op.intrin, position, ranges, threads, nester).build()


def domains_of_call(
    stage: Stage, position: int, ranges: Ranges, values: Values
) -> dict[IterVar, Range]:
    """What the axes of the operation run over in one call, at ``values`` of the loops around it."""
    op, analyzer = stage.op, ranges.analyzer
    assert isinstance(op, BaseComputeOp)
    sets: Sets = {}
    for index, iv in enumerate(stage.leaf_iter_vars):
        if iv in values:
            sets[iv] = point(values[iv]) if index < position else from_range(ranges[iv])
    pass_up_domain(stage, ranges, sets, analyzer)
    return {
        iv: to_range(sets.get(iv, from_range(ranges[iv])), ranges[iv], analyzer)
        for iv in (*op.axis, *op.reduce_axis)
    }


def _declared_regions(op: TensorComputeOp, values: Values) -> tuple[Reads, dict[Var, PrimExpr]]:
    """The regions and scalars that a call was written with."""
    roots = Substituter({iv.var: values[iv] for iv in op.root_iter_vars()})
    reads: Reads = []
    for tensor, region in zip(op.inputs, op.input_regions, strict=True):
        moved = [Range.from_min_extent(roots.visit(r.min), roots.visit(r.extent)) for r in region]
        reads.append((tensor, tuple(moved)))
    scalars = zip(op.intrin.scalar_params, op.scalar_inputs, strict=True)
    return reads, {param: roots.visit(value) for param, value in scalars}


def matcher_of(
    op: ComputeOp,
    intrin: TensorIntrin,
    domains: dict[IterVar, Range],
    reads: dict[Tensor, Region],
    analyzer: Analyzer,
) -> BodyMatcher:
    """What compares the loops with the intrinsic; it knows the values of the intrinsic's variables."""
    declared: Any = intrin.op
    matched: dict[Var, PrimExpr] = {}
    roots: dict[Var, PrimExpr] = {}
    fixed: list[IterVar] = []
    for own, axes, kind in (
        (op.axis, declared.axis, "spatial"),
        (op.reduce_axis, declared.reduce_axis, "reduction"),
    ):
        lead = len(own) - len(axes)
        if lead < 0:
            raise ScheduleError(
                f"tensorize requires {len(axes)} {kind} axes for {intrin.name}, got {len(own)}"
            )
        for index, iv in enumerate(own):
            domain = domains[iv]
            if index < lead:
                if not is_one(domain.extent):
                    raise ScheduleError(
                        f"tensorize requires one iteration of {iv.var.name}, which is none of the "
                        f"axes of {intrin.name}, got {domain.extent}",
                        hint="tensorize a loop further inside",
                    )
                roots[iv.var] = domain.min
                fixed.append(iv)
                continue
            axis = axes[index - lead]
            _match_extent(intrin, iv, axis, domain.extent, matched, analyzer)
            start = tir_op.cast(domain.min, axis.var.dtype)
            roots[iv.var] = tir_op.cast(tir_op.add(axis.var, start), iv.var.dtype)
    inputs = dict(zip(reads, intrin.inputs, strict=False))
    if len(reads) != len(intrin.inputs):
        raise ScheduleError(
            f"tensorize requires {len(intrin.inputs)} inputs for {intrin.name}, got {len(reads)}: "
            f"{', '.join([tensor.name for tensor in reads])}"
        )
    return BodyMatcher(op, intrin, roots, fixed, inputs, reads, matched)


def _match_extent(
    intrin: TensorIntrin,
    iv: IterVar,
    axis: IterVar,
    extent: PrimExpr,
    matched: dict[Var, PrimExpr],
    analyzer: Analyzer,
) -> None:
    assert axis.dom is not None
    wanted = axis.dom.extent
    if isinstance(wanted, Var) and wanted not in matched:
        matched[wanted] = extent
    elif not analyzer.can_prove_equal(substitute(wanted, matched), extent):
        raise ScheduleError(
            f"tensorize requires extent {wanted} of axis {iv.var.name} for {intrin.name}, "
            f"got {extent}",
            hint=f"split the axis by {wanted} and tensorize the inner loop",
        )


class BodyMatcher(Rewriter):
    """Writes what a stage computes over the axes and inputs of an intrinsic."""

    def __init__(
        self,
        op: ComputeOp,
        intrin: TensorIntrin,
        roots: dict[Var, PrimExpr],
        fixed: list[IterVar],
        inputs: dict[Tensor, Tensor],
        regions: dict[Tensor, Region],
        matched: dict[Var, PrimExpr],
    ) -> None:
        self.op, self.intrin = op, intrin
        self.fixed = fixed  # axes of which a call has one iteration
        self.roots, self.inputs, self.regions, self.matched = roots, inputs, regions, matched
        self.analyzer = Analyzer()
        declared: Any = intrin.op
        for axis in declared.root_iter_vars():
            domain = Range.from_min_extent(
                substitute(axis.dom.min, matched), substitute(axis.dom.extent, matched)
            )
            self.analyzer.bind(axis.var, domain)

    def check(self) -> None:
        """Raise an error unless both compute the same."""
        declared: Any = self.intrin.op
        if len(self.op.body) != len(declared.body):
            raise ScheduleError(
                f"tensorize requires {len(declared.body)} outputs for {self.intrin.name}, "
                f"got {len(self.op.body)}"
            )
        for found, wanted in zip(self.bodies(), declared.body, strict=True):
            expected = self._simple_body(wanted, wanted, dict(self.matched))
            if not structural_equal(found, expected):
                raise ScheduleError(
                    f"tensorize requires a body that matches that of intrinsic "
                    f"{self.intrin.name}\n  expected: {expected}\n  found:    {found}"
                )

    def bodies(self) -> list[PrimExpr]:
        """What the stage computes, over the axes of the intrinsic."""
        declared: Any = self.intrin.op
        pairs = zip(self.op.body, declared.body, strict=True)
        return [self._simple_body(own, wanted, None) for own, wanted in pairs]

    def _simple_body(
        self, body: PrimExpr, wanted: PrimExpr, values: dict[Var, PrimExpr] | None
    ) -> PrimExpr:
        """The body simplified, over the axes of ``wanted``."""
        if not isinstance(body, Reduce):
            return self._simple(body, values)
        axis = wanted.axis if isinstance(wanted, Reduce) else body.axis
        return body.replace(
            source=tuple([self._simple(source, values) for source in body.source]),
            condition=self._simple(body.condition, values),
            axis=axis,
            init=tuple([self._simple(start, values) for start in body.init]),
        )

    def _simple(self, expr: PrimExpr, values: dict[Var, PrimExpr] | None) -> PrimExpr:
        moved = self.visit(expr) if values is None else Substituter(values).visit(expr)
        return simple(_ChoiceMaker().visit(moved), self.analyzer)

    def visit_var(self, var: Var) -> PrimExpr:
        return self.roots.get(var, var)

    def visit_producer_load(self, load: ProducerLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        tensor: Any = load.producer
        target, region = self.inputs[tensor], self.regions[tensor]
        lead = len(region) - target.ndim
        if lead < 0 or any(not is_one(domain.extent) for domain in region[:lead]):
            raise ScheduleError(
                f"tensorize requires a region of {target.ndim} dimensions of {tensor.name} for "
                f"{self.intrin.name}, got extents {[str(domain.extent) for domain in region]}"
            )
        indices = []
        for axis, (index, domain) in enumerate(
            zip(load.indices[lead:], region[lead:], strict=True)
        ):
            offset = self.analyzer.simplify(tir_op.subtract(index, domain.min))
            indices.append(tir_op.cast(offset, target.shape[axis].dtype))
        return ProducerLoad(target, tuple(indices))


class _ChoiceMaker(Rewriter):
    """Writes conditions as intrinsics declare them: what guards a load is the same choice of values."""

    def visit_call(self, call: Call) -> PrimExpr:
        call = self.rewrite_children(call)
        name = getattr(call.op, "name", "")
        if name == "tir.likely":
            return call.args[0]
        return Select(*call.args) if name == "tir.if_then_else" else call

"""What tensorize compares, under the global names that programs ask by.

z[i] = x[i] + y[i], i split by 16, the inner loop tensorized

test.op.InferTensorizeRegion    ->    i: [i.outer*16, 16]; x: [i.outer*16, 16], y: likewise
test.op.MatchTensorizeBody      ->    x[i] + y[i] over the axes and inputs of the intrinsic
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm._ffi.registry import register_func
from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.container import Map
from tvm.ir.expr import PrimExpr
from tvm.tir.constants import is_one
from tvm.tir.expr import IterVar, Range

from ..tensor import ComputeOp, Tensor
from ..tensor_intrin import TensorIntrin
from .infer_bound import read_regions
from .lower_tensorize import domains_of_call, find_tensorized, matcher_of
from .relations import Ranges, Values
from .stage import Stage


@register_func("test.op.InferTensorizeRegion", override=True)
def infer_tensorize_region(stage: Stage, dom_map: Mapping[IterVar, Range]) -> tuple[Map, Map]:
    """What the axes of a stage run over in one call of its intrinsic, and what the call reads.

    Parameters
    ----------
    stage : Stage
        A stage with a tensorized loop.
    dom_map : dict of IterVar to Range
        What bound inference found.
    """
    position = find_tensorized(stage)
    if position is None or not isinstance(stage.op, ComputeOp):
        raise ScheduleError(
            f"InferTensorizeRegion requires a stage with a tensorized loop, got {stage.op.name}"
        )
    ranges = Ranges.of(dom_map)
    values: Values = {
        iv: ranges[iv].min if is_one(ranges[iv].extent) else iv.var for iv in stage.leaf_iter_vars
    }
    domains = domains_of_call(stage, position, ranges, values)
    return Map(domains), Map(read_regions(stage.op, domains, ranges.analyzer))


@register_func("test.op.MatchTensorizeBody", override=True)
def match_tensorize_body(
    stage: Stage,
    out_dom: Mapping[IterVar, Range],
    in_dom: Mapping[Tensor, Sequence[Range]],
    intrin: TensorIntrin,
) -> list[PrimExpr]:
    """What a stage computes, written over the axes and inputs of an intrinsic.

    Parameters
    ----------
    stage : Stage
        The stage.
    out_dom, in_dom : dict
        What ``infer_tensorize_region`` gave.
    intrin : TensorIntrin
        The intrinsic.
    """
    if not isinstance(stage.op, ComputeOp):
        raise ScheduleError(f"MatchTensorizeBody requires a compute, got {stage.op.name}")
    reads = {tensor: tuple(region) for tensor, region in in_dom.items()}
    return matcher_of(stage.op, intrin, dict(out_dom.items()), reads, Analyzer()).bodies()

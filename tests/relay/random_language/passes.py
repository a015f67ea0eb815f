"""Random sequences of passes that leave what a program computes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import tvm
from tvm import relay
from tvm.ir.transform import Pass
from tvm.relay import transform as T


@dataclass(frozen=True)
class Kind:
    """What a program is: which passes are legal depends on it."""

    is_graph: bool  # operators and their functions only
    has_references: bool
    is_dynamic: bool  # some dimensions are Any
    is_quantised: bool  # it has operators of qnn


GENERAL: tuple[Callable[[], Pass], ...] = (
    T.SimplifyInference, T.FoldConstant, T.SimplifyExpr, T.CanonicalizeOps, T.CanonicalizeCast,
    T.EliminateCommonSubexpr, T.DeadCodeElimination, T.FoldScaleAxis, T.BackwardFoldScaleAxis,
    T.ForwardFoldScaleAxis, T.FoldExplicitPadding, T.DynamicToStatic, T.RemoveUnusedFunctions,
    T.InferType, T.Inline, T.LambdaLift, T.EtaExpand, T.FlattenAtrousConv,
    T.ToBasicBlockNormalForm, T.ToANormalForm, relay.qnn.transform.CanonicalizeOps, T.AnnotateSpans,
    relay.qnn.transform.Legalize, T.DivToMul, T.Legalize, T.AlterOpLayout, T.IntegerProducts,
    lambda: T.CombineParallelConv2D(2), lambda: T.CombineParallelDense(2),
    lambda: T.CombineParallelBatchMatmul(2), lambda: T.CombineParallelDense(2, False),
    lambda: T.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}), lambda: T.FuseOps(2),
    lambda: T.ConvertLayout({"nn.conv2d": ["NCHW", "default"], "nn.max_pool2d": ["NHWC"]}),
    lambda: T.EtaExpand(True, True), lambda: T.DefuseOps(), lambda: T.SplitArgs(4),
    T.SinkReshapes, T.WideAccumulation, T.UnsignedData, T.WidenDense, T.ApplyFunctions,
)  # fmt: skip


@T.module_pass(opt_level=0, name="ToCPS")
def pass_results_on(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """Main in continuation-passing style, and a function around it."""
    mod = mod.clone()
    mod["main"] = T.un_cps(T.to_cps(mod["main"], mod))
    return mod


@T.module_pass(opt_level=0, name="Defunctionalization")
def as_first_order(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """Main and the functions it reaches without functions as values."""
    mod = mod.clone()
    mod["main"] = T.Defunctionalization(mod["main"], mod)
    return mod


OF_GRAPHS: tuple[Callable[[], Pass], ...] = (T.ToGraphNormalForm,)
OF_PROGRAMS: tuple[Callable[[], Pass], ...] = (
    T.PartialEvaluate, lambda: pass_results_on, lambda: as_first_order,
)  # fmt: skip
# scales must be constants where quantised operators are lowered, or results differ by a step
HIDES_CONSTANTS = ("ToANormalForm", "ToBasicBlockNormalForm", "FuseOps")


def draw_passes(rng: random.Random, kind: Kind) -> list[Pass]:
    """A few passes that are legal, in some order."""
    legal = [*GENERAL]
    if kind.is_graph:
        legal += OF_GRAPHS * 2
    drawn = [rng.choice(legal)() for _ in range(rng.randint(2, 6))]
    if kind.is_quantised and any([item.info.name in HIDES_CONSTANTS for item in drawn]):
        drawn.insert(0, relay.qnn.transform.CanonicalizeOps())
    if not kind.is_dynamic and rng.random() < 0.2:
        drawn.insert(0, rng.choice(OF_PROGRAMS)())
    return drawn


def run_passes(mod: tvm.IRModule, passes: list[Pass]) -> tvm.IRModule:
    """The module after the passes."""
    with tvm.target.Target("llvm -opt-level=0"), tvm.transform.PassContext(opt_level=4):
        for item in passes:
            mod = T.InferType()(item(T.InferType()(mod)))
    return mod

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
    is_rough: bool  # it has tensors of float16


Tolerance = tuple[float, float]  # relative, absolute
EXACT: Tolerance = (2e-4, 2e-5)
ROUGH: Tolerance = (3e-2, 3e-2)

CHANNELS_LAST = {
    "nn.conv2d": ["NHWC", "HWIO"],
    "nn.conv2d_transpose": ["NHWC", "default"],
    "qnn.conv2d": ["NHWC", "default"],
    "nn.max_pool2d": ["NHWC"],
    "nn.avg_pool2d": ["NHWC"],
    "nn.global_avg_pool2d": ["NHWC"],
    "nn.upsampling": ["NHWC"],
    "image.resize2d": ["NHWC"],
}
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
    lambda: T.ConvertLayout(CHANNELS_LAST),
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


# what they change of results
TOLERANCES: dict[str, Tolerance] = {
    "FastMath": (1e-2, 1e-2),
    "ToMixedPrecision": (6e-2, 6e-2),
    "FakeQuantizationToInteger": (0.3, 0.3),  # some steps of the scale
}
# what they change of quantised programs: a quotient beside the middle between two steps is rounded anew
STEPS: dict[str, Tolerance] = {"DivToMul": (0.3, 0.3)}
OF_FLOATS: tuple[Callable[[], Pass], ...] = (
    T.FastMath, T.ToMixedPrecision, lambda: T.ToMixedPrecision("float16", 2),
)  # fmt: skip
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
    if rng.random() < 0.25:
        drawn.insert(0, rng.choice(OF_FLOATS)())
    if kind.is_quantised and not kind.is_rough and rng.random() < 0.3:
        drawn.insert(0, T.FakeQuantizationToInteger(use_qat=rng.random() < 0.3))
    if kind.is_quantised and any([item.info.name in HIDES_CONSTANTS for item in drawn]):
        drawn.insert(0, relay.qnn.transform.CanonicalizeOps())
    if not kind.is_dynamic and rng.random() < 0.2:
        drawn.insert(0, rng.choice(OF_PROGRAMS)())
    return drawn


def widest(passes: list[Pass], kind: Kind) -> Tolerance:
    """How near results come after the passes."""
    known = TOLERANCES | STEPS if kind.is_quantised else TOLERANCES
    return max([known.get(item.info.name, EXACT) for item in passes])


def run_passes(mod: tvm.IRModule, passes: list[Pass]) -> tvm.IRModule:
    """The module after the passes."""
    config = {"relay.ToMixedPrecision.keep_orig_output_dtype": True}
    with (
        tvm.target.Target("llvm -opt-level=0"),
        tvm.transform.PassContext(opt_level=4, config=config),
    ):
        for item in passes:
            mod = T.InferType()(item(T.InferType()(mod)))
    return mod

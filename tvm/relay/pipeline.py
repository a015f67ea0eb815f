"""The passes between an imported model and its kernels, in order.

Each pass runs from its own level of `PassContext(opt_level=...)` on.
"""

from __future__ import annotations

from tvm.ir.transform import Pass, Sequential
from tvm.relay import qnn
from tvm.relay.transform import (
    AlterOpLayout,
    CanonicalizeOps,
    DeadCodeElimination,
    DynamicToStatic,
    EliminateCommonSubexpr,
    FoldConstant,
    FoldScaleAxis,
    FuseOps,
    InferType,
    Inline,
    Legalize,
    RemoveUnusedFunctions,
    SeparateOps,
    SimplifyExpr,
    SimplifyInference,
    SinkReshapes,
    ToGraphNormalForm,
    WidenDense,
)


def graph_passes() -> list[Pass]:
    """Passes that leave an optimised graph of operators."""
    return [
        RemoveUnusedFunctions(),
        InferType(),
        Inline(),
        ToGraphNormalForm(),  # fusion and the executors work on graphs
        DynamicToStatic(),
        qnn.transform.Legalize(),
        qnn.transform.CanonicalizeOps(),
        SimplifyInference(),  # before folding: it opens up batch normalisation
        FoldConstant(),
        EliminateCommonSubexpr(),
        SimplifyExpr(),
        WidenDense(),  # queries, keys and values in one layer
        CanonicalizeOps(),
        FoldScaleAxis(),
        FoldConstant(),  # weights times factors
        EliminateCommonSubexpr(),
        SinkReshapes(),  # residual additions and activations join their dense layer
        SimplifyExpr(),
        Legalize(),
        AlterOpLayout(),
        FoldConstant(),  # weights in their new layout
        EliminateCommonSubexpr(),
        SimplifyExpr(),
        DeadCodeElimination(),
    ]


def optimization() -> Sequential:
    """All graph passes."""
    return Sequential(graph_passes(), name="relay.optimize")


def fusion() -> Sequential:
    """Passes from operators to kernels."""
    return Sequential([FuseOps(), SeparateOps(), InferType()], name="relay.fuse")

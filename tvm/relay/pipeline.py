"""The passes between an imported model and its kernels, in order.

Each pass runs from its own level of `PassContext(opt_level=...)` on.
"""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, Sequential
from tvm.relay.expr import RefCreate, RefRead, RefWrite
from tvm.relay.function import relay_functions
from tvm.relay.qnn import transform as qnn
from tvm.relay.transform import (
    AlterOpLayout,
    ApplyFunctions,
    CanonicalizeOps,
    DeadCodeElimination,
    DynamicToStatic,
    EliminateCommonSubexpr,
    EtaExpand,
    FastMath,
    FoldConstant,
    FoldScaleAxis,
    FuseAttention,
    FuseOps,
    InferType,
    IntegerProducts,
    KnownShapes,
    LambdaLift,
    Legalize,
    ManifestAlloc,
    ManifestLifetimes,
    NameResults,
    RemoveUnusedFunctions,
    SeparateOps,
    ShareKernels,
    ShareTables,
    SimplifyExpr,
    SimplifyInference,
    SinkReshapes,
    SkipRounding,
    SymbolicShapes,
    ToGraphNormalForm,
    UnsignedData,
    WideAccumulation,
    WidenDense,
)
from tvm.relay.transform.channels_first import ChannelsFirst
from tvm.relay.transform.inline import InlineOwnFunctions
from tvm.relay.traverse import post_order


def graph_passes() -> list[Pass]:
    """Passes that leave an optimised graph of operators."""
    return [
        RemoveUnusedFunctions(),
        InferType(),
        InlineOwnFunctions(),
        ApplyFunctions(),
        ToGraphNormalForm(),  # fusion and the executors work on graphs
        DynamicToStatic(),
        IntegerProducts(),  # quantised tensors meet in integers
        UnsignedData(),
        qnn.LegalizeForKernels(),
        qnn.CanonicalizeOps(),
        WideAccumulation(),  # before normalisations are opened up
        SimplifyInference(),  # before folding: it opens up batch normalisation
        FoldConstant(),
        SkipRounding(),  # attention computes in float32
        EliminateCommonSubexpr(),
        SimplifyExpr(),
        WidenDense(),  # queries, keys and values in one layer
        CanonicalizeOps(),
        ChannelsFirst(),
        FoldScaleAxis(),
        Legalize(),
        FoldConstant(),  # weights times factors
        EliminateCommonSubexpr(),
        SinkReshapes(),  # residual additions and activations join their dense layer
        SimplifyExpr(),
        AlterOpLayout(),
        ShareTables(),  # before they are folded separately
        FoldConstant(),  # weights in their new layout
        EliminateCommonSubexpr(),
        SimplifyExpr(),
        FastMath(),
        DeadCodeElimination(),
    ]


def vm_optimization(mod: IRModule) -> list[Pass]:
    """Passes from an imported program to kernels, for the virtual machine."""
    # what reads and writes references happens in the order of the lets
    passes = graph_passes()
    if has_references(mod):
        passes = [p for p in passes if p not in (ApplyFunctions(), ToGraphNormalForm())]
    # constructors that are passed on become functions, which have code
    functions = EtaExpand(expand_constructor=True)
    return [functions, SymbolicShapes(), KnownShapes(), *passes, *fusion_passes()]


def memory_passes() -> list[Pass]:
    """Passes that leave what the virtual machine's code is made from."""
    return [
        NameResults(),
        LambdaLift(),
        ManifestAlloc(),
        ManifestLifetimes(),
        RemoveUnusedFunctions(),
    ]


def has_references(mod: IRModule) -> bool:
    """Whether a function of the module makes, reads or writes a reference."""
    return any(
        isinstance(node, (RefCreate, RefRead, RefWrite))
        for func in relay_functions(mod).values()
        for node in post_order(func)
    )


def optimization() -> Sequential:
    """All graph passes."""
    return Sequential(graph_passes(), name="relay.optimize")


def fusion_passes(link_params: bool = False) -> list[Pass]:
    """Passes from operators to kernels; with `link_params`, constants are parts of them."""
    fuse = FuseOps(link_params=link_params)
    shared = [] if link_params else [ShareKernels()]
    return [FuseAttention(), fuse, SeparateOps(link_params), *shared, InferType()]


def fusion(link_params: bool = False) -> Sequential:
    """All passes from operators to kernels."""
    return Sequential(fusion_passes(link_params), name="relay.fuse")

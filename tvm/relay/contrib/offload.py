"""What the modules of external compilers share: their checks of calls, and how a model is partitioned.

nn.relu(nn.conv2d(%x, w))   ->   @tvmgen_default_c_main_0(%x), a function with Compiler="c"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import register_op_attr
from tvm.ir.transform import Pass, Sequential
from tvm.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard
from tvm.relay.expr import Call, Constant, Tuple
from tvm.relay.program import bind_params_by_name
from tvm.relay.transform import (
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
)
from tvm.relay.transform.merge_composite import Entry
from tvm.relay.traverse import is_call_of, tensors_of
from tvm.runtime.ndarray import NDArray

Params = Mapping[str, NDArray | np.ndarray]
Check = Callable[[Call], bool]


def take(compiler: str, names: str | Iterable[str], check: Check | None = None) -> None:
    """Say which calls of operators a compiler takes: all of them, or those of which `check` holds."""
    for name in names.split() if isinstance(names, str) else names:
        register_op_attr(name, f"target.{compiler}", check or _always)


def _always(_: Call) -> bool:
    return True


def with_bound_params(mod: IRModule, params: Params | None) -> IRModule:
    """The module with the parameters of `main` that have a value as constants."""
    if not params:
        return mod
    bound = mod.clone()
    bound["main"] = bind_params_by_name(bound["main"], params)
    return bound


def partition_for(
    compiler: str,
    table: Sequence[Entry],
    mod: IRModule,
    params: Params | None = None,
    *,
    prepare: Sequence[Pass] = (),
    is_merged: bool = True,
    takes_data: bool = True,
    mod_name: str = "default",
    binds_constants: bool = True,
) -> IRModule:
    """The module with what a compiler takes in functions for it.

    Parameters
    ----------
    table : the compiler's composite functions; operators with `target.<compiler>` are taken as they are.
    params : values of parameters of `main`, by name.
    prepare : passes before.
    is_merged : neighbouring operators go into one function.
    takes_data : tuples between operators of the compiler are in its functions.
    mod_name : the beginning of the functions' names.
    binds_constants : constants are inside of the functions, not arguments.
    """
    passes: list[Pass] = [
        InferType(),
        *prepare,
        MergeComposite(table),
        AnnotateTarget(compiler, takes_data),
        *([MergeCompilerRegions()] if is_merged else []),
        PartitionGraph(mod_name, binds_constants),
        InferType(),
    ]
    return Sequential(passes, name=f"{compiler}.partition")(with_bound_params(mod, params))


def op_pattern(name: str, *args: DFPattern, arity: int = 1) -> DFPattern:
    """Calls of an operator with any arguments, of which the first may be given."""
    rest = [wildcard() for _ in range(arity - len(args))]
    return is_op(name)(*args, *rest)


def nearest_call(expr: RelayExpr, *names: str, depth: int = 12) -> Call:
    """The call of one of the operators that is the fewest calls below `expr`.

    A match holds one; the operators before it are not looked at first.
    """
    level: list[RelayExpr] = [expr]
    for _ in range(depth):
        for node in level:
            if isinstance(node, Call) and any([is_call_of(node, name) for name in names]):
                return node
        level = [arg for node in level if isinstance(node, Call) for arg in node.args]
    raise ValueError(f"a pattern of {' or '.join(names)} matched a program without one")


def shape_of(expr: RelayExpr) -> tuple[int, ...] | None:
    """The shape of a tensor; None if it is dynamic."""
    ty = expr.checked_type
    if getattr(ty, "shape", None) is None or ty.is_dynamic:
        return None
    shape: tuple[int, ...] = ty.concrete_shape
    return shape


def rank_of(expr: RelayExpr) -> int:
    """How many axes a tensor has."""
    return len(expr.checked_type.shape)


def dtype_of(expr: RelayExpr) -> str:
    """The element type of a tensor."""
    return str(expr.checked_type.dtype)


def have_dtypes(call: Call, *dtypes: str) -> bool:
    """Whether the tensors that a call takes, those in tuples too, are of one of the element types."""
    found = [_leaf_dtypes(tensor) for tensor in tensors_of(call)]
    return all([dtype in dtypes for group in found for dtype in group])


def _leaf_dtypes(expr: RelayExpr) -> list[str]:
    if isinstance(expr, Tuple):
        return [dtype for field in expr.fields for dtype in _leaf_dtypes(field)]
    ty = expr.checked_type
    return [str(t.dtype) for t in getattr(ty, "fields", (ty,))]


def numbers(values: object) -> list[int]:
    """An attribute that is a tuple of integers."""
    return [int(value) for value in values]  # type: ignore[attr-defined]


def scalar(expr: RelayExpr) -> float | None:
    """The value of a constant of one element; None of others."""
    if not isinstance(expr, Constant) or expr.data.numpy().size != 1:
        return None
    return float(expr.data.numpy().reshape(-1)[0])


def is_depthwise(conv: Call) -> bool:
    """Whether each group of a two-dimensional convolution has one input channel, and there are several."""
    data = shape_of(conv.args[0])
    if data is None or int(conv.attrs.groups) == 1:
        return False
    return data[str(conv.attrs.data_layout).index("C")] == int(conv.attrs.groups)


def make_gelu_pattern(bias_out: DFPattern, out_dtype: str = "float16") -> DFPattern:
    """x * (0.5 + erf(x * sqrt(0.5)) * 0.5); the error function of float16 is one of float32."""
    error = is_op("multiply")(bias_out, is_constant())
    if out_dtype == "float16":
        error = is_op("cast")(is_op("erf")(is_op("cast")(error)))
    else:
        error = is_op("erf")(error)
    half = is_op("multiply")(error, is_constant())
    return is_op("multiply")(is_op("add")(is_constant(), half), bias_out)


def has_gelu_numbers(found: RelayExpr, root: Call) -> bool:
    """Whether the numbers between a match and its product are those of `make_gelu_pattern`."""
    values: dict[int, float] = {}
    stack, seen = [found], {id(root)}
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if (value := scalar(node)) is not None:
            values[id(node)] = value
        if isinstance(node, Call):
            stack.extend(node.args)
    wanted = {0.5, math.sqrt(0.5)}
    # a constant may be shared
    return all([any([abs(v - w) < 1e-3 for w in wanted]) for v in values.values()]) and all(
        [any([abs(v - w) < 1e-3 for v in values.values()]) for w in wanted]
    )

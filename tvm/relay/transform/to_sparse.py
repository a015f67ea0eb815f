"""Compute layers with sparse weights by products that skip the zeros.

    nn.dense(%x, %w)    ->    nn.sparse_dense(%x, %w.data, %w.indices, %w.indptr)

The parts of the weights are parameters; `relay.data_dep_optimization` makes their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.analysis.sparse import is_sparse_conv2d, sparse_kernel, sparsity
from tvm.relay.expr import Call, Constant, Var, const
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import free_vars, on_calls, rewrite_calls, rewrite_post_order

Shapes = Sequence[Sequence[int]]


def DenseToSparse(weight_name: Sequence[str], weight_shape: Shapes) -> Pass:
    """The pass for dense layers.

    Parameters
    ----------
    weight_name : the weights that are sparse.
    weight_shape : for each the shapes of data, indices and indptr, one after the other.
    """

    def replace(call: Call, parts: Sequence[Var]) -> RelayExpr:
        return ops.nn.sparse_dense(call.args[0], *parts)

    def fits(node: RelayExpr) -> bool:
        return calls(node, ops.nn.dense)

    return _pass("DenseToSparse", weight_name, weight_shape, fits, replace)


def Conv2dToSparse(
    weight_name: Sequence[str], weight_shape: Shapes, layout: str, kernel_size: int
) -> Pass:
    """The pass for convolutions of one layout and window.

    Parameters
    ----------
    weight_name : list of str
        The weights that become sparse, as `process_params` of the analysis found them.
    weight_shape : list of list of int
        For each, the shapes of its data, indices and indptr, one after the other.
    layout : str
        "NHWC" or "NCHW"; other convolutions stay.
    kernel_size : int
        The extent of the windows, 1 or 3.
    """

    def replace(call: Call, parts: Sequence[Var]) -> RelayExpr:
        size = (kernel_size, kernel_size)
        return ops.nn.sparse_conv2d(call.args[0], *parts, layout=layout, kernel_size=size)

    def fits(node: RelayExpr) -> bool:
        return is_sparse_conv2d(node, layout, kernel_size)

    return _pass("Conv2dToSparse", weight_name, weight_shape, fits, replace)


def Conv2dToSparse2(
    layout: str, kernel_size: int, blocksize: tuple[int, int], sparsity_threshold: float
) -> Pass:
    """The pass for convolutions whose weights are constants with a share of zeros.

    Parameters
    ----------
    layout : str
        "NHWC" or "NCHW"; other convolutions stay.
    kernel_size : int
        The extent of the windows, 1 or 3.
    blocksize : tuple of int
        Rows and columns of the blocks that are zero or not.
    sparsity_threshold : float
        The least share of zeros of a weight that becomes sparse, from 0 to 1.
    """
    size = (kernel_size, kernel_size)

    def rewrite(old: Call, new: Call) -> RelayExpr:
        if not is_sparse_conv2d(old, layout, kernel_size):
            return new
        weight = new.args[1]
        if not isinstance(weight, Constant) or sparsity(weight.data.numpy()) < sparsity_threshold:
            return new
        matrix = sparse_kernel(weight.data.numpy(), layout, blocksize)
        parts = [const(part) for part in matrix]
        return ops.nn.sparse_conv2d(new.args[0], *parts, layout=layout, kernel_size=size)

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return rewrite_calls(func, rewrite)

    return FunctionPass(run, PassInfo(0, "Conv2dToSparse2"))


def _pass(
    name: str,
    weight_name: Sequence[str],
    weight_shape: Shapes,
    fits: Callable[[RelayExpr], bool],
    replace: Callable[[Call, Sequence[Var]], RelayExpr],
) -> Pass:
    shapes = dict(zip([str(n) for n in weight_name], weight_shape, strict=True))

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        parts: dict[str, list[Var]] = {}

        def rewrite(old: Call, new: Call) -> RelayExpr:
            if not fits(old):
                return new
            weight = old.args[1]
            if not isinstance(weight, Var) or weight.name_hint not in shapes:
                return new
            if weight.name_hint not in parts:
                parts[weight.name_hint] = _parts(weight, shapes[weight.name_hint])
            return replace(new, parts[weight.name_hint])

        body = rewrite_post_order(func.body, on_calls(rewrite))
        if not parts:
            return func
        used = {id(v) for v in free_vars(body)}
        kept = [p for p in func.params if id(p) in used or p.name_hint not in shapes]
        added = [v for made in parts.values() for v in made]
        return Function([*kept, *added], body, None, func.type_params, func.attrs)

    return FunctionPass(run, PassInfo(0, name))


def _parts(weight: Var, shape: Sequence[int]) -> list[Var]:
    ty = infer_type_of(weight)
    assert isinstance(ty, TensorType)
    *data, indices, indptr = [int(d) for d in shape]
    return [
        Var(f"{weight.name_hint}.data", TensorType(tuple(data), ty.dtype)),
        Var(f"{weight.name_hint}.indices", TensorType((indices,), "int32")),
        Var(f"{weight.name_hint}.indptr", TensorType((indptr,), "int32")),
    ]

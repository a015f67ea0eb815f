"""What TensorRT takes: its layers, each a composite function `tensorrt.<operator>`.

The library itself is not there: a build of what is partitioned asks for its code generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi import get_global_func
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import PassContext
from tvm.relay.expr import Call, Constant, Tuple
from tvm.relay.function import Function
from tvm.relay.transform import (
    ConvertLayout,
    FoldConstant,
    InlineCompilerFunctionsBoundTo,
    RemoveUnusedFunctions,
    SimplifyInference,
)
from tvm.relay.traverse import post_order
from tvm.target import Target

from .offload import (
    Params,
    have_dtypes,
    nearest_call,
    numbers,
    op_pattern,
    partition_for,
    rank_of,
)
from .register import register_pattern_table

Check = Callable[[Call], bool]

LAYOUTS = {"nn.conv1d": "NCW", "nn.conv2d": "NCHW", "nn.conv3d": "NCDHW",
           "nn.conv2d_transpose": "NCHW", "nn.conv3d_transpose": "NCDHW"}  # fmt: skip
# a subgraph without one of these is no work for it
PRODUCTS = ("nn.conv1d", "nn.conv2d", "nn.conv2d_transpose", "nn.conv3d", "nn.conv3d_transpose",
            "nn.dense", "nn.batch_matmul")  # fmt: skip


def is_tensorrt_compiler_enabled() -> bool:
    """Whether there is a code generator for the library."""
    return get_global_func("relay.ext.tensorrt", allow_missing=True) is not None


def is_tensorrt_runtime_enabled() -> bool:
    """Whether the runtime of the library is linked."""
    enabled = get_global_func("relay.op.is_tensorrt_runtime_enabled", allow_missing=True)
    return enabled is not None and bool(enabled())


def get_tensorrt_target() -> Target | None:
    """The target `tensorrt` of the scope that surrounds the call; None if there is none."""
    current = Target.current()
    return current if current is not None and current.kind.name == "tensorrt" else None


def _option(target: Target | None, name: str, default: Any) -> Any:
    found = target if target is not None else get_tensorrt_target()
    return default if found is None else found.attrs.get(name, default)


def get_tensorrt_version(target: Target | None = None) -> tuple[int, ...]:
    """The version of the library that is compiled for: what the target says, else 6.0.1."""
    return tuple(numbers(_option(target, "tensorrt_version", ()))) or (6, 0, 1)


def get_tensorrt_use_implicit_batch_mode(target: Target | None = None) -> bool:
    """Whether the first axis is the library's batch, which its layers do not see."""
    return bool(_option(target, "use_implicit_batch", True))


def get_tensorrt_remove_no_mac_subgraphs(target: Target | None = None) -> bool:
    """Whether subgraphs without products stay outside."""
    return bool(_option(target, "remove_no_mac_subgraphs", False))


def partition_for_tensorrt(
    mod: IRModule, params: Params | None = None, target: Target | None = None
) -> IRModule:
    """The module with what TensorRT takes in functions for it.

    Parameters
    ----------
    params : values of parameters of `main`, by name.
    target : the options `use_implicit_batch`, `remove_no_mac_subgraphs` and `tensorrt_version`.
    """
    prepare = [
        SimplifyInference(),
        RemoveUnusedFunctions(),
        ConvertLayout({name: [layout, "default"] for name, layout in LAYOUTS.items()}),
        FoldConstant(),
    ]
    current = PassContext.current()
    with PassContext(3, current.required_pass, current.disabled_pass, config=current.config):
        mod = partition_for("tensorrt", pattern_table(target), mod, params, prepare=prepare)
        return prune_tensorrt_subgraphs(mod, target)


@register_pattern_table("tensorrt")
def pattern_table(target: Target | None = None) -> list[Any]:
    """The layers that the library has, a composite function each."""
    implicit = get_tensorrt_use_implicit_batch_mode(target)
    table: list[Any] = []
    for names, arity, check in _layers():
        for name in names.split():
            pattern = op_pattern(name, arity=arity)
            table.append((f"tensorrt.{name}", pattern, _checked(name, check, implicit)))
    return table


def _checked(name: str, check: Callable[[Call, bool], bool], implicit: bool) -> Any:
    def is_supported(found: RelayExpr) -> bool:
        call = nearest_call(found, name)
        is_scalar = rank_of(call) == 0 if hasattr(call.checked_type, "shape") else False
        return not is_scalar and have_dtypes(call, "float32", "float16") and check(call, implicit)

    return is_supported


def _layers() -> list[tuple[str, int, Callable[[Call, bool], bool]]]:
    """Operators, how many arguments they take, and which calls of them a layer computes."""
    return [
        ("nn.relu sigmoid tanh exp log sqrt abs negative sin cos atan ceil floor erf", 1, _any),
        ("nn.leaky_relu clip layout_transform", 1, _any),
        ("nn.batch_flatten", 1, _any),
        ("nn.softmax concatenate", 1, _keeps_batch),
        ("expand_dims squeeze transpose", 1, _keeps_batch),
        ("reshape", 1, _reshapes),
        ("nn.pad", 2, _pads),
        ("strided_slice", 1, _slices),
        ("sum prod max min mean", 1, _reduces),
        ("add subtract multiply divide power maximum minimum", 2, _binary),
        ("nn.bias_add", 2, _any),
        ("nn.conv1d", 2, _conv("NCW", "OIW")),
        ("nn.conv2d", 2, _conv("NCHW", "OIHW")),
        ("nn.conv3d", 2, _conv("NCDHW", "OIDHW")),
        ("nn.conv2d_transpose", 2, _conv("NCHW", "OIHW IOHW")),
        ("nn.conv3d_transpose", 2, _conv("NCDHW", "OIDHW IODHW")),
        ("nn.dense", 2, _dense),
        ("nn.batch_matmul", 2, _batch_matmul),
        ("nn.max_pool2d nn.avg_pool2d", 1, _pool("NCHW")),
        ("nn.max_pool3d nn.avg_pool3d", 1, _pool("NCDHW")),
        ("nn.global_max_pool2d nn.global_avg_pool2d", 1, _pool("NCHW")),
        ("nn.adaptive_max_pool2d nn.adaptive_avg_pool2d", 1, _adaptive_pool),
    ]


def _any(_: Call, __: bool) -> bool:
    return True


def _batch_is(axes: list[int], rank: int) -> bool:
    """Whether one of the axes is the first."""
    return any([axis % max(rank, 1) == 0 for axis in axes])


def _keeps_batch(call: Call, implicit: bool) -> bool:
    """Whether the first axis stays what it was."""
    if not implicit:
        return True
    attrs, rank = call.attrs, _rank_of_first(call)
    if _is_called(call, "transpose"):
        return attrs.axes is not None and len(attrs.axes) > 0 and int(attrs.axes[0]) == 0
    if _is_called(call, "squeeze"):
        return attrs.axis is not None and not _batch_is(numbers(attrs.axis), rank)
    if _is_called(call, "expand_dims"):
        return not _batch_is([int(attrs.axis)], rank + 1)
    return not _batch_is([int(attrs.axis)], rank)


def _is_called(call: Call, name: str) -> bool:
    return call.op is Op.get(name)


def _rank_of_first(call: Call) -> int:
    first = call.args[0]
    ty = first.checked_type
    return len(getattr(ty, "fields", (ty,))[0].shape)


def _dims(expr: RelayExpr) -> list[int | None]:
    """The sizes of a tensor's axes; None where one is not known."""
    return [getattr(size, "value", None) for size in expr.checked_type.shape]


def _reshapes(call: Call, implicit: bool) -> bool:
    """Whether at most the batch is unknown, and stays."""
    source, result = _dims(call.args[0]), _dims(call)
    if None in source[1:] or None in result[1:]:
        return False
    if not implicit:
        return True
    if not source or not result:
        return False
    return source[0] == result[0] or (int(call.attrs.newshape[0]) in (0, -1) and source[0] is None)


def _pads(call: Call, _: bool) -> bool:
    """Whether zeros are padded, to rows and columns alone."""
    value = call.args[1]
    widths = [numbers(width) for width in call.attrs.pad_width]
    return (
        str(call.attrs.pad_mode) == "constant"
        and isinstance(value, Constant)
        and float(value.data.numpy()) == 0.0
        and len(widths) in (4, 5)
        and not any(widths[0])
        and not any(widths[1])
        and (len(widths) == 4 or not any(widths[2]))
    )


def _slices(call: Call, implicit: bool) -> bool:
    attrs = call.attrs
    axes = getattr(attrs, "axes", None)
    is_whole = int(attrs.begin[0]) == 0 and _dims(call)[:1] == _dims(call.args[0])[:1]
    steps = numbers(attrs.strides) if attrs.strides is not None else [1]
    keeps = is_whole if axes is None or 0 in numbers(axes) else True
    return all([step > 0 for step in steps]) and (keeps or not implicit)


def _reduces(call: Call, implicit: bool) -> bool:
    attrs, rank = call.attrs, _rank_of_first(call)
    if bool(attrs.exclude) or attrs.axis is None or len(attrs.axis) == 0:
        return False
    return not implicit or not _batch_is(numbers(attrs.axis), rank)


def _binary(call: Call, implicit: bool) -> bool:
    """Operands are of one rank, and weights have no batch of their own; one of them at least is computed."""
    shapes = [_dims(arg) for arg in call.args]
    if all([isinstance(arg, Constant) for arg in call.args]):
        return False
    if not implicit:
        return True
    constants = [isinstance(arg, Constant) for arg in call.args]
    if any(constants):
        weight = shapes[constants.index(True)]
        other = shapes[1 - constants.index(True)]
        return len(weight) < len(other) or weight[:1] in ([1], []) or len(weight) == len(other) == 1
    return len(shapes[0]) == len(shapes[1]) and shapes[0][:1] == shapes[1][:1]


def _conv(data: str, kernels: str) -> Callable[[Call, bool], bool]:
    def check(call: Call, _: bool) -> bool:
        attrs = call.attrs
        is_transposed = hasattr(attrs, "output_padding")
        return (
            str(attrs.data_layout) == data
            and str(attrs.kernel_layout) in kernels.split()
            and str(attrs.out_layout) in ("", data)
            and (not is_transposed or set(numbers(attrs.dilation)) == {1})
            and (not is_transposed or not any(numbers(attrs.output_padding)))
        )

    return check


def _dense(call: Call, _: bool) -> bool:
    return rank_of(call.args[0]) in (2, 3, 4) and rank_of(call.args[1]) == 2


def _batch_matmul(call: Call, implicit: bool) -> bool:
    """Whether the batches of the operands are one."""
    first, second = (_dims(arg)[0] for arg in call.args)
    return not implicit or (first == second and not isinstance(call.args[1], Constant))


def _pool(layout: str) -> Callable[[Call, bool], bool]:
    def check(call: Call, _: bool) -> bool:
        attrs = call.attrs
        dilation = getattr(attrs, "dilation", (1,))
        counts = bool(getattr(attrs, "count_include_pad", False))
        is_ragged = bool(getattr(attrs, "ceil_mode", False))
        return (
            str(attrs.layout) == layout
            and set(numbers(dilation)) == {1}
            and not (counts and is_ragged)
        )

    return check


def _adaptive_pool(call: Call, _: bool) -> bool:
    """The library has pools of windows of one size: those of one result."""
    sizes = call.attrs.output_size
    return str(call.attrs.layout) == "NCHW" and sizes is not None and set(numbers(sizes)) == {1}


def prune_tensorrt_subgraphs(mod: IRModule, target: Target | None = None) -> IRModule:
    """The module with the functions for TensorRT put back that it cannot run, or that are no work for it."""
    out = [
        gvar
        for gvar, func in mod.functions.items()
        if isinstance(func, Function)
        and func.attrs.get("Compiler") == "tensorrt"
        and not is_valid_subgraph(func, target)
    ]
    return _inlined(mod, out) if out else mod


def _inlined(mod: IRModule, functions: list[GlobalVar]) -> IRModule:
    return InlineCompilerFunctionsBoundTo(functions)(mod)


def is_valid_subgraph(func: Function, target: Target | None = None) -> bool:
    """Whether the inputs of a function are of sizes that the library takes, and its body is worth a call."""
    if get_tensorrt_use_implicit_batch_mode(target):
        if isinstance(func.body, Tuple) and any([rank_of(f) <= 1 for f in func.body.fields]):
            return False
        batches = [
            _dims(param)[:1] for param in func.params if hasattr(param.checked_type, "shape")
        ]
        if len({tuple(batch) for batch in batches if batch != []}) > 1:
            return False
    inputs = [_dims(param) for param in func.params if hasattr(param.checked_type, "shape")]
    if any([0 in dims or None in dims[1:] for dims in inputs]):
        return False
    if not get_tensorrt_remove_no_mac_subgraphs(target):
        return True
    called = [
        n.op.name for n in post_order(func.body) if isinstance(n, Call) and isinstance(n.op, Op)
    ]
    bodies = [n.op.body for n in post_order(func.body)
              if isinstance(n, Call) and isinstance(n.op, Function)]  # fmt: skip
    called += [n.op.name for body in bodies for n in post_order(body)
               if isinstance(n, Call) and isinstance(n.op, Op)]  # fmt: skip
    return not set(PRODUCTS).isdisjoint(called)

"""Declaring operations: placeholders, element-wise computations, reductions, extern calls.

A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, m), name="k")
B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias, cast, overload

from tvm.error import RuntimeTypeError, RuntimeValueError, TVMError
from tvm.ir import structural_equal
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import (
    INT32,
    IntImm,
    IterVar,
    IterVarType,
    Range,
    SizeVar,
    StringImm,
    Var,
    as_expr,
    convert,
)
from tvm.tir.expr import const as _const
from tvm.tir.stmt import Evaluate, Stmt

from .annotation_checks import check_thread_tag
from .index_width import as_indexed, as_indexed_range
from .tag import resolve_tag
from .tensor import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    TensorComputeOp,
    TensorIntrinCall,
    spatial_axes,
)

ExternBody: TypeAlias = "Callable[[list[Buffer], list[Buffer]], Any]"


def placeholder(shape: Any, dtype: Any = None, name: str = "placeholder") -> Tensor:
    """An input tensor.

    Parameters
    ----------
    shape : sequence of int or PrimExpr
    dtype : str, optional
        By default float32.
    name : str, optional
    """
    _as_name("placeholder", name)
    element = as_dtype("float32" if dtype is None else dtype)
    return PlaceholderOp(name, "", {}, _as_shape(shape, name), element).output(0)


def _as_shape(shape: Any, name: str) -> tuple[PrimExpr, ...]:
    if isinstance(shape, (PrimExpr, Integral)):
        shape = (shape,)
    if isinstance(shape, str) or not isinstance(shape, Iterable):
        raise TVMError(f"{name} requires integers as its shape, got {shape!r}")
    dims = tuple([as_expr(int(d) if isinstance(d, float) and d.is_integer() else d) for d in shape])
    for dim in dims:
        if not (dim.dtype.is_int or dim.dtype.is_uint) or dim.dtype.lanes != 1:
            raise TVMError(f"{name} requires integers as its shape, got {dim} of {dim.dtype}")
        if isinstance(dim, IntImm) and dim.value < 0:
            raise TVMError(f"{name} requires extents of at least 0 as its shape, got {dim.value}")
    return as_indexed(dims)


def compute(
    shape: Any,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor:
    """A tensor whose elements are ``fcompute(*indices)``.

    Parameters
    ----------
    shape : sequence of int or PrimExpr
        Of the output or outputs.
    fcompute : callable
        Takes one index a dimension and returns an expression, or a tuple for several outputs.
    name, tag : str, optional
    attrs : dict, optional
    varargs_names : list of str, optional
        Names of the axes that ``fcompute`` takes as ``*args``.

    Returns
    -------
    Tensor, or a tuple of them where ``fcompute`` returns one; types speak of the former
    """
    tag = resolve_tag(_as_tag("compute", _as_name("compute", name), tag))
    dims = _as_shape(shape, name)
    if not callable(fcompute):
        raise RuntimeTypeError(
            f"compute {name} requires a function of the indices, "
            f"got a value of {type(fcompute).__name__}"
        )
    given = _named_axes(fcompute, len(dims))
    axis = spatial_axes(dims[:given], _axis_names(fcompute, given, name, varargs_names))
    result = fcompute(*[iv.var for iv in axis])
    if isinstance(result, TensorIntrinCall):
        return _intrinsic_calls(result, name, tag, attrs, dims, axis)
    if given < len(dims):
        raise RuntimeValueError(
            f"Number of args to fcompute does not match dimension, args={given}, "
            f"dimension={len(dims)}: compute {name}"
        )
    values = tuple(result) if isinstance(result, (list, tuple)) else (result,)
    if not values:
        raise TVMError(f"compute {name} requires at least one output, got none")
    body = tuple([as_expr(value) for value in values])
    for value in body:
        if isinstance(value, StringImm):
            raise TVMError(f"compute {name} requires numbers as elements, got {value}")
    op = ComputeOp(name, tag, convert(dict(attrs or {})), axis, body)
    return _one_or_all(op)


def _one_or_all(op: Operation) -> Tensor:
    # several outputs come as a tuple, for programs that unpack them; nearly all have one
    return op.outputs[0] if op.num_outputs == 1 else cast("Tensor", op.outputs)


def _as_tag(what: str, name: str, tag: Any) -> str:
    if not isinstance(tag, str):
        raise TVMError(f"{what} {name} requires a text as its tag, got {tag!r}")
    return tag


def _named_axes(fcompute: Callable[..., Any], ndim: int) -> int:
    """How many axes a function takes; fewer than there are, where an intrinsic does the others."""
    spec = inspect.getfullargspec(fcompute)
    named = spec.args[1:] if inspect.ismethod(fcompute) else spec.args
    is_partial = spec.varargs is None and 0 < len(named) < ndim
    return len(named) if is_partial else ndim


def _intrinsic_calls(
    call: TensorIntrinCall,
    name: str,
    tag: str,
    attrs: Mapping[str, Any] | None,
    dims: Sequence[PrimExpr],
    axis: tuple[IterVar, ...],
) -> Tensor:
    """The operation that calls an intrinsic for each point of its first axes."""
    given = len(axis)
    inner = spatial_axes(dims[given:], [f"ax{k}" for k in range(len(dims) - given)])
    op = TensorComputeOp(
        name, tag, convert(dict(attrs or {})), (*axis, *inner), call.reduce_axis, given,
        call.intrin, call.tensors, call.regions, call.scalar_inputs,
    )  # fmt: skip
    return _one_or_all(op)


def _axis_names(
    fcompute: Callable[..., Any], ndim: int, name: str, varargs_names: Sequence[str] | None
) -> list[str]:
    spec = inspect.getfullargspec(fcompute)
    named = spec.args[1:] if inspect.ismethod(fcompute) else spec.args
    if spec.varargs is not None:
        rest = ndim - len(named)
        if varargs_names is not None and len(varargs_names) != rest:
            raise RuntimeError(
                f"compute {name} requires {rest} names in varargs_names, got {len(varargs_names)}"
            )
        names = [*named, *(varargs_names or [f"i{i}" for i in range(max(rest, 0))])]
    else:
        names = list(named) or [f"i{i}" for i in range(ndim)]
    if len(names) != ndim:
        raise RuntimeValueError(
            f"Number of args to fcompute does not match dimension, args={len(names)}, "
            f"dimension={ndim}: compute {name}"
        )
    return names


def scan(
    init: Any,
    update: Any,
    state_placeholder: Any,
    inputs: Any = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Tensors computed step by step along their first axis, each step from those before.

        X = te.placeholder((m, n))
        state = te.placeholder((m, n))
        init = te.compute((1, n), lambda _, i: X[0, i])
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
        total = te.scan(init, update, state, inputs=[X])

    Parameters
    ----------
    init : Tensor or list of Tensor
        The first steps of each state.
    update : Tensor or list of Tensor
        Each further step, of the shape of the result.
    state_placeholder : Tensor or list of Tensor
        Through them ``update`` reads the steps before.
    inputs : Tensor or list of Tensor, optional
        What else is read: a bound of the scan's body.
    name, tag : str, optional
    attrs : dict, optional

    Returns
    -------
    Tensor, or a list of them
    """
    tag = resolve_tag(_as_tag("scan", _as_name("scan", name), tag))
    starts, steps, states, reads = [
        _as_tensors(given, name)
        for given in (init, update, state_placeholder, () if inputs is None else inputs)
    ]
    _check_states(name, starts, steps, states)
    first, last = starts[0].shape[0], steps[0].shape[0]
    axis = IterVar(Range(first, last), f"{name}.idx", IterVarType.Ordered)
    spatial = [
        IterVar(Range(0, dim), f"{name}.out{index}.i{k + 1}", IterVarType.DimInfo)
        for index, step in enumerate(steps)
        for k, dim in enumerate(step.shape[1:])
    ]
    op = ScanOp(
        name, tag, convert(dict(attrs or {})), axis, starts, steps, states, reads, tuple(spatial)
    )
    return op.outputs[0] if len(steps) == 1 else list(op.outputs)


def _as_tensors(given: Any, name: str) -> tuple[Tensor, ...]:
    tensors = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TVMError(f"scan {name} requires tensors, got a value of {type(tensor).__name__}")
    return tensors


def _check_states(
    name: str, init: Sequence[Tensor], update: Sequence[Tensor], state: Sequence[Tensor]
) -> None:
    if not len(init) == len(update) == len(state) or not init:
        raise RuntimeValueError(
            f"init, update, state_placeholder must have same length: scan {name} got "
            f"{len(init)}, {len(update)} and {len(state)}"
        )
    for start, step, placed in zip(init, update, state, strict=True):
        if not isinstance(placed.op, PlaceholderOp):
            raise TVMError(
                f"scan {name} requires placeholders as states, got {placed.name}, "
                f"a {type(placed.op).__name__}"
            )
        kinds = [(start.dtype, start.ndim), (step.dtype, step.ndim), (placed.dtype, placed.ndim)]
        if len(set(kinds)) > 1:
            raise TVMError(
                f"scan {name} requires one dtype and rank of the parts of a state, got "
                f"{', '.join([f'{dtype} of {ndim} dimensions' for dtype, ndim in kinds])}"
            )
        shapes = (("update", step, 0), ("init", start, 1))
        for what, tensor, begin in shapes:
            if not structural_equal(tensor.shape[begin:], placed.shape[begin:]):
                raise TVMError(
                    f"scan {name} requires the shape {list(map(str, placed.shape))} of state "
                    f"{placed.name} also of its {what}, got {list(map(str, tensor.shape))}",
                    hint="init may have fewer steps along the first axis",
                )


@overload
def extern(
    shape: Any,
    inputs: Any,
    fcompute: ExternBody,
    name: str = ...,
    *,
    dtype: str,
    in_buffers: Any = ...,
    out_buffers: Any = ...,
    tag: str = ...,
    attrs: Mapping[str, Any] | None = ...,
) -> Tensor: ...


@overload
def extern(
    shape: Any,
    inputs: Any,
    fcompute: ExternBody,
    name: str = ...,
    *,
    dtype: list[Any],
    in_buffers: Any = ...,
    out_buffers: Any = ...,
    tag: str = ...,
    attrs: Mapping[str, Any] | None = ...,
) -> list[Tensor]: ...


@overload
def extern(
    shape: Any,
    inputs: Any,
    fcompute: ExternBody,
    name: str = ...,
    dtype: Any = ...,
    in_buffers: Any = ...,
    out_buffers: Any = ...,
    tag: str = ...,
    attrs: Mapping[str, Any] | None = ...,
) -> Any: ...


def extern(
    shape: Any,
    inputs: Any,
    fcompute: ExternBody,
    name: str = "extern",
    dtype: Any = None,
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Tensors computed by statements or by a call.

    Parameters
    ----------
    shape : sequence of int, or list of those
        Of each output.
    inputs : list of Tensor
    fcompute : callable
        ``fcompute(ins, outs)`` gets a buffer an input and one an output and returns the statement
        or the call that does the work.
    name, tag : str, optional
    dtype : str or list of str, optional
        Of each output; by default the inputs' if they have one in common.
    in_buffers, out_buffers : Buffer or list of Buffer, optional
        Declare layouts that the body relies on.
    attrs : dict, optional

    Returns
    -------
    Tensor, or a list of them; types go by `dtype`, a list of which is for several outputs
    """
    tag = resolve_tag(_as_tag("extern", _as_name("extern", name), tag))
    if isinstance(inputs, Tensor):
        raise RuntimeValueError(
            f"extern {name}: expect inputs to be a list of tensors, got tensor {inputs.name}"
        )
    if not isinstance(inputs, Sequence):
        raise RuntimeValueError(
            f"extern {name}: expect inputs to be a list of tensors, got {inputs!r}"
        )
    if not callable(fcompute):
        raise RuntimeTypeError(f"extern {name}: expect fcompute to be a function, got {fcompute!r}")
    for tensor in inputs:
        if not isinstance(tensor, Tensor):
            raise RuntimeValueError(f"extern {name}: expect inputs to be tensor, got {tensor!r}")
    shapes = [_as_shape(s, name) for s in _as_shapes(shape)]
    ins = _as_buffers(in_buffers)
    if ins is None:
        ins = [_placeholder_buffer(t.shape, t.dtype, t.op.name) for t in inputs]
    elif len(ins) != len(inputs):
        raise RuntimeError(
            f"Number of inputs and in_buffers mismatch: {len(inputs)} vs {len(ins)}: extern {name}"
        )
    outs = _as_buffers(out_buffers)
    if outs is None:
        dtypes = _output_dtypes(dtype, inputs, len(shapes), name)
        outs = [_placeholder_buffer(s, d, name) for s, d in zip(shapes, dtypes, strict=True)]
    elif len(outs) != len(shapes):
        raise RuntimeError(
            f"Number of outputs and out_buffers mismatch: {len(shapes)} vs {len(outs)}: "
            f"extern {name}"
        )
    body = fcompute(ins, outs)
    if isinstance(body, PrimExpr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise RuntimeValueError(
            f"Function '{getattr(fcompute, '__name__', name)}' should return PrimExpr or Stmt, "
            f"but it returned '{type(body)}'"
        )
    op = ExternOp(
        name, tag, convert(dict(attrs or {})), tuple(inputs), tuple(ins), tuple(outs), body
    )
    return op.outputs[0] if len(outs) == 1 else list(op.outputs)


def _as_shapes(shape: Any) -> list[Any]:
    if isinstance(shape, (PrimExpr, Integral)):
        return [(shape,)]
    if len(shape) == 0 or isinstance(shape[0], (PrimExpr, Integral)):
        return [tuple(shape)]
    return list(shape)


def _as_buffers(buffers: Any) -> list[Buffer] | None:
    if buffers is None:
        return None
    return [buffers] if isinstance(buffers, Buffer) else list(buffers)


def _placeholder_buffer(shape: Sequence[PrimExpr], dtype: DType, name: str) -> Buffer:
    return decl_buffer(shape, dtype, name, elem_offset=Var("elem_offset", INT32))


def _output_dtypes(dtype: Any, inputs: Sequence[Tensor], count: int, name: str) -> Sequence[DType]:
    if dtype is None:
        kinds = dict.fromkeys([tensor.dtype for tensor in inputs])
        if len(kinds) != 1:
            raise RuntimeValueError(
                f"Cannot infer output type, please provide dtype argument: extern {name} "
                f"reads {', '.join(kinds) or 'nothing'}"
            )
        return [next(iter(kinds))] * count
    given = [dtype] if isinstance(dtype, str) else list(dtype)
    if len(given) != count:
        raise RuntimeValueError(f"extern {name} requires {count} dtypes, got {len(given)}")
    return [as_dtype(d) for d in given]


def var(name: str = "tindex", dtype: Any = "int32", span: Any = None) -> Var:
    """A variable of the program, such as a dimension."""
    return Var(_as_name("var", name), dtype, span)


def size_var(name: str = "size", dtype: Any = "int32", span: Any = None) -> SizeVar:
    """A variable that is never negative."""
    found: SizeVar = SizeVar(_as_name("size_var", name), dtype, span)
    return found


def _as_name(what: str, name: Any) -> str:
    if not isinstance(name, str):
        raise TVMError(f"{what} requires a text as its name, got {name!r}")
    return name


def const(value: Any, dtype: Any = "int32", span: Any = None) -> PrimExpr:
    """A constant; a number that the dtype cannot hold is rejected."""
    if isinstance(value, str):
        raise TVMError(f"const requires a number, got {value!r}")
    return _const(value, dtype, span)


def thread_axis(dom: Any = None, tag: str = "", name: str = "", span: Any = None) -> IterVar:
    """An axis of threads, such as ``threadIdx.x``.

    ``te.thread_axis("threadIdx.x")`` takes its extent from the axis bound to it.
    """
    if isinstance(dom, str):
        tag, dom = dom, None
    if not tag:
        raise RuntimeValueError("tag must be given as Positional or keyword argument")
    tag = check_thread_tag(tag)
    name = name or tag
    if isinstance(dom, (Integral, PrimExpr)):
        dom = (0, dom)
    if dom is None:
        return IterVar(None, Var(name, INT32), IterVarType.ThreadIndex, tag, span)
    return IterVar(_as_range("thread_axis", dom), name, IterVarType.ThreadIndex, tag, span)


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "", span: Any = None) -> IterVar:
    """An axis to reduce over.

    Parameters
    ----------
    dom : Range or pair
        ``(begin, end)``.
    """
    return IterVar(_as_range("reduce_axis", dom), name, IterVarType.CommReduce, thread_tag, span)


def _as_range(what: str, dom: Any) -> Range:
    is_pair = isinstance(dom, (tuple, list)) and len(dom) == 2
    if not (is_pair or isinstance(dom, Range)):
        raise TVMError(
            f"{what} requires (begin, end), got {dom!r}", hint=f"te.{what}((0, n)) runs from 0"
        )
    domain = dom if isinstance(dom, Range) else Range(*[_whole(end) for end in dom])
    for end in (domain.min, domain.extent):
        if not (end.dtype.is_int or end.dtype.is_uint):
            raise TVMError(f"{what} requires integers as its ends, got {end} of {end.dtype}")
    if isinstance(domain.extent, IntImm) and domain.extent.value < 0:
        raise TVMError(f"{what} requires an end that is not before its begin, got {_pair(domain)}")
    return as_indexed_range(domain)


def _whole(end: Any) -> Any:
    """Numbers such as 3.0 are what dividing in Python gives."""
    return int(end) if isinstance(end, float) and end.is_integer() else end


def _pair(domain: Range) -> str:
    return f"({domain.min}, {domain.min + domain.extent})"

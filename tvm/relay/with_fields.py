"""Copies of expressions with some fields changed; the very same node if none is.

CallWithFields(call, args=[y])     call.op, call.attrs and call.span stay
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.span import Span
from tvm.ir.type import Type
from tvm.runtime.ndarray import NDArray

if TYPE_CHECKING:  # `expr` offers these functions
    import tvm.relay.expr as nodes
    from tvm.relay.function import Function

E = TypeVar("E", bound=RelayExpr)


def set_virtual_device(expr: RelayExpr, device: Any) -> None:
    """Note where the value of an expression lives; the only place that writes it."""
    expr._virtual_device_ = device


def _with_fields(expr: E, virtual_device: Any, span: Span | None, **fields: object) -> E:
    changes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in {**fields, "span": span}.items()
        if value is not None and value is not getattr(expr, name)
    }
    same_device = virtual_device is None or virtual_device is expr.virtual_device_
    if not changes and same_device:
        return expr
    result: E = expr.replace(**changes)
    if (device := virtual_device or expr.virtual_device_) is not None:
        set_virtual_device(result, device)
    return result


def ConstantWithFields(
    constant: nodes.Constant,
    data: NDArray | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.Constant:
    """The constant with other fields."""
    return _with_fields(constant, virtual_device, span, data=data)


def TupleWithFields(
    tup: nodes.Tuple,
    fields: list[RelayExpr] | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.Tuple:
    """The tuple with other fields."""
    return _with_fields(tup, virtual_device, span, fields=fields)


def VarWithFields(
    variable: nodes.Var,
    vid: str | None = None,
    type_annotation: Type | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.Var:
    """The variable with other fields; `vid` is its name, another one makes it another variable."""
    name = getattr(vid, "name_hint", vid)
    return _with_fields(
        variable, virtual_device, span, name_hint=name, type_annotation=type_annotation
    )


def CallWithFields(
    call: nodes.Call,
    op: RelayExpr | None = None,
    args: list[RelayExpr] | None = None,
    attrs: Attrs | None = None,
    type_args: list[Type] | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.Call:
    """The call with other fields.

    Parameters
    ----------
    call : relay.Call
        The original.
    op : relay.Expr, optional
        What is called.
    args : list of relay.Expr, optional
        The arguments.
    attrs : Attrs, optional
        The attributes.
    type_args : list of Type, optional
        The type arguments.
    virtual_device : VirtualDevice, optional
        Where the value lives.
    span : Span, optional
        Its place in a source.

    Returns
    -------
    relay.Call
        What is left out stays; the original itself if nothing changes.
    """
    return _with_fields(
        call, virtual_device, span, op=op, args=args, attrs=attrs, type_args=type_args
    )


def LetWithFields(
    let: nodes.Let,
    variable: nodes.Var | None = None,
    value: RelayExpr | None = None,
    body: RelayExpr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.Let:
    """The let with other fields.

    Parameters
    ----------
    let : relay.Let
        The original.
    variable : relay.Var, optional
        What is bound.
    value : relay.Expr, optional
        Its value.
    body : relay.Expr, optional
        Where it is known.
    virtual_device : VirtualDevice, optional
        Where the value lives.
    span : Span, optional
        Its place in a source.
    """
    return _with_fields(let, virtual_device, span, var=variable, value=value, body=body)


def IfWithFields(
    if_expr: nodes.If,
    cond: RelayExpr | None = None,
    true_branch: RelayExpr | None = None,
    false_branch: RelayExpr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.If:
    """The conditional with other fields.

    Parameters
    ----------
    if_expr : relay.If
        The original.
    cond : relay.Expr, optional
        The condition, a bool of rank 0.
    true_branch : relay.Expr, optional
        The value where it holds.
    false_branch : relay.Expr, optional
        The value where it does not.
    virtual_device : VirtualDevice, optional
        Where the value lives.
    span : Span, optional
        Its place in a source.
    """
    return _with_fields(
        if_expr,
        virtual_device,
        span,
        cond=cond,
        true_branch=true_branch,
        false_branch=false_branch,
    )


def TupleGetItemWithFields(
    tuple_get_item: nodes.TupleGetItem,
    tuple_value: RelayExpr | None = None,
    index: int | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.TupleGetItem:
    """The projection with other fields."""
    return _with_fields(tuple_get_item, virtual_device, span, tuple_value=tuple_value, index=index)


def RefCreateWithFields(
    ref_create: nodes.RefCreate,
    value: RelayExpr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.RefCreate:
    """The new cell with other fields."""
    return _with_fields(ref_create, virtual_device, span, value=value)


def RefReadWithFields(
    ref_read: nodes.RefRead,
    ref: RelayExpr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.RefRead:
    """The read with other fields."""
    return _with_fields(ref_read, virtual_device, span, ref=ref)


def RefWriteWithFields(
    ref_write: nodes.RefWrite,
    ref: RelayExpr | None = None,
    value: RelayExpr | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> nodes.RefWrite:
    """The write with other fields."""
    return _with_fields(ref_write, virtual_device, span, ref=ref, value=value)


def FunctionWithFields(
    function: Function,
    params: list[nodes.Var] | None = None,
    body: RelayExpr | None = None,
    ret_type: Type | None = None,
    ty_params: list[Type] | None = None,
    attrs: Attrs | None = None,
    virtual_device: Any = None,
    span: Span | None = None,
) -> Function:
    """The function with other fields.

    Parameters
    ----------
    function : relay.Function
        The original.
    params : list of relay.Var, optional
        The parameters.
    body : relay.Expr, optional
        The body.
    ret_type : Type, optional
        The type of the result.
    ty_params : list of TypeVar, optional
        The type parameters.
    attrs : Attrs, optional
        The attributes.
    virtual_device : VirtualDevice, optional
        Where the value lives.
    span : Span, optional
        Its place in a source.

    Returns
    -------
    relay.Function
        What is left out stays; the original itself if nothing changes.
    """
    return _with_fields(
        function,
        virtual_device,
        span,
        params=params,
        body=body,
        ret_type=ret_type,
        type_params=ty_params,
        attrs=attrs,
    )

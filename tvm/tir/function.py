"""Functions of the loop level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm.error import RuntimeTypeError, RuntimeValueError, TVMError, suggest
from tvm.ir.attrs import as_dict_attrs
from tvm.ir.function import BaseFunc
from tvm.ir.node import Node, binder, reference
from tvm.ir.script_printer import Scriptable
from tvm.ir.type import TupleType, Type

from .buffer import Buffer
from .expr import Var
from .index_map import IndexMap
from .specialize import specialize_function
from .stmt import Stmt

if TYPE_CHECKING:
    from tvm.ir.span import Span


class PrimFunc(Scriptable, BaseFunc):
    """A function of scalars and buffers.

    Parameters
    ----------
    params : list of Var or Buffer
        A buffer stands for a handle parameter that is bound to it.
    body : Stmt
        The statement.
    ret_type : Type, optional
        The result's type, nothing by default.
    buffer_map : dict of Var to Buffer, optional
        The buffers that handle parameters are bound to.
    attrs : dict, optional
        Attributes such as ``global_symbol``.
    """

    __slots__ = ("__name__",)  # of the definition that it was read from

    params: tuple[Var, ...] = binder("buffer_map", "body")
    body: Stmt
    ret_type: Type = reference()
    buffer_map: dict[Var, Buffer] = binder("body")

    def __init__(
        self,
        params: Sequence[Var | Buffer],
        body: Stmt,
        ret_type: Type | None = None,
        buffer_map: Mapping[Var, Buffer] | None = None,
        attrs: Any = None,
        span: Span | None = None,
    ) -> None:
        bound = dict(buffer_map or {})
        variables = []
        for given in params:
            # what ir_builder.pointer gives stands for its buffer
            param = given if isinstance(given, Node) else getattr(given, "buffer", given)
            if isinstance(param, Buffer):
                handle = Var(param.name, "handle")
                bound[handle] = param
                variables.append(handle)
            elif isinstance(param, Var):
                variables.append(param)
            else:
                raise RuntimeTypeError(
                    f"PrimFunc requires variables and buffers as params, got {type(param).__name__}"
                )
        self._init(
            tuple(variables), body, TupleType(()) if ret_type is None else ret_type, bound,
            as_dict_attrs(attrs), span,
        )  # fmt: skip

    def with_body(self, new_body: Stmt, span: Span | None = None) -> PrimFunc:
        """This function with another body; itself if the body is its own."""
        return self if new_body is self.body else self.replace(body=new_body)

    def specialize(self, param_map: Mapping[Var, Any]) -> PrimFunc:
        """This function with some parameters given values.

        Parameters
        ----------
        param_map : dict of Var to Buffer or PrimExpr
            A buffer for a handle parameter: its shape, strides and offset replace the parameter's
            symbolic ones. A value for a scalar parameter.
        """
        return specialize_function(self, param_map)


class TensorIntrin(Node):
    """A description of a computation, and an implementation in terms of an instruction."""

    desc: PrimFunc = reference()
    impl: PrimFunc = reference()

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> TensorIntrin:
        """Make an intrinsic known by a name."""
        if name in _TENSOR_INTRINS and not override:
            raise RuntimeValueError(f"TensorIntrin.register requires a new name, {name!r} is taken")
        _TENSOR_INTRINS[name] = found = TensorIntrin(desc, impl)
        return found

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic of that name."""
        found = _TENSOR_INTRINS.get(name)
        if found is None and not allow_missing:
            raise TVMError(
                f"no tensor intrinsic is called {name!r}", hint=suggest(name, _TENSOR_INTRINS)
            )
        return found


_TENSOR_INTRINS: dict[str, TensorIntrin] = {}

__all__ = ["IndexMap", "PrimFunc", "TensorIntrin"]

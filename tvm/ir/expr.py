"""The roots of all expressions, and names of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tvm.error import TypeCheckError
from tvm.support import DType

from . import extension
from .node import NODE_TYPES, Node, ignored
from .script_printer import Scriptable
from .span import Span

if TYPE_CHECKING:
    from .type import Type


class BaseExpr(Node):
    """An expression of any level."""

    span: Span | None = ignored(default=None, kw_only=True)


class PrimExpr(BaseExpr):
    """A loop-level expression with a data type."""

    dtype: DType

    if TYPE_CHECKING:
        # of the concrete expressions, which all derive from tir.PrimExprWithOp
        def __add__(self, other: Any) -> PrimExpr: ...
        def __radd__(self, other: Any) -> PrimExpr: ...
        def __sub__(self, other: Any) -> PrimExpr: ...
        def __rsub__(self, other: Any) -> PrimExpr: ...
        def __mul__(self, other: Any) -> PrimExpr: ...
        def __rmul__(self, other: Any) -> PrimExpr: ...
        def __truediv__(self, other: Any) -> PrimExpr: ...
        def __rtruediv__(self, other: Any) -> PrimExpr: ...
        def __floordiv__(self, other: Any) -> PrimExpr: ...
        def __rfloordiv__(self, other: Any) -> PrimExpr: ...
        def __mod__(self, other: Any) -> PrimExpr: ...
        def __rmod__(self, other: Any) -> PrimExpr: ...
        def __lshift__(self, other: Any) -> PrimExpr: ...
        def __rshift__(self, other: Any) -> PrimExpr: ...
        def __and__(self, other: Any) -> PrimExpr: ...
        def __or__(self, other: Any) -> PrimExpr: ...
        def __xor__(self, other: Any) -> PrimExpr: ...
        def __lt__(self, other: Any) -> PrimExpr: ...
        def __le__(self, other: Any) -> PrimExpr: ...
        def __gt__(self, other: Any) -> PrimExpr: ...
        def __ge__(self, other: Any) -> PrimExpr: ...
        def __neg__(self) -> PrimExpr: ...
        def equal(self, other: Any, span: Span | None = None) -> PrimExpr: ...
        def astype(self, dtype: Any, span: Span | None = None) -> PrimExpr: ...


class RelayExpr(BaseExpr):
    """A graph-level expression. Type inference fills in ``checked_type``."""

    __slots__ = ("_checked_type_", "_struct_info_", "_virtual_device_")
    graph_node: ClassVar[bool] = True
    operand_kind: ClassVar[str] = "operand"

    if TYPE_CHECKING:
        # slots that are written once the expression is made: no fields
        @property
        def _checked_type_(self) -> Type | None: ...
        @_checked_type_.setter
        def _checked_type_(self, ty: Type | None) -> None: ...
        @property
        def _struct_info_(self) -> Any: ...
        @_struct_info_.setter
        def _struct_info_(self, info: Any) -> None: ...
        @property
        def _virtual_device_(self) -> Any: ...
        @_virtual_device_.setter
        def _virtual_device_(self, device: Any) -> None: ...

        # of the concrete expressions, which derive from relay.ExprWithOp
        def __add__(self, other: Any) -> RelayExpr: ...
        def __radd__(self, other: Any) -> RelayExpr: ...
        def __sub__(self, other: Any) -> RelayExpr: ...
        def __rsub__(self, other: Any) -> RelayExpr: ...
        def __mul__(self, other: Any) -> RelayExpr: ...
        def __rmul__(self, other: Any) -> RelayExpr: ...
        def __truediv__(self, other: Any) -> RelayExpr: ...
        def __rtruediv__(self, other: Any) -> RelayExpr: ...
        def __neg__(self) -> RelayExpr: ...
        def __lt__(self, other: Any) -> RelayExpr: ...
        def __le__(self, other: Any) -> RelayExpr: ...
        def __gt__(self, other: Any) -> RelayExpr: ...
        def __ge__(self, other: Any) -> RelayExpr: ...
        def astype(self, dtype: str) -> RelayExpr: ...

    @property
    def checked_type(self) -> Any:
        """The type found by ``InferType``.

        Raises
        ------
        TypeCheckError
            If type inference has not run on this expression.
        """
        found = getattr(self, "_checked_type_", None)
        if found is None:
            raise TypeCheckError(
                f"checked_type of {type(self).__name__} requires type inference",
                hint="run relay.transform.InferType() on the module and use its result",
            )
        return found

    @property
    def struct_info_(self) -> Any:
        """What relax knows of the value, or None."""
        return getattr(self, "_struct_info_", None)

    @struct_info_.setter
    def struct_info_(self, info: Any) -> None:
        self._struct_info_ = info

    @property
    def struct_info(self) -> Any:
        """What relax knows of the value.

        Raises
        ------
        ValueError
            If it has not been normalised.
        """
        found = self.struct_info_
        if found is None and (infer := extension.struct_info_of.find(type(self))) is not None:
            found = infer(self)
        if found is None:
            raise ValueError(
                f"struct_info of {type(self).__name__} is not known yet; "
                "BlockBuilder.normalize finds it"
            )
        return found

    @property
    def virtual_device_(self) -> Any:
        """Where the value lives, as device planning or a program noted it, or None."""
        return getattr(self, "_virtual_device_", None)


class GlobalVar(Scriptable, RelayExpr):
    """The name of a function in a module."""

    name_hint: str
    type_annot: Type | None = ignored(default=None)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        return f"@{self.name_hint}"

    def renamed(self, name: str) -> GlobalVar:
        """A variable of another name and the same type."""
        var = GlobalVar(name, self.type_annot)
        for fact in ("_checked_type_", "_struct_info_"):
            if hasattr(self, fact):
                setattr(var, fact, getattr(self, fact))
        return var

    def __call__(self, *args: Any) -> Any:
        """A call of the function."""
        kinds = [extension.global_call_with.find(type(arg)) for arg in args]
        build = next((kind for kind in kinds if kind is not None), None)
        if build is None:
            is_relax = self.struct_info_ is not None
            build = (extension.relax_call if is_relax else extension.global_call).required
        return build(self, args)


def __getattr__(name: str) -> Any:
    if name in ("FloatImm", "IntImm", "Range"):  # loop-level nodes that have classic names here
        return NODE_TYPES[name]
    raise AttributeError(f"module 'tvm.ir.expr' has no attribute {name!r}")

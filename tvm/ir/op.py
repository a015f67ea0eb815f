"""Operators: one record each, with every facet a named field.

Loop-level intrinsics (``tir.exp``) and graph operators (``nn.conv2d``) are records of the same
class. ``None`` says that a facet is missing; ``docs/ops.md`` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.error import OpNotFound, OpNotImplemented, TVMError, suggest

from .attrs import AttrFieldInfo
from .expr import RelayExpr
from .node import ignored

# the record's fields under their classic attribute names
_CLASSIC_NAMES = {
    "TOpPattern": "fuse",
    "TCallEffectKind": "effect",
    "FTVMCompute": "compute",
    "FTVMStrategy": "strategy",
    "FTVMLegalize": "legalize",
    "FTVMQnnLegalize": "qnn_legalize",
    "FTVMQnnCanonicalize": "qnn_canonicalize",
    "FTVMAlterOpLayout": "alter_layout",
    "FPrimalGradient": "gradient",
    "FShapeFunc": "shape_func",
    "FMacCount": "mac_count",
    "FTVMMixedPrecisionConversionType": "precision",
    "TVectorizable": "vectorizable",
    "TScriptPrinterName": "script_name",
}


class Op(RelayExpr):
    """One operator. Facets are set where the operator is defined, or by ``register_op_attr``."""

    name: str
    # loop level
    effect: Any = ignored(default=None)  # tir.CallEffectKind
    vectorizable: bool | None = ignored(default=None)
    lowerings: dict[str, Callable[..., Any]] = ignored(default_factory=dict)  # by target kind
    script_name: str | None = ignored(default=None)
    # graph level
    attrs_type: Any = ignored(default=None)
    num_inputs: int | None = ignored(default=None)
    arguments: list[AttrFieldInfo] = ignored(default_factory=list)
    description: str | None = ignored(default=None)
    support_level: int = ignored(default=10)
    infer_type: Callable[..., Any] | None = ignored(default=None)
    compute: Callable[..., Any] | None = ignored(default=None)
    schedules: dict[str, Callable[..., Any]] | None = ignored(default=None)  # by target key
    strategy: Any = ignored(default=None)
    fuse: Any = ignored(default=None)  # relay.op.OpPattern
    gradient: Callable[..., Any] | None = ignored(default=None)
    # gradients of an elementwise function, from its arguments, its result and the result's gradient
    derivative: Callable[..., Any] | None = ignored(default=None)
    layout: Any = ignored(default=None)
    legalize: Callable[..., Any] | None = ignored(default=None)
    qnn_legalize: Callable[..., Any] | None = ignored(default=None)
    qnn_canonicalize: Callable[..., Any] | None = ignored(default=None)
    shape_func: Callable[..., Any] | None = ignored(default=None)
    make_static: Callable[..., Any] | None = ignored(default=None)
    precision: Any = ignored(default=None)
    # whether it adds up many elements in the dtype of its data
    accumulates: bool = ignored(default=False)
    fast_math: str | None = ignored(default=None)  # the operator that approximates it
    # the multiply-accumulate operations of a call
    mac_count: Callable[..., int] | None = ignored(default=None)
    simplify: Callable[..., Any] | None = ignored(default=None)
    # the call in other operators, of which its gradient is made
    composition: Callable[..., Any] | None = ignored(default=None)
    # types of arguments that a program leaves out, from attributes and the known types
    argument_types: Callable[..., Any] | None = ignored(default=None)
    fold: Callable[..., Any] | None = ignored(default=None)
    alter_layout: Callable[..., Any] | None = ignored(default=None)
    infer_layout: Callable[..., Any] | None = ignored(default=None)
    quantize: Any = ignored(default=None)
    # what users register under other names, and the levels of what they registered
    extra: dict[str, Any] = ignored(default_factory=dict)
    levels: dict[Any, int] = ignored(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return Op.get, (self.name,)

    def __call__(self, *args: Any, **kwargs: Any) -> RelayExpr:
        """Build a call through the operator's constructor, if it was defined with one."""
        build: Callable[..., RelayExpr] | None = self.extra.get("call")
        if build is None:
            raise OpNotImplemented(f"{self.name} cannot be called, build a Call node of it")
        return build(self, *args, **kwargs)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        return self.name

    @staticmethod
    def get(op_name: str) -> Op:
        """The operator of that name.

        Raises
        ------
        OpNotFound
            If there is none; the hint has similar names.
        """
        found = _OPS.get(op_name)
        if found is None:
            raise OpNotFound(f"no operator is called {op_name!r}", hint=suggest(op_name, _OPS))
        return found

    @staticmethod
    def facets() -> tuple[str, ...]:
        """The names of all facets."""
        return tuple(field.name for field in Op.node_fields[1:])

    @staticmethod
    def list_op_names() -> list[str]:
        """All operators' names in order of definition."""
        return list(_OPS)

    def set_facets(self, **facets: Any) -> Op:
        """Fill in fields of the record."""
        for name, value in facets.items():
            setattr(self, name, value)
        return self

    def get_attr(self, attr_name: str) -> Any:
        """A facet under its field's name or its classic attribute name; None if missing."""
        field = _CLASSIC_NAMES.get(attr_name, attr_name)
        if field in Op.facets():
            return getattr(self, field)
        return self.extra.get(attr_name)

    def has_attr(self, attr_name: str) -> bool:
        """Whether the facet is there."""
        return self.get_attr(attr_name) is not None

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Set a facet unless one of a higher level is there."""
        field = _CLASSIC_NAMES.get(attr_name, attr_name)
        if plevel < self.levels.get(field, 0):
            return
        self.levels[field] = plevel
        if field in Op.facets():
            setattr(self, field, value)
        else:
            self.extra[attr_name] = value

    def reset_attr(self, attr_name: str) -> None:
        """Remove a facet."""
        field = _CLASSIC_NAMES.get(attr_name, attr_name)
        self.levels.pop(field, None)
        if field in Op.facets():
            setattr(self, field, None)
        else:
            self.extra.pop(attr_name, None)

    def add_type_rel(self, rel_name: str, type_rel_func: Callable[..., Any] | None = None) -> None:
        """Set the type relation: one that is registered by name, or a function of the user.

        Parameters
        ----------
        rel_name : str
            Such as ``"Identity"``: the global function ``tvm.relay.type_relation.Identity``.
        type_rel_func : callable, optional
            ``type_rel_func(arg_types, attrs)`` gives the type of the result.
        """
        relation = type_rel_func or get_global_func(f"tvm.relay.type_relation.{rel_name}", True)
        if relation is None:
            raise TVMError(
                f"no type relation is called {rel_name!r}",
                hint="pass it: op.add_type_rel(name, lambda arg_types, attrs: ...)",
            )
        self.set_facets(infer_type=lambda attrs, arg_types: relation(arg_types, attrs))

    def add_argument(self, name: str, type: str, description: str) -> None:
        """Describe one argument."""
        self.arguments.append(AttrFieldInfo(name, type, description))

    def set_support_level(self, level: int) -> None:
        """The classic level of importance: 1 basic to 10 experimental."""
        self.set_facets(support_level=level)

    def set_num_inputs(self, n: int) -> None:
        """The number of arguments, -1 for any."""
        self.set_facets(num_inputs=n)

    def set_attrs_type_key(self, key: str) -> None:
        """The type key of the attributes."""
        self.set_facets(attrs_type=key)


_OPS: dict[str, Op] = {}


def register_op(name: str) -> Op:
    """The operator of that name, made if it is new."""
    found = _OPS.get(name)
    if found is None:
        found = _OPS[name] = Op(name)
    return found


def has_op(name: str) -> bool:
    """Whether an operator has that name."""
    return name in _OPS


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Set a facet of an operator; a decorator if ``value`` is left out.

    Parameters
    ----------
    op_name : str
        The operator.
    attr_key : str
        The facet's name, ours or a classic one.
    value : optional
        The facet.
    level : int
        Of two registrations the one of the higher level holds, of equal ones the later.
    """

    def register(facet: Any) -> Any:
        register_op(op_name).set_attr(attr_key, facet, level)
        return facet

    return register if value is None else register(value)


def register_intrin_lowering(
    op_name: str, target: str, *, f: Callable[..., Any] | None = None, level: int = 10
) -> Any:
    """Set how an intrinsic is lowered for a kind of target; a decorator without ``f``.

    Parameters
    ----------
    op_name : str
        Such as ``"tir.exp"``.
    target : str
        The target kind, or ``"default"``.
    f : callable
        From the call to the expression that replaces it.
    """

    def register(lowering: Any) -> Any:
        op = register_op(op_name)
        if level >= op.levels.get(("lower", target), 0):
            op.levels[("lower", target)] = level
            op.lowerings[target] = lowering
        return lowering

    return register if f is None else register(f)

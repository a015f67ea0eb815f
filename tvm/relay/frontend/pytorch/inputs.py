"""The inputs of a TorchScript graph, as users describe them: variables, and the values they are.

("x", (2, 3))                     x: Tensor[(2, 3), float32]
("n", ((), "int64"))              n: int64
("state", ((2, 4), (2, 4)))       state: (Tensor, Tensor); its parts are state.0 and state.1
("states", [((2, 4), (2, 4))])    states: List[(Tensor, Tensor)], which a match destructures
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.structural import structural_equal
from tvm.relay.adt import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tvm.relay.expr import TupleGetItem, Var, var
from tvm.relay.frontend.common import set_span
from tvm.relay.prelude import Prelude
from tvm.relay.ty import TensorType, TupleType, Type, TypeCall

from .complex_tensors import from_pairs, pairs_of
from .dynamic_shapes import with_variables
from .graph_types import PARTS_OF_COMPLEX, SCALAR_TYPES

_DIMS = (int, np.integer, PrimExpr)
_NUMBERS = {"IntType": "int64", "FloatType": "float64", "BoolType": "bool"}


@dataclass
class Input:
    """One parameter of the function, what it stands for, and how lists in it are destructured."""

    variable: Var
    value: Any
    described: _Described | None = None  # of an input with lists

    def around(self, body: RelayExpr) -> RelayExpr:
        """The body of the function, in which the parts of lists are variables."""
        if self.described is None:
            return body
        pattern = self.described.pattern_of(self.value)
        return Match(self.variable, [Clause(pattern, body)], complete=False)


def needs_lists(infos: Sequence[Any]) -> bool:
    """Whether an input has lists, which are of a type that a module defines."""
    return any(_has_list(info[1]) for info in infos if len(info) == 2)


def _has_list(spec: Any) -> bool:
    if isinstance(spec, list):
        return not all(isinstance(dim, _DIMS) for dim in spec)
    return isinstance(spec, tuple) and any(_has_list(item) for item in spec)


def bound_input(info: Any, declared: Any, default_dtype: str, prelude: Prelude | None) -> Input:
    """The parameter for an input of a declared type."""
    if not isinstance(info, (tuple, list)) or len(info) != 2 or not isinstance(info[0], str):
        raise TypeError(f"an input_info is (name, shape) or (name, (shape, dtype)), got {info!r}")
    name, spec = info
    found = _Reader(name, default_dtype, prelude).read(spec, declared)
    if isinstance(found.type, TensorType):
        parts = with_variables(found.type.shape, name)
        variable = var(name, shape=parts, dtype=str(found.type.dtype))
        return Input(variable, from_pairs(variable) if found.is_complex else variable)
    variable = set_span(Var(name, found.type), name)
    if _has_list(spec):
        return Input(variable, found.matched(name), found)
    return Input(variable, found.parts_of(variable))


@dataclass
class _Described:
    """The type of a value, and the descriptions of what it contains."""

    type: Type
    items: Sequence[_Described] = ()
    is_complex: bool = False
    constructors: tuple[Any, Any] | None = None  # of a list

    def parts_of(self, value: RelayExpr) -> Any:
        """The nested tensors of a tuple."""
        if isinstance(self.type, TensorType):
            return from_pairs(value) if self.is_complex else value
        return [item.parts_of(TupleGetItem(value, i)) for i, item in enumerate(self.items)]

    def matched(self, name: str) -> Any:
        """Variables for all tensors, nested as the value is."""
        if isinstance(self.type, TensorType):
            variable = set_span(Var(name, self.type), name)
            return from_pairs(variable) if self.is_complex else variable
        items = [item.matched(f"{name}_{i}") for i, item in enumerate(self.items)]
        return items if self.constructors is None else InputList(items, self.items[0], name)

    def pattern_of(self, value: Any) -> Pattern:
        """The pattern that binds the variables of `matched`."""
        if isinstance(self.type, TensorType):
            return PatternVar(pairs_of(value) if self.is_complex else value)
        if self.constructors is None:
            parts = zip(self.items, value, strict=True)
            return PatternTuple([item.pattern_of(part) for item, part in parts])
        cons, nil = self.constructors
        pattern = PatternConstructor(nil, [])
        for part in reversed(value):
            pattern = PatternConstructor(cons, [self.items[0].pattern_of(part), pattern])
        return pattern


class InputList(list[Any]):
    """The items of a list; it has as many as its description or as the model reads.

    The type of an input says nothing about the list's length.
    """

    def __init__(self, items: Sequence[Any], kind: _Described, name: str) -> None:
        super().__init__(items)
        self._kind = kind
        self._name = name

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int):
            while index >= len(self):
                self.append(self._kind.matched(f"{self._name}_{len(self)}"))
        return super().__getitem__(index)


@dataclass(frozen=True)
class _Reader:
    """Reads what a user says about one input."""

    name: str
    default_dtype: str
    prelude: Prelude | None

    def read(self, spec: Any, declared: Any) -> _Described:
        kind = declared.kind()
        if kind == "OptionalType":
            return self.read(spec, declared.getElementType())
        if kind == "TupleType":
            return self._tuple(spec, list(declared.elements()))
        if kind == "ListType":
            return self._list(spec, declared.getElementType())
        if kind not in ("TensorType", "NumberType", *_NUMBERS):
            raise TypeError(
                f"input {self.name!r} is a {declared} of the graph, from_pytorch takes tensors, "
                "numbers, and tuples and lists of them; hint: trace a module that takes tensors"
            )
        return self._tensor(spec, declared)

    def _tensor(self, spec: Any, declared: Any) -> _Described:
        if not isinstance(spec, (tuple, list)):
            raise TypeError(f"the shape of input {self.name!r} requires a tuple, got {spec!r}")
        shape, dtype = spec, None
        if len(spec) == 2 and isinstance(spec[0], (tuple, list)):
            shape, dtype = spec[0], _dtype_text(spec[1])
        self._check_shape(shape)
        if dtype is None:
            scalar = declared.scalarType() if declared.kind() == "TensorType" else None
            known = _NUMBERS.get(declared.kind(), SCALAR_TYPES.get(str(scalar)))
            dtype = known or self.default_dtype
        pairs = PARTS_OF_COMPLEX.get(dtype)
        sizes = (*shape, 2) if pairs else tuple(shape)
        return _Described(TensorType(sizes, pairs or dtype), is_complex=pairs is not None)

    def _check_shape(self, shape: Any) -> None:
        wrong = [dim for dim in shape if not isinstance(dim, _DIMS)]
        if wrong:
            raise TypeError(f"the shape of input {self.name!r} requires integers, got {wrong[0]!r}")

    def _tuple(self, spec: Any, kinds: list[Any]) -> _Described:
        if not isinstance(spec, (tuple, list)) or len(spec) != len(kinds):
            raise TypeError(
                f"input {self.name!r} is a tuple of {len(kinds)}, which requires a tuple of as "
                f"many shapes, got {spec!r}"
            )
        items = [self.read(item, kind) for item, kind in zip(spec, kinds, strict=True)]
        return _Described(TupleType([item.type for item in items]), items)

    def _list(self, spec: Any, kind: Any) -> _Described:
        if not isinstance(spec, list) or not spec:
            raise TypeError(
                f"input {self.name!r} is a list, which requires a list of the shapes of its items, "
                f"got {spec!r}"
            )
        items = [self.read(item, kind) for item in spec]
        types = [item.type for item in items]
        if not all(structural_equal(ty, types[0]) for ty in types):
            raise TVMError(f"input {self.name!r} requires a list of items of one type, got {spec}")
        assert self.prelude is not None
        list_type, cons, nil = self.prelude.mod.get_type("List")
        return _Described(TypeCall(list_type, [types[0]]), items, constructors=(cons, nil))


def script_defaults(module: Any) -> list[Any]:
    """The values that the last parameters of a scripted module or function have by default."""
    function = getattr(module, "forward", module)
    schema = getattr(function, "schema", None)
    found: list[Any] = []
    for argument in reversed(schema.arguments if schema is not None else []):
        if not argument.has_default_value():
            break
        found.insert(0, argument.default_value)
    return found


def _dtype_text(dtype: Any) -> str:
    text = str(dtype).removeprefix("torch.")
    return {"float": "float32", "double": "float64", "half": "float16", "long": "int64",
            "int": "int32"}.get(text, text)  # fmt: skip

"""The functions and types that programs expect: lists, options, trees, arrays of tensors.

    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)
    _, cons, nil = p.mod.get_type("List")
    p.map, p.foldl, ...                                # global variables
    p.get_global_var("tensor_array_read", "float32")   # of the arrays of a dtype

The definitions for a dtype are added when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.type import GlobalTypeVar, TypeCall
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.library import add_definitions, library
from tvm.relay.parser import parse
from tvm.relay.tensor_array_text import (
    dynamic_text,
    static_joined_text,
    static_shapes,
    static_split_text,
    static_suffix,
    static_text,
)
from tvm.tir.expr import Any as AnyDim

_GLOBALS = (
    "id", "compose", "flip", "iterate", "hd", "tl", "nth", "update", "map", "foldl", "foldr",
    "foldr1", "concat", "filter", "zip", "rev", "map_accuml", "map_accumr", "unfoldl", "unfoldr",
    "sum", "length", "tmap", "size",
)  # fmt: skip


def _dims(shape: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(["?" if isinstance(d, AnyDim) else int(d) for d in shape])


def get_tensor_array_shape(expr: RelayExpr, dtype: str, prelude: Prelude) -> tuple[Any, ...] | None:
    """The shape of the tensors in an array, None if they are of any shape."""
    ty = infer_type_of(expr, prelude.mod)
    item = ty.args[0] if isinstance(ty, TypeCall) and ty.args else None
    if not isinstance(item, TypeCall) or not isinstance(item.func, GlobalTypeVar):
        raise TypeError(f"get_tensor_array_shape requires an array of tensors, got {ty}")
    if item.func.name_hint == prelude.get_name("tensor_t", dtype):
        return None
    data = prelude.mod.type_definitions[item.func]
    constructor = next(c for c in data.constructors if c.inputs)
    return tuple(constructor.inputs[0].shape)


class _NamedDefinitions:
    """Definitions of a module by their canonical names."""

    prelude: Prelude

    def get_name(self, canonical: str) -> str:
        """The name in the module."""
        raise NotImplementedError

    def get_global_var(self, canonical: str) -> GlobalVar:
        """The function of a name."""
        return self.prelude.mod.get_global_var(self.get_name(canonical))

    def get_type(self, canonical: str) -> GlobalTypeVar:
        """The type of a name."""
        found: GlobalTypeVar = self.prelude.mod.get_global_type_var(self.get_name(canonical))
        return found

    def get_ctor(self, canonical: str) -> Constructor:
        """The constructor of a name."""
        name = self.get_name(canonical)
        return _constructor(self.prelude.mod, self.get_name("tensor_t"), name)


class TensorArrayOps(_NamedDefinitions):
    """The names of the arrays of tensors of any shape, of one dtype."""

    def __init__(self, prelude: Prelude, dtype: str) -> None:
        self.prelude = prelude
        self.dtype = dtype

    def get_name(self, canonical: str) -> str:
        """The name in the module: `tensor_take_float32`."""
        if canonical == "tensor_t":
            return f"tensor_{self.dtype}_t"
        return f"{canonical}_{self.dtype}"

    def register(self) -> None:
        """Add the definitions to the module, unless it has them."""
        if self.get_name("tensor_array") in self.prelude.mod:
            return
        mod = self.prelude.mod
        add_definitions(mod, parse(dynamic_text(self.dtype), init_module=mod), "tensor arrays")

    # the definitions of a dtype name each other, and come together
    define_tensor_adt = define_tensor_take = define_tensor_expand_dims = register
    define_tensor_concat = define_tensor_array = define_tensor_array_read = register
    define_tensor_array_write = define_tensor_array_scatter = define_tensor_array_split = register
    define_tensor_array_concat = define_tensor_array_gather = define_tensor_array_stack = register
    define_tensor_array_unstack_tensor1 = define_tensor_array_unstack_tensor2 = register
    define_tensor_array_unstack_tensor3 = define_tensor_array_unstack_tensor4 = register
    define_tensor_array_unstack_tensor5 = define_tensor_array_unstack_tensor6 = register


class StaticTensorArrayOps(_NamedDefinitions):
    """The names of the arrays of tensors of one shape and dtype."""

    def __init__(
        self, prelude: Prelude, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.shape = tuple(shape)
        self.batch_dim = batch_dim

    def _suffix(self) -> str:
        return static_suffix(self.dtype, _dims(self.shape))

    def get_name(self, canonical: str, extra_shapes: Sequence[Sequence[Any]] | None = None) -> str:
        """The name in the module: `tensor_array_read_float32_2_3`."""
        del extra_shapes  # one function takes indices, values and lengths of every number
        if canonical == "tensor_t":
            return f"static_tensor_{self._suffix()}_t"
        return f"{canonical}_{self._suffix()}"

    def register(self) -> None:
        """Add the definitions to the module, unless it has them."""
        if self.get_name("tensor_array_stack") in self.prelude.mod:
            return
        shape = _dims(self.shape)
        for other in static_shapes(shape):
            self._register_type(other)
        self._add(static_joined_text(self.dtype, shape))

    def _register_type(self, shape: Sequence[Any]) -> None:
        """Add the type of tensors of one shape, unless the module has it."""
        if f"tensor_array_{static_suffix(self.dtype, shape)}" not in self.prelude.mod:
            self._add(static_text(self.dtype, shape))

    def _add(self, text: str) -> None:
        mod = self.prelude.mod
        add_definitions(mod, parse(text, init_module=mod), "tensor arrays")

    def is_cached(self, name: str) -> bool:
        """Whether the module has a function of that name."""
        return name in self.prelude.mod

    # the definitions of a shape name each other, and come together
    define_tensor_adt = define_tensor_array = define_tensor_array_read = register
    define_tensor_array_write = define_tensor_array_unstack = define_tensor_array_stack = register
    define_tensor_array_gather = define_tensor_get_data = define_tensor_take = register
    define_tensor_concatenate = define_tensor_expand_dims = define_tensor_array_concat = register

    def define_tensor_array_scatter(
        self, indices_shape: Sequence[Any] | None = None, force_update: bool = False
    ) -> None:
        """Add the definitions; whatever the shape, the function takes any number of indices."""
        del indices_shape, force_update
        self.register()

    def define_tensor_array_split(
        self,
        value_shape: Sequence[Any] | None = None,
        lengths_shape: Sequence[Any] | None = None,
        force_update: bool = False,
    ) -> None:
        """Add the definitions; the function takes any number of lengths.

        Parameters
        ----------
        value_shape : sequence, optional
            The shape of the tensors to split, if it is another one than that of the array. A
            function for tensors of yet another shape is replaced.
        lengths_shape, force_update : optional
            Of no consequence.
        """
        del lengths_shape, force_update
        self.register()
        if value_shape is None or not self.shape:
            return
        value = _dims(value_shape)
        self._register_type(value)
        for name in ("tensor_array_split_helper", "tensor_array_split"):
            del self.prelude.mod[self.get_name(name)]
        self._add(static_split_text(self.dtype, _dims(self.shape), value))


def _constructor(mod: IRModule, type_name: str, name: str) -> Constructor:
    constructors: Sequence[Constructor] = mod.get_type(type_name)[1:]
    for constructor in constructors:
        if constructor.name_hint == name:
            return constructor
    raise ValueError(f"the type {type_name} has no constructor {name!r}")


class Prelude:
    """A module with the definitions of the prelude, and their global variables as attributes."""

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = IRModule() if mod is None else mod
        self._known: dict[object, TensorArrayOps | StaticTensorArrayOps] = {}
        self.load_prelude()

    def load_prelude(self) -> None:
        """Add the definitions that the module has not."""
        if "map_accumr" not in self.mod:
            add_definitions(self.mod, library("prelude.rly"), "prelude.rly")
        for name in _GLOBALS:
            setattr(self, name, self.mod.get_global_var(name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the prelude has no {name!r}, it has {', '.join(_GLOBALS)}")

    def _array(self, dtype: str) -> TensorArrayOps:
        found = self._known.get(dtype)
        if found is None:
            found = self._known[dtype] = TensorArrayOps(self, dtype)
            found.register()
        assert isinstance(found, TensorArrayOps)
        return found

    def _static(
        self, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> StaticTensorArrayOps:
        key = (dtype, _dims(shape))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = StaticTensorArrayOps(self, dtype, shape, batch_dim)
            found.register()
        assert isinstance(found, StaticTensorArrayOps)
        return found

    def get_name(self, canonical: str, dtype: str) -> str:
        """The name of a function for a dtype."""
        return self._array(dtype).get_name(canonical)

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """The function for a dtype."""
        return self._array(dtype).get_global_var(canonical)

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """The type for a dtype."""
        return self._array(dtype).get_type(canonical)

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """A constructor of the type of that name in the module."""
        return _constructor(self.mod, ty_name, self.get_name(canonical, dtype))

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """A constructor of tensors: `tensor_nil`, `tensor0` to `tensor6`."""
        return self._array(dtype).get_ctor(canonical)

    def get_name_static(
        self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> str:
        """The name of a function for a shape and a dtype."""
        return self._static(dtype, shape, batch_dim).get_name(canonical)

    def get_global_var_static(
        self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> GlobalVar:
        """The function for a shape and a dtype."""
        return self._static(dtype, shape, batch_dim).get_global_var(canonical)

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[Any]) -> GlobalTypeVar:
        """The type for a shape and a dtype."""
        return self._static(dtype, shape).get_type(canonical)

    def get_ctor_static(
        self, ty_name: str, name: str, dtype: str, shape: Sequence[Any]
    ) -> Constructor:
        """A constructor of the type of that name for a shape and a dtype."""
        array = self._static(dtype, shape)
        return _constructor(self.mod, array.get_name(ty_name), array.get_name(name))

    def get_tensor_ctor_static(self, name: str, dtype: str, shape: Sequence[Any]) -> Constructor:
        """A constructor of tensors of a shape: `tensor_nil`, `tensor_constructor`."""
        return self._static(dtype, shape).get_ctor(name)


__all__ = [
    "Prelude",
    "StaticTensorArrayOps",
    "TensorArrayOps",
    "get_tensor_array_shape",
]

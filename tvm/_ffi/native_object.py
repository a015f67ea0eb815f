"""Python classes for kinds of objects that C++ libraries declare."""

from __future__ import annotations

from typing import Any

from tvm._ffi import _core


def stand_for_native(cls: Any, key: str) -> None:
    """Let native objects of the kind ``key`` arrive as instances of ``cls``.

    Attributes, equality, hashing and pickling are those of the native object, unless the class
    defines its own.
    """
    if not cls.__dictoffset__:
        raise TypeError(f"{cls.__name__} must not declare __slots__ to stand for native objects")
    for name, function in METHODS.items():
        if getattr(cls, name, None) is getattr(object, name, None):
            setattr(cls, name, function)
    _core.set_object_class(_core.type_index(key), cls)


def attribute_names(self: Any) -> list[str]:
    """The attributes of a native object."""
    names = _core.get_global("runtime.NodeListAttrNames")(self)
    return [names(i) for i in range(names(-1))]


def get_attribute(self: Any, name: str) -> Any:
    if self._native is None or name.startswith("__"):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    if name == "handle":
        return self._native.handle
    return _core.get_global("runtime.NodeGetAttr")(self, name)


def list_attributes(self: Any) -> list[str]:
    names = attribute_names(self) if self._native is not None else []
    return sorted({*object.__dir__(self), *names})


def equal(self: Any, other: object) -> bool:
    return bool(self.same_as(other))


def hash_of(self: Any) -> int:
    return object.__hash__(self) if self._native is None else hash(self._native)


def represent(self: Any) -> str:
    if self._native is None:
        return object.__repr__(self)
    fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in attribute_names(self)])
    return f"{_core.type_key(self._native.type_index)}({fields})"


def reduce(self: Any, protocol: int) -> Any:
    if self._native is None:
        return object.__reduce_ex__(self, protocol)
    state = [value for name in attribute_names(self) for value in (name, getattr(self, name))]
    return make_native, (_core.type_key(self._native.type_index), *state)


def make_native(key: str, *names_and_values: Any) -> Any:
    """The native object of the kind ``key`` with these attributes."""
    return _core.get_global("runtime.MakeNode")(key, *names_and_values)


METHODS: dict[str, Any] = {
    "__getattr__": get_attribute,
    "__dir__": list_attributes,
    "__eq__": equal,
    "__hash__": hash_of,
    "__repr__": represent,
    "__reduce_ex__": reduce,
}

"""The table of global functions, shared by Python, native and compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from tvm._ffi import _core
from tvm._ffi._core import PackedFuncBase
from tvm._ffi.native_object import stand_for_native
from tvm.error import suggest

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


@overload
def register_func(func_name: str, f: F, override: bool = False) -> F: ...
@overload
def register_func(func_name: str, f: None = None, override: bool = False) -> Callable[[F], F]: ...
@overload
def register_func(func_name: F, f: None = None, override: bool = False) -> F: ...


def register_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Register a global function.

    Parameters
    ----------
    func_name : str or function
        The name; a function, if this is used as a decorator without a name.
    f : function, optional
        The function; without it a decorator is returned.
    override : bool
        Whether an earlier registration is replaced.

    Returns
    -------
    function or decorator
        The function as it was given.
    """
    if callable(func_name):
        func_name, f = getattr(func_name, "__name__", func_name), func_name
    if not isinstance(func_name, str):
        raise ValueError(f"register_func needs a name, got {func_name!r}")

    def register(func: F) -> F:
        packed = func if isinstance(func, PackedFuncBase) else _core.make_function(func)
        _core.register_global(func_name, packed, override)
        return func

    return register if f is None else register(f)


# each imports the package whose import registers a function of that name, and says whether there is one
_PACKAGES_LATER: list[Callable[[str], bool]] = []


def import_for_functions(import_package: Callable[[str], bool]) -> None:
    """Ask a function for a package, which is imported late, where a global function is missing."""
    _PACKAGES_LATER.append(import_package)


@overload
def get_global_func(name: str, allow_missing: Literal[False] = False) -> PackedFuncBase: ...
@overload
def get_global_func(name: str, allow_missing: bool) -> PackedFuncBase | None: ...


def get_global_func(name: str, allow_missing: bool = False) -> PackedFuncBase | None:
    """The global function of that name.

    Parameters
    ----------
    name : str
        Its name.
    allow_missing : bool
        Whether to return None, rather than raise, if there is none.
    """
    func: PackedFuncBase | None = _core.get_global(name)
    if func is None and any([import_package(name) for import_package in _PACKAGES_LATER]):
        func = _core.get_global(name)
    if func is None and not allow_missing:
        hint = suggest(name, list_global_func_names())
        raise ValueError(f"cannot find global function {name!r}" + (f"; {hint}" if hint else ""))
    return func


def list_global_func_names() -> list[str]:
    """The names of all global functions, sorted."""
    return _core.list_global_names()


def remove_global_func(name: str) -> None:
    """Remove a global function; those who hold it may still call it."""
    _core.remove_global(name)


def extract_ext_funcs(finit: Callable[..., Any]) -> dict[str, PackedFuncBase]:
    """The functions that ``finit`` declares through the callback ``(name, function)`` it is given."""
    found: dict[str, PackedFuncBase] = {}

    def declare(name: str, func: PackedFuncBase) -> None:
        found[name] = func

    finit(_core.make_function(declare))
    return found


# type indices of the classes that were registered by name
_TYPE_INDICES: dict[type, int] = {}


@overload
def register_object(type_key: C) -> C: ...
@overload
def register_object(type_key: str | None = None) -> Callable[[C], C]: ...


def register_object(type_key: Any = None) -> Any:
    """Name the class of a kind of object; a decorator, with or without the name.

    Objects that a C++ library declares under that type key arrive as instances of the class, which
    must derive from :class:`tvm.runtime.Object`; their attributes are those that ``VisitAttrs`` shows.

    Parameters
    ----------
    type_key : str, optional
        The type key; the class's name by default.
    """

    def register(cls: C) -> C:
        key = type_key if isinstance(type_key, str) else cls.__name__
        _TYPE_INDICES[cls] = _core.type_index(key)
        # IR nodes and slotted classes are Python's own and never native
        if cls.__dictoffset__ and hasattr(cls, "same_as") and not hasattr(cls, "type_key"):
            stand_for_native(cls, key)
        return cls

    return register(type_key) if isinstance(type_key, type) else register


def get_object_type_index(cls: type) -> int | None:
    """The type index of a class, None if it has no type key."""
    found = _TYPE_INDICES.get(cls)
    if found is None and isinstance(key := vars(cls).get("type_key"), str):
        found = _TYPE_INDICES[cls] = _core.type_index(key)
    return found


def register_extension(cls: C, fcreate: Any = None) -> C:
    """Let values of ``cls`` be passed as the array their ``_tvm_handle`` points to."""

    def as_argument(value: Any) -> Any:
        return _core.borrow_tensor(value._tvm_handle, value)

    cls._tvm_ffi_argument_ = as_argument  # type: ignore[attr-defined]
    return cls

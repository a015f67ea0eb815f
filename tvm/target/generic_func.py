"""Functions that choose an implementation by the current target's keys.

@generic_func
def schedule(outs): ...

@schedule.register(["cpu", "arm_cpu"])
def schedule_cpu(outs): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Generic, TypeVar, overload

from .kind import TargetError
from .target_node import Target

F = TypeVar("F", bound=Callable[..., Any])
G = TypeVar("G", bound=Callable[..., Any])


class GenericFunc(Generic[F]):
    """A function with a default and implementations by target key."""

    def __init__(self, name: str = "", default: F | None = None) -> None:
        self.name = name
        self.default = default
        self.dispatch: dict[str, F] = {}

    def set_default(self, func: F, allow_override: bool = False) -> None:
        """The implementation for targets that no other one fits."""
        if self.default is not None and not allow_override:
            raise TargetError(f"generic function {self.name} has a default already")
        self.default = func

    @overload
    def register(
        self,
        func: str | list[str] | tuple[str, ...] | None = ...,
        *,
        key_list: Any = ...,
        allow_override: bool = ...,
        override: bool = ...,
    ) -> Callable[[G], G]: ...
    @overload
    def register(
        self, func: G, key_list: str | Iterable[str] = ..., allow_override: bool = ...,
        override: bool = ...,
    ) -> G: ...  # fmt: skip
    def register(
        self,
        func: Any = None,
        key_list: str | Iterable[str] = (),
        allow_override: bool = False,
        override: bool = False,
    ) -> Any:
        """Register ``func`` for the target keys; a decorator if given only the keys."""
        if func is None or isinstance(func, (str, list, tuple)):
            keys = func if func is not None else key_list
            allow = allow_override or override
            return lambda f: self.register(f, keys, allow)
        for key in [key_list] if isinstance(key_list, str) else key_list:
            if key in self.dispatch and not (allow_override or override):
                raise TargetError(f"generic function {self.name} is registered for {key} already")
            self.dispatch[key] = func
        return func

    def get_packed_func(self) -> F:
        """The implementation for the current target."""
        return self.choose(Target.current())

    def choose(self, target: Target | None) -> F:
        """The implementation of the first of the target's keys that has one."""
        for key in () if target is None else target.keys:
            if (found := self.dispatch.get(key)) is not None:
                return found
        if self.default is None:
            raise TargetError(f"generic function {self.name} has no implementation for {target}")
        return self.default

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.choose(Target.current())(*args, **kwargs)


_NATIVE: dict[str, GenericFunc[Any]] = {}


def get_native_generic_func(name: str) -> GenericFunc[Any]:
    """The registered generic function of that name, created on first use."""
    return _NATIVE.setdefault(name, GenericFunc(name))


def generic_func(fdefault: F) -> Any:
    """Make a function generic: ``fdefault.register(keys)`` adds implementations."""
    generic: GenericFunc[F] = GenericFunc(fdefault.__name__, fdefault)
    return _decorated(generic, fdefault)


def override_native_generic_func(func_name: str) -> Callable[[F], Any]:
    """As :func:`generic_func`, for the registered generic function ``func_name``."""

    def decorate(fdefault: F) -> Any:
        generic = get_native_generic_func(func_name)
        generic.set_default(fdefault, allow_override=True)
        return _decorated(generic, fdefault)

    return decorate


def _decorated(generic: GenericFunc[Any], fdefault: Callable[..., Any]) -> Any:
    @wraps(fdefault)
    def dispatching(*args: Any, **kwargs: Any) -> Any:
        return generic(*args, **kwargs)

    public: Any = dispatching
    public.register = generic.register
    public.fdefault = fdefault
    public.dispatch_dict = generic.dispatch
    public.generic_func_node = generic
    public.get_packed_func = generic.get_packed_func
    return public

"""What topi answers to arguments that it cannot work with.

    topi.nn.relu(numpy.ones(3))    ->    RuntimeTypeError: topi.nn.relu requires a te.Tensor for x, got a numpy.ndarray
    topi.nn.dense(A, of_rank_4)    ->    RuntimeValueError: topi.nn.dense does not suit its arguments: ...

A compute reads the shapes and elements of its arguments as they come. Only when that fails, its
arguments are held against its annotations, so that a call that succeeds pays nothing. The package's
own errors pass; any other one that its code raised came of a value that was not what the code took
it for, and names the arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeTypeError, RuntimeValueError, TVMError
from tvm.ir.expr import PrimExpr

_PACKAGE = str(Path(__file__).parents[1])
_SCALARS: Mapping[str, Any] = {
    "int": (int, tir.IntImm), "float": (int, float, PrimExpr), "str": str, "bool": bool,
    "PrimExpr": (int, float, PrimExpr), "Sequence[int]": (tuple, list),
}  # fmt: skip


def guarded(package: str, names: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """The public functions of a package, each of which says what it cannot use.

    Parameters
    ----------
    package : str
        The package's full name.
    names : mapping
        Its names; what is not a function of the library stays as it is.
    """
    return {
        name: _guard(package, name, value)
        for name, value in names.items()
        if not name.startswith("_") and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    is_ours = isinstance(value, FunctionType) and value.__module__.startswith("tvm.topi")
    return is_ours and not hasattr(value, "__wrapped__")


def _guard(package: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            complaint = _complaint(
                f"{package.removeprefix('tvm.')}.{name}", function, args, kwargs, error
            )
            if complaint is None:
                raise
            raise complaint from error

    update_wrapper(call, function)
    # pickles name a function by its module and name: those under which it can be found
    call.__module__, call.__name__, call.__qualname__ = package, name, name
    return call


def _complaint(
    path: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
) -> TVMError | None:
    """What to raise instead of an error, or None if it says by itself what is wrong."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # Python's own complaint about missing or unknown arguments
        return None
    for name, value in given.items():
        parameter = signature.parameters[name]
        wanted = str(parameter.annotation).split(" | ")
        if parameter.kind is parameter.VAR_POSITIONAL:
            wanted = [f"Sequence[{kind}]" for kind in wanted]
        if any("te.Tensor" in kind for kind in wanted) and not _fits(value, wanted):
            return RuntimeTypeError(
                f"{path} requires {_kinds(wanted)} for {name}, got {_described(value)}",
                hint=_hint(value, path) or "",
            )
    if isinstance(error, TVMError) or not _is_ours(error):
        return None
    arguments = ", ".join([f"{name}={_described(value)}" for name, value in given.items()])
    kind = RuntimeTypeError if isinstance(error, (TypeError, AttributeError)) else RuntimeValueError
    return kind(
        f"{path} does not suit its arguments: {arguments} ({error})",
        hint="compare the numbers of dimensions, the layout and the attributes with each other",
    )


def _fits(value: Any, kinds: list[str]) -> bool:
    return any([_is_a(value, kind) for kind in kinds])


def _is_a(value: Any, kind: str) -> bool:
    if kind == "None":
        return value is None
    if kind == "te.Tensor":
        return isinstance(value, te.Tensor)
    if "te.Tensor" in kind:  # a sequence of them
        is_sequence = isinstance(value, (list, tuple))
        return is_sequence and all([isinstance(item, te.Tensor) for item in value])
    return isinstance(value, _SCALARS[kind]) if kind in _SCALARS else True


def _kinds(kinds: list[str]) -> str:
    names = [
        "a te.Tensor" if kind == "te.Tensor"
        else "a list of te.Tensor" if "te.Tensor" in kind
        else kind
        for kind in kinds
    ]  # fmt: skip
    return " or ".join(names)


def _described(value: Any) -> str:
    """A tensor by its dtype and shape, a sequence by its items, a plain value by its text."""
    if isinstance(value, te.Tensor):
        return f"{value.dtype}({', '.join([str(extent) for extent in value.shape])})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([_described(item) for item in value])}]"
    if value is None or isinstance(value, (int, float, str, PrimExpr)):
        return repr(value) if isinstance(value, str) else str(value)
    module, name = type(value).__module__.split("."), type(value).__qualname__
    owner = module[1] if module[0] == "tvm" else module[0]
    return name if owner == "builtins" else f"a {owner}.{name}"


def _hint(value: Any, path: str) -> str | None:
    if type(value).__module__.startswith("tvm.relay"):
        return f"operators on expressions of relay are in relay, such as {_in_relay(path)}"
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return (
            "describe an array by te.placeholder(shape, dtype), and give the array itself to the "
            "built function"
        )
    return None


def _in_relay(path: str) -> str:
    return path.replace("topi.", "relay.", 1)


def _is_ours(error: Exception) -> bool:
    """Whether code of this package raised an error, rather than a function of the caller."""
    position = error.__traceback__
    while position is not None and position.tb_next is not None:
        position = position.tb_next
    return position is not None and position.tb_frame.f_code.co_filename.startswith(_PACKAGE)


__all__ = ["guarded"]

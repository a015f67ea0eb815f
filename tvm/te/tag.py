"""Tag scopes: a tag for every compute operation built inside.

with te.tag_scope(tag="broadcast"):
    C = te.compute(...)              # C.op.tag == "broadcast"
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from tvm.error import TVMError
from tvm.support.scope import Scoped

P = ParamSpec("P")
R = TypeVar("R")

_CURRENT: Scoped[TagScope] = Scoped("te.tag_scope")


class TagScope:
    """A ``with`` block or decorator that tags operations; scopes do not nest."""

    def __init__(self, tag: str) -> None:
        if not isinstance(tag, str):
            raise TVMError(f"tag_scope requires a text as its tag, got {tag!r}")
        self.tag = tag

    @classmethod
    def get_current(cls) -> TagScope | None:
        """The scope of the innermost ``with`` block, if any."""
        return _CURRENT.current()

    def __enter__(self) -> TagScope:
        if (outer := _CURRENT.current()) is not None:
            raise ValueError(f"nested tag_scope is not allowed, {outer.tag!r} is open already")
        _CURRENT.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.pop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def tagged(*args: P.args, **kwargs: P.kwargs) -> R:
            with TagScope(self.tag):
                return function(*args, **kwargs)

        return tagged


def tag_scope(tag: str) -> TagScope:
    """Tag the operations built in a ``with`` block or by a decorated function."""
    return TagScope(tag)


def resolve_tag(tag: str) -> str:
    """The tag of a new operation: its own, or the open scope's; both at once are an error."""
    scope = _CURRENT.current()
    if scope is None:
        return tag
    if tag:
        raise ValueError(f"nested tag is not allowed: tag {tag!r} inside tag_scope {scope.tag!r}")
    return scope.tag

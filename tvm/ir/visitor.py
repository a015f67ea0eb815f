"""Visitors: methods named after node classes, the rest by default.

    class LoopCounter(Visitor):                 class LoopUnroller(Rewriter):
        def visit_for(self, loop):                  def visit_for(self, loop):
            self.count += 1                             loop = self.rewrite_children(loop)
            self.visit_children(loop)                   return unrolled(loop)

Recursion goes through bound methods only, so that it lives on Python's heap: chains of 50,000
nodes work under ``support.deep_recursion``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from tvm.error import TVMError

from .node import VISIT_NAMES, Node

N = TypeVar("N", bound=Node)


Method = Callable[[Any, Any], Any]


class _Dispatch(dict[type, "Method | None"]):
    """``type(node) -> method``, filled on first use; None where the node itself is the result."""

    def __init__(self, visitor: type[_Dispatching | Functor]) -> None:
        super().__init__()
        self.visitor = visitor

    def __missing__(self, node_type: type) -> Method | None:
        if not hasattr(node_type, "visit_name"):
            name = self.visitor.__name__
            raise TVMError(f"{name} requires an IR node, got a value of {node_type.__name__}")
        method = self[node_type] = self._find(node_type)
        return method

    def _find(self, node_type: type) -> Method | None:
        for base in node_type.__mro__:
            name = base.__dict__.get("visit_name")
            method: Method | None = None if name is None else getattr(self.visitor, name, None)
            if method is not None:
                return method
        return self.visitor.default_method(node_type)


class _Dispatching:
    """What readers and rewriters share: dispatch, its checks, memoisation."""

    _dispatch: ClassVar[_Dispatch]
    _memoises: ClassVar[bool] = False

    def __init_subclass__(cls, memo: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in vars(cls):
            if name.startswith("visit_") and name not in VISIT_NAMES and name != "visit_children":
                raise TypeError(f"{cls.__name__}.{name} requires a node class of that name")
        cls._dispatch = _Dispatch(cls)
        if memo and not cls._memoises:
            cls._memoises = True
            cls.visit = _memo_visit  # type: ignore[attr-defined]

    @classmethod
    def default_method(cls, node_type: Any) -> Method | None:
        """What to do with a class of nodes that no method is named after."""
        raise NotImplementedError


class Functor:
    """The base of the classic functors, which programs derive from: their other methods may have any name."""

    _dispatch: ClassVar[_Dispatch]
    _nodes: ClassVar[str] = "an IR node"  # what it works on, for errors

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._dispatch = _Dispatch(cls)

    @classmethod
    def default_method(cls, node_type: Any) -> Method | None:
        """No method is named after that class."""
        raise TVMError(f"{cls.__name__} requires {cls._nodes}, got {node_type.__name__}")


class Visitor(_Dispatching):
    """Reads nodes. ``visit_<class>`` methods may return a value; the default returns None."""

    def visit(self, node: Any) -> Any:
        """Dispatch on the node's class."""
        method = self._dispatch[type(node)]
        return None if method is None else method(self, node)

    def visit_children(self, node: Node) -> None:
        """The default: visit each child in the order of declaration."""
        if (method := type(node).visit_with) is not None:
            method(self, node)

    @classmethod
    def default_method(cls, node_type: Any) -> Method | None:
        direct = cls.visit is Visitor.visit and cls.visit_children is Visitor.visit_children
        if direct or node_type.visit_with is None:
            found: Method | None = node_type.visit_inline
            return found
        return cls.visit_children


class ContextVisitor(_Dispatching):
    """Reads nodes with what the caller knows: ``visit(node, env)`` is ``visit_call(node, env)`` for calls.

    A method for a base class, such as ``visit_relay_expr``, has the nodes that no other has.
    """

    def visit(self, node: Any, *context: Any) -> Any:
        """Dispatch on the node's class."""
        method = self._dispatch[type(node)]
        assert method is not None, "every class has a method or is rejected"
        return method(self, node, *context)

    @classmethod
    def default_method(cls, node_type: Any) -> Method | None:
        raise TVMError(f"{cls.__name__} has no method for {node_type.__name__}")


class Rewriter(_Dispatching):
    """Rebuilds nodes. A node none of whose children changed is returned itself."""

    def visit(self, node: Any) -> Any:
        """Dispatch on the node's class and return the new node."""
        method = self._dispatch[type(node)]
        return node if method is None else method(self, node)

    def rewrite_children(self, node: N) -> N:
        """The default: the node with its children rewritten."""
        method = type(node).rewrite_with
        return node if method is None else method(self, node)

    @classmethod
    def default_method(cls, node_type: Any) -> Method | None:
        direct = cls.visit is Rewriter.visit and cls.rewrite_children is Rewriter.rewrite_children
        if direct or node_type.rewrite_with is None:
            found: Method | None = node_type.rewrite_inline
            return found
        return cls.rewrite_children


def _memo_visit(self: Any, node: Any) -> Any:
    try:
        memo = self._memo
    except AttributeError:
        memo = self._memo = {}
    # keyed by identity; the pair keeps the node alive, so that its id stays its own
    found = memo.get(id(node))
    if found is None:
        method = self._dispatch[type(node)]
        default = node if isinstance(self, Rewriter) else None
        found = memo[id(node)] = (node, default if method is None else method(self, node))
    return found[1]

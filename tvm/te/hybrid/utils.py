"""Small pieces for work with the bodies of hybrid scripts."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from tvm.tir.buffer import Buffer
from tvm.tir.expr import INT32, BufferLoad, ProducerLoad, const
from tvm.tir.stmt import BufferStore, Evaluate, ProducerStore, Stmt
from tvm.tir.stmt_functor import ir_transform

from ..tensor import Tensor


def make_nop() -> Stmt:
    """A statement that does nothing."""
    return Evaluate(const(0, INT32))


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a text alone."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def replace_io(body: Stmt, rmap: Mapping[Any, Any]) -> Stmt:
    """The body with other tensors or buffers read and written.

    Parameters
    ----------
    body : Stmt
        The body of an operation.
    rmap : dict
        Operations or tensors to tensors, and buffers to buffers.
    """

    def replace(node: Any) -> Any:
        if isinstance(node, (BufferLoad, BufferStore)):
            buffer = rmap.get(node.buffer)
            return None if buffer is None else node.replace(buffer=_buffer(buffer))
        producer = node.producer
        found = rmap.get(producer, rmap.get(getattr(producer, "op", None)))
        return None if found is None else node.replace(producer=found)

    kinds = [kind.type_key for kind in (BufferLoad, BufferStore, ProducerLoad, ProducerStore)]
    replaced: Stmt = ir_transform(body, None, replace, kinds)
    return replaced


def _buffer(value: Any) -> Buffer:
    if not isinstance(value, Buffer):
        kind = "a Tensor" if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"replace_io requires a Buffer in the place of a buffer, got {kind}")
    return value

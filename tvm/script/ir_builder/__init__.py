"""Build programs statement by statement, in nested ``with`` blocks.

    with IRBuilder() as builder:
        with T.prim_func():
            A = T.arg("A", T.Buffer((16,), "float32"))
            with T.serial(16) as i:
                T.buffer_store(A, 1.0, [i])
    builder.get()

The parser of scripts builds in the same way.
"""

from .base import IRBuilder

__all__ = ["IRBuilder"]

"""Hybrid scripts: a subset of Python as the body of an operation.

@te.hybrid.script
def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c

c = outer_product(te.placeholder((8,)), te.placeholder((4,)))     # a tensor to schedule
outer_product(numpy_a, numpy_b)                                   # or run in Python
"""

from .module import HybridModule, build
from .script import HybridError, script

__all__ = ["HybridError", "HybridModule", "build", "script"]

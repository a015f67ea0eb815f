"""Everything that makes operations: declarations, and functions in block form."""

from .declare import (
    compute,
    const,
    extern,
    placeholder,
    reduce_axis,
    scan,
    size_var,
    thread_axis,
    var,
)
from .prim_func import create_prim_func, extern_primfunc

__all__ = [
    "compute",
    "const",
    "create_prim_func",
    "extern",
    "extern_primfunc",
    "placeholder",
    "reduce_axis",
    "scan",
    "size_var",
    "thread_axis",
    "var",
]

"""Help for tests of relax."""

from . import (
    attention,
    lib_comparator,
    matmul,
    nn,
    relay_translator,
    runtime_builtin,
    transform,
    vm,
)
from .attention import get_relax_attention_module, get_relax_stacked_attention_module
from .matmul import get_relax_matmul_module

__all__ = [
    "attention", "get_relax_attention_module", "get_relax_matmul_module",
    "get_relax_stacked_attention_module", "lib_comparator", "matmul", "nn", "relay_translator",
    "runtime_builtin", "transform", "vm",
]  # fmt: skip

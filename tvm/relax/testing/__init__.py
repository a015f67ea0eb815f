"""Help for tests of relax."""

from . import (
    ast_printer,
    attention,
    lib_comparator,
    matmul,
    nn,
    relay_translator,
    runtime_builtin,
    transform,
    vm,
)
from .ast_printer import dump_ast
from .attention import get_relax_attention_module, get_relax_stacked_attention_module
from .matmul import get_relax_matmul_module

__all__ = [
    "ast_printer", "attention", "dump_ast", "get_relax_attention_module", "get_relax_matmul_module",
    "get_relax_stacked_attention_module", "lib_comparator", "matmul", "nn", "relay_translator",
    "runtime_builtin", "transform", "vm",
]  # fmt: skip

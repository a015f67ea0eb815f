"""Code generators beside our own: a graph as JSON, a C compiler, oneDNN, an example of hooks."""

from . import ccompiler, codegen_json, dnnl, example_target_hooks
from .codegen_json import JSONGraphNode, JSONGraphNodeEntry, JSONSerializer

__all__ = [
    "JSONGraphNode",
    "JSONGraphNodeEntry",
    "JSONSerializer",
    "ccompiler",
    "codegen_json",
    "dnnl",
    "example_target_hooks",
]

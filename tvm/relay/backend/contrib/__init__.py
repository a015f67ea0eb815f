"""Code generators beside our own: a graph as JSON, a C compiler, user-made accelerators."""

from . import ccompiler, codegen_json, dnnl
from .codegen_json import JSONGraphNode, JSONGraphNodeEntry, JSONSerializer

__all__ = [
    "JSONGraphNode",
    "JSONGraphNodeEntry",
    "JSONSerializer",
    "ccompiler",
    "codegen_json",
    "dnnl",
]

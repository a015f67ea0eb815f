"""Spans, equality and JSON of nodes under their classic module."""

from .env_func import EnvFunc
from .node import Node
from .serialize import load_json, save_json
from .span import SequentialSpan, SourceMap, SourceName, Span
from .structural import (
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)

__all__ = [
    "EnvFunc", "Node", "SequentialSpan", "SourceMap", "SourceName", "Span", "assert_structural_equal",
    "get_first_structural_mismatch", "load_json", "save_json", "structural_equal",
    "structural_hash",
]  # fmt: skip

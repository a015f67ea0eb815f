"""The reader of relay's text form."""

from .parser import SpanCheck, fromtext, parse, parse_expr

__all__ = [
    "SpanCheck",
    "fromtext",
    "parse",
    "parse_expr",
]

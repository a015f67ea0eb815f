"""Which casts to a narrow float the compiler has put in: their roundings may be left out.

Those of the program stay. The mark is the call's span, which equality does not compare: a cast that
loses it is taken for the program's, and rounds.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.span import SequentialSpan, SourceName, Span
from tvm.relay.expr import Call

_SOURCE = "ToMixedPrecision"


def with_free_rounding(cast: Call) -> Call:
    """A new cast, marked as one that the compiler has put in."""
    return cast.replace(span=SequentialSpan((Span(SourceName(_SOURCE), 0, 0, 0, 0),)))


def is_free_rounding(expr: RelayExpr) -> bool:
    """Whether the compiler has put in this cast."""
    span: object = expr.span
    if not isinstance(span, SequentialSpan) or len(span.spans) != 1:
        return False
    return span.spans[0].source_name.name == _SOURCE

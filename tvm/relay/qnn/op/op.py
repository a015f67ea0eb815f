"""Setting how quantised operators are rewritten, under the classic names; for users."""

from __future__ import annotations

from typing import Any

from tvm.ir.op import register_op_attr
from tvm.support.docstrings import described_by


@described_by(register_op_attr)
def register_qnn_legalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """Set how a quantised operator is replaced where the target does not have it.

    Parameters
    ----------
    legal_op : callable, optional
        ``legal_op(attrs, inputs, types)`` gives another expression, or None to keep the call.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "qnn_legalize", legal_op, level)


@described_by(register_op_attr)
def register_qnn_canonicalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """Set how a quantised operator is written in ordinary ones.

    Parameters
    ----------
    legal_op : callable, optional
        ``legal_op(attrs, inputs, types)`` gives the expression. Left out, this is a decorator.
    """
    return register_op_attr(op_name, "qnn_canonicalize", legal_op, level)

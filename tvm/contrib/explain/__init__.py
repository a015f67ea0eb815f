"""One page that explains how a model was compiled, and where its time goes.

report = explain.explain(mod, params, target="llvm")
explain.write_page(report, "report.html")       # needs no other file, and no network
report.to_json()                                # the same as data
"""

from .collect import explain
from .page import page, write_page
from .record import (
    Candidate,
    Change,
    Choice,
    Code,
    Graph,
    Kernel,
    Life,
    Machine,
    Memory,
    Node,
    PassRun,
    Remark,
    Report,
    Storage,
    Tensor,
    Weight,
)

__all__ = [
    "Candidate", "Change", "Choice", "Code", "Graph", "Kernel", "Life", "Machine", "Memory", "Node",
    "PassRun", "Remark", "Report", "Storage", "Tensor", "Weight", "explain", "page", "write_page",
]  # fmt: skip

"""Is a compiled model right, and if not, since where?

    report = tvm.verify.verify("model.onnx", against="onnxruntime")
    print(report)

Both sides run with the same inputs and every tensor of the graph is compared. The first that differs
is named; the nodes that are needed to see it are cut out as a model of their own, and on that model
the graph passes, then the kernels, are searched for the one that is to blame.
"""

from .check import verify
from .compare import Difference, Tolerance
from .report import Report

__all__ = ["Difference", "Report", "Tolerance", "verify"]

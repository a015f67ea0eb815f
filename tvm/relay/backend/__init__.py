"""From fused programs to libraries: kernels, memory plan, graph JSON."""

from tvm.support.later import names_from_above as _names_from_above

from .executor import Executor
from .runtime import Runtime

__getattr__ = _names_from_above(__name__)

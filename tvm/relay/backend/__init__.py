"""From fused programs to libraries: kernels, memory plan, graph JSON."""

from .executor import Executor
from .runtime import Runtime

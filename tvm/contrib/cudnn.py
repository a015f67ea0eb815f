"""cuDNN is not among the libraries of this release; programs that ask for it learn so.

cudnn.exists()    ->    False
"""

from __future__ import annotations

from typing import NoReturn


def exists() -> bool:
    """Whether kernels of cuDNN can be called: never, code is generated for processors."""
    return False


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"tvm.contrib.cudnn.{name} is not in this release; code is generated for processors, "
        "by the targets llvm and c"
    )

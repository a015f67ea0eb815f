"""Compiled functions on the tensors of other frameworks, which share their memory.

add = to_pytorch_func(module["add"])
add(x, y, out)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.runtime.ndarray import from_dlpack


def convert_func(
    tvm_func: Callable[..., Any], tensor_type: type, to_dlpack_func: Callable[[Any], Any]
) -> Callable[..., Any]:
    """A function that takes another framework's tensors.

    Parameters
    ----------
    tvm_func : callable
        The function over arrays.
    tensor_type : type
        The framework's tensors.
    to_dlpack_func : callable
        Makes a DLPack capsule of one.
    """

    def wrapped(*args: Any) -> Any:
        return tvm_func(
            *[from_dlpack(to_dlpack_func(a)) if isinstance(a, tensor_type) else a for a in args]
        )

    return wrapped


def to_pytorch_func(tvm_func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes PyTorch tensors."""
    import torch
    import torch.utils.dlpack

    return convert_func(tvm_func, torch.Tensor, torch.utils.dlpack.to_dlpack)  # type: ignore[attr-defined]

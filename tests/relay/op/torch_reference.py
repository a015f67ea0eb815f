"""Functions of PyTorch as references of operators."""

from __future__ import annotations

from typing import Any

import torch


def by_torch(function: Any, **options: Any) -> Any:
    """The function on numpy arrays."""
    return lambda *arrays: function(*[torch.from_numpy(a) for a in arrays], **options).numpy()

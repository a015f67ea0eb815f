"""Operators and tensors of torch: their names and values."""

from __future__ import annotations

from typing import Any


def kind_of(overload: Any) -> str:
    """The name of an operator without its overload: ``aten::add``."""
    return str(overload._schema.name)


def to_numpy(tensor: Any) -> Any:
    """The values of a tensor; bfloat16 through its bits."""
    import torch

    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.resolve_conj().resolve_neg().numpy()

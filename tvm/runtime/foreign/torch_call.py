"""Calls of operators that PyTorch computes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError, install_hint
from tvm.runtime.foreign.node import Array, ForeignNode


def read_torch_call(text: bytes) -> ForeignNode:
    """The call that a text describes: the operator, and arguments with places of tensors."""
    try:
        import torch
    except ImportError:
        raise TVMError(
            "the compiled model leaves an operator to PyTorch, which requires the package torch",
            hint=install_hint("torch"),
        ) from None
    call = json.loads(text)
    overload = _overload(torch, call["operator"], call["overload"])
    schema = overload._schema.arguments
    positional = sum(not argument.kwarg_only for argument in schema)
    names = [argument.name for argument in schema][positional:]

    def run(arrays: Sequence[Array]) -> list[Array]:
        values = [_value(torch, argument, arrays) for argument in call["arguments"]]
        options = zip(names, values[positional:], strict=False)
        with torch.no_grad():
            found = overload(
                *values[:positional], **{name: v for name, v in options if v is not None}
            )
        made = [found] if isinstance(found, torch.Tensor) else found
        return [to_numpy(tensor) for tensor in made]

    return ForeignNode(call["operator"], call["inputs"], run)


def _overload(torch: Any, operator: str, overload: str) -> Any:
    space, _, name = operator.partition("::")
    try:
        return getattr(getattr(getattr(torch.ops, space), name), overload)
    except AttributeError:
        raise TVMError(
            f"the compiled model leaves {operator} to PyTorch, which has no such operator here",
            hint="import the package that defines it before the model runs",
        ) from None


def _value(torch: Any, argument: Any, arrays: Sequence[Array]) -> Any:
    if isinstance(argument, list):
        return [_value(torch, item, arrays) for item in argument]
    if not isinstance(argument, dict):
        return argument
    ((kind, value),) = argument.items()
    if kind == "tensor":
        return _from_numpy(torch, arrays[value[0]], getattr(torch, value[1]))
    if kind == "complex":
        return complex(*value)
    return torch.device(value) if kind == "device" else getattr(torch, value)


def plain_argument(value: Any) -> Any:
    """An argument that is no tensor as `read_torch_call` reads it; TypeError if it cannot be kept."""
    import torch

    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {"torch": str(value).removeprefix("torch.")}
    raise TypeError(f"an argument of type {type(value).__name__}")


def _from_numpy(torch: Any, array: Array, dtype: Any) -> Any:
    if dtype == torch.bfloat16:
        return torch.from_numpy(array.view("int16")).view(dtype)
    return torch.from_numpy(array).to(dtype)


def to_numpy(tensor: Any) -> Any:
    """The values of a tensor; bfloat16 through its bits."""
    import torch

    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.resolve_conj().resolve_neg().numpy()

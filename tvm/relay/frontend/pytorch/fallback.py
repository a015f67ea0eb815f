"""Operators that PyTorch itself computes while the compiled model runs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.expr import const
from tvm.relay.frontend.common import infer_dtype
from tvm.relay.op.packed_call import packed_call
from tvm.runtime.foreign import TORCH, described
from tvm.runtime.foreign.torch_call import plain_argument, to_numpy

from .registry import is_tensor, kind_of


def torch_call(
    overload: Any,
    arguments: Sequence[Any],
    results: Sequence[tuple[Sequence[int], str]],
    warned: set[str],
) -> list[RelayExpr]:
    """The results of an operator, of given shapes and element types, as PyTorch computes them.

    The operator's name is an argument of the call: whoever runs the compiled model needs PyTorch
    alone. `warned` has the operators that a warning was given for.
    """
    kind = kind_of(overload)
    tensors: list[RelayExpr] = []
    try:
        plain = [_plain(argument, tensors) for argument in arguments]
    except TypeError as error:
        raise OpNotImplemented(f"{kind} cannot be left to PyTorch: {error}") from None
    if kind not in warned:
        warned.add(kind)
        warnings.warn(f"{kind} runs in PyTorch, which the compiled model needs too", stacklevel=2)
    text = json.dumps({
        "operator": kind, "overload": overload._overloadname, "arguments": plain,
        "inputs": len(tensors),
    })  # fmt: skip
    call = packed_call(
        TORCH.function, [*[const(part) for part in described(text.encode())], *tensors],
        [s for s, _ in results], [d for _, d in results],
    )  # fmt: skip
    return [call[i] for i in range(len(results))]


def _plain(value: Any, tensors: list[RelayExpr]) -> Any:
    """An argument as JSON; what are tensors is added to `tensors`."""
    import torch

    if isinstance(value, (list, tuple)):
        return [_plain(item, tensors) for item in value]
    if isinstance(value, torch.Tensor):
        value = const(to_numpy(value))
    if not is_tensor(value):
        return plain_argument(value)
    tensors.append(value)
    return {"tensor": [len(tensors) - 1, infer_dtype(value)]}

"""Operators that PyTorch itself computes while the compiled model runs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

from tvm._ffi.registry import register_func
from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import infer_dtype, infer_shape
from tvm.relay.op.foreign import packed_call

from .registry import is_tensor
from .torch_values import kind_of, to_numpy

_NUMBERS = itertools.count()


def torch_call(
    overload: Any, arguments: Sequence[Any], results: Sequence[tuple[Sequence[int], str]]
) -> list[RelayExpr]:
    """The results of an operator, of known shapes and element types, as PyTorch computes them.

    The function is registered in this process: a library that is exported does not contain it.
    """
    import torch
    from torch.utils import _pytree

    kind = kind_of(overload)
    warnings.warn(f"{kind} runs in PyTorch, in this process only", stacklevel=2)
    leaves, spec = _pytree.tree_flatten(list(arguments))
    places = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]
    tensors = [leaves[i] for i in places]
    shapes = [(infer_shape(t), getattr(torch, infer_dtype(t))) for t in tensors]
    positional = sum(not argument.kwarg_only for argument in overload._schema.arguments)
    names = [argument.name for argument in overload._schema.arguments]

    def compute(*arrays: Any) -> None:
        filled = list(leaves)
        for place, array, (shape, dtype) in zip(places, arrays, shapes, strict=False):
            filled[place] = torch.from_numpy(array.numpy()).to(dtype).reshape(shape)
        values = _pytree.tree_unflatten(filled, spec)
        options = dict(zip(names[positional:], values[positional:], strict=False))
        with torch.no_grad():
            found = overload(
                *values[:positional], **{k: v for k, v in options.items() if v is not None}
            )
        made = [found] if isinstance(found, torch.Tensor) else list(found)
        for array, value in zip(arrays[len(places) :], made, strict=True):
            array.copyfrom(to_numpy(value))

    name = f"tvm.contrib.torch.{kind.replace('::', '.')}.{next(_NUMBERS)}"
    register_func(name, compute)
    call = packed_call(name, tensors, [s for s, _ in results], [d for _, d in results])
    return [call[i] for i in range(len(results))]

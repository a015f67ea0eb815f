"""TorchScript functions as operators: PyTorch computes them, in the process that runs the model.

@torch.jit.script
def both(x, y):
    return x + y

result = torchop(both, relay.var("x", shape=(1, 2)), relay.var("y", shape=(1, 2)))
"""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvm import te, tir, topi
from tvm._ffi import register_func
from tvm.error import TVMError, install_hint
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import register_op
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import Call
from tvm.relay.op.registry import OpPattern
from tvm.relay.op.types import expect, expect_tensor, tensor
from tvm.runtime.device import cpu
from tvm.runtime.ndarray import from_dlpack

if TYPE_CHECKING:
    import torch

RUN = "tvm.contrib.torch_op"


class TorchFunctionAttrs(Attrs, key="relay.attrs.TorchFunctionAttrs"):
    """The function as PyTorch saves it, in base 64."""

    serialized_function: str


@functools.lru_cache(maxsize=64)
def _function(serialized: str) -> Any:
    try:
        import torch
    except ImportError as error:
        raise TVMError("torch_op requires PyTorch", hint=install_hint("torch")) from error
    load: Any = torch.jit.load
    return load(io.BytesIO(base64.b64decode(serialized)))


def _results(found: Any) -> tuple[torch.Tensor, ...]:
    import torch

    values = found if isinstance(found, (tuple, list)) else (found,)
    if not values or not all(isinstance(v, torch.Tensor) for v in values):
        raise TypeError(f"torch_op requires tensors as results, got {type(found).__name__}")
    return tuple(values)


@register_func(RUN, override=True)
def _run(serialized: str, *arrays: Any) -> None:
    """Call the function with the first arrays, and write its results to the last ones."""
    function = _function(str(serialized))
    import torch

    count = len(function.forward.schema.arguments) - 1
    # arrays that are lent for a call cannot be shared
    given = [torch.utils.dlpack.from_dlpack(a.copyto(cpu())) for a in arrays[:count]]
    with torch.no_grad():
        results = _results(function(*given))
    for array, result in zip(arrays[count:], results, strict=True):
        array.copyfrom(from_dlpack(result.contiguous()))


def _type(attrs: TorchFunctionAttrs, arg_types: Sequence[Type]) -> Type:
    """What the function gives for zeros."""
    function = _function(attrs.serialized_function)
    import torch

    zeros = []
    for ty in arg_types:
        given = expect_tensor(ty, "torch_op")
        expect(not given.is_dynamic, f"torch_op requires constant shapes, got {given}")
        dtype = getattr(torch, str(given.dtype))
        zeros.append(torch.zeros(given.concrete_shape, dtype=dtype))
    with torch.no_grad():
        found = function(*zeros)
    types = [tensor(tuple(r.shape), str(r.dtype).removeprefix("torch.")) for r in _results(found)]
    return types[0] if isinstance(found, torch.Tensor) else TupleType(types)


def _compute(
    attrs: TorchFunctionAttrs, inputs: Sequence[te.Tensor], out_type: Type
) -> list[te.Tensor]:
    results = out_type.fields if isinstance(out_type, TupleType) else (out_type,)
    types = [expect_tensor(ty, "torch_op") for ty in results]
    made = te.extern(
        [ty.shape for ty in types],
        list(inputs),
        lambda ins, outs: tir.call_packed(RUN, attrs.serialized_function, *ins, *outs),
        dtype=[str(ty.dtype) for ty in types],
        name="torch_op",
    )
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.schedule_extern(outs)


TORCH_OP = register_op("torch_op").set_facets(
    attrs_type=TorchFunctionAttrs,
    num_inputs=-1,
    infer_type=_type,
    fuse=OpPattern.OPAQUE,
    compute=_compute,
    schedules={"generic": _schedule, "cpu": _schedule},
)


def torchop(script_fn: Any, *params: RelayExpr) -> Call:
    """A call of a TorchScript function.

    Parameters
    ----------
    script_fn : torch.jit.ScriptFunction or torch.jit.ScriptModule
        Takes tensors and gives a tensor or a tuple of them.
    params : relay.Expr
        Its arguments.
    """
    import torch

    if isinstance(script_fn, torch.nn.Module) and not isinstance(script_fn, torch.jit.ScriptModule):
        raise TypeError("torchop requires a script: torch.jit.script(module)")
    file = io.BytesIO()
    torch.jit.save(script_fn, file)
    text = base64.b64encode(file.getvalue()).decode()
    return Call(TORCH_OP, list(params), TorchFunctionAttrs(serialized_function=text))

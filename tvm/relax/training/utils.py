"""What training needs beside the gradient: losses appended to models, gradients of tensor expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi.registry import register_func
from tvm.relax.expr import Call, Tuple, Var
from tvm.relax.transform.gradient import TE_GRADIENTS

from .append_loss import AppendLoss


def register_te_gradient(te_grad_name: str, te_grad_func: Callable[..., Any] | None = None) -> Any:
    """Register the gradient of a function of tensor expressions; a decorator without the function.

    Parameters
    ----------
    te_grad_name : str
        The name that ``call_te_with_grad`` and ``call_tir_with_grad`` use.
    te_grad_func : callable
        From the gradient of the output, the inputs and ``te_grad_kwargs`` to the gradients of the
        inputs, as te tensors.
    """

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(orig_var: Var, call: Call, output_grad: Var, ctx: Any) -> Call:
            attrs, inputs = call.attrs, call.args[1]
            assert isinstance(inputs, Tuple)
            found: Call = ctx.call_te(
                func, output_grad, *inputs.fields, primfunc_name_hint=attrs.te_grad_name,
                **dict(attrs.te_grad_kwargs),
            )  # fmt: skip
            return found

        register_func(f"{TE_GRADIENTS}{te_grad_name}", gradient, override=True)
        return func

    return register if te_grad_func is None else register(te_grad_func)


__all__ = ["AppendLoss", "register_te_gradient"]

"""A model becomes a module that trains it: the loss, its gradients and the optimizer's step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import module_pass
from tvm.relax.analysis import well_formed
from tvm.relax.expr import Function
from tvm.relax.struct_info import StructInfo
from tvm.relax.transform.decompose_ops import DecomposeOpsForInference, DecomposeOpsForTraining
from tvm.relax.transform.gradient import Gradient
from tvm.relax.transform.legalize_ops import LegalizeOps

from .append_loss import AppendLoss
from .loss import Loss
from .optimizer import Optimizer

BACKBONE, BACKBONE_LOSS, UPDATE_PARAMS = "backbone", "backbone_loss", "update_params"
ADJOINT = f"{BACKBONE_LOSS}_adjoint"


@module_pass(opt_level=0, name="SetupTrainer")
class SetupTrainer:
    """Add what training a module needs.

    The module has a function ``backbone`` of inputs, then parameters, then states; its attributes
    ``param_num`` and ``state_num`` say how many of the latter. It returns what the loss takes, then the new
    states. The pass adds ``backbone_loss``, ``backbone_loss_adjoint`` and ``update_params``.

    Parameters
    ----------
    loss : Loss
    optimizer : Optimizer
    loss_args : list of StructInfo
        Of the loss's parameters.
    legalize : bool
        Whether operators become loop programs.
    """

    def __init__(
        self,
        loss: Loss,
        optimizer: Optimizer,
        loss_args: Sequence[StructInfo],
        legalize: bool = True,
    ) -> None:
        self._loss = loss
        self._optimizer = optimizer
        self._loss_args = list(loss_args)
        self._legalize = legalize

    def transform_module(self, mod: IRModule, ctx: Any) -> IRModule:
        """The module with functions for training."""
        inputs, params, states = self._counts(mod)
        loss = self._loss(*self._loss_args)
        outputs = self._loss.num_backbone_outputs
        mod = AppendLoss(BACKBONE, loss, outputs, BACKBONE_LOSS)(mod)
        mod = DecomposeOpsForInference(BACKBONE)(mod)
        mod = DecomposeOpsForTraining(BACKBONE_LOSS)(mod)
        trained = mod[BACKBONE_LOSS].params[inputs : inputs + params]
        mod = Gradient(BACKBONE_LOSS, require_grads=list(trained), target_index=0)(mod)
        self._optimizer.init(list(trained))
        step = self._optimizer.get_function().with_attr("global_symbol", UPDATE_PARAMS)
        mod = mod.clone()
        mod[UPDATE_PARAMS] = step
        mod = mod.with_attrs(
            {
                "input_num": inputs,
                "param_num": params,
                "state_num": states,
                "optim_states": self._optimizer.state,
            }
        )
        return LegalizeOps()(mod) if self._legalize else mod

    def _counts(self, mod: IRModule) -> tuple[int, int, int]:
        """How many inputs, parameters and states the model has."""
        if not well_formed(mod):
            raise ValueError("SetupTrainer requires a well-formed module")
        attrs: Any = mod.attrs or {}
        for key in ("param_num", "state_num"):
            if key not in attrs:
                raise ValueError(
                    f"SetupTrainer requires the module's attribute {key!r}, got {sorted(attrs)}"
                )
        func = mod[BACKBONE]
        if not isinstance(func, Function):
            raise TVMError(f"SetupTrainer requires a relax function {BACKBONE}")
        params, states = int(attrs["param_num"]), int(attrs["state_num"])
        inputs = len(func.params) - params - states
        if inputs < 0:
            raise ValueError(
                f"SetupTrainer requires {params + states} parameters or more of {BACKBONE}, got "
                f"{len(func.params)}"
            )
        given = getattr(func.ret_struct_info, "fields", (func.ret_struct_info,))
        wanted = self._loss.num_backbone_outputs + states
        if len(given) != wanted:
            raise ValueError(
                f"SetupTrainer requires {wanted} results of {BACKBONE}, got {len(given)}"
            )
        return inputs, params, states


__all__ = ["SetupTrainer"]

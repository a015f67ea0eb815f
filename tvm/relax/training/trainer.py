"""Trains a model in the virtual machine, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relax.expr import Var
from tvm.runtime import Device
from tvm.runtime.ndarray import NDArray, array

from .setup_trainer import ADJOINT, BACKBONE, UPDATE_PARAMS


class Trainer:
    """Keeps a model's parameters and states, and changes them.

    Parameters
    ----------
    train_mod : IRModule
        What `SetupTrainer` made.
    vm : VirtualMachine
        That runs it.
    device : Device
        Where the tensors are.
    zero_init_param_state : bool
        Whether parameters and states begin with zeros; without it they have to be given.
    """

    def __init__(
        self, train_mod: IRModule, vm: Any, device: Device, zero_init_param_state: bool = True
    ) -> None:
        attrs: Any = train_mod.attrs or {}
        if "optim_states" not in attrs:
            raise TVMError("Trainer requires a module that SetupTrainer made")
        self.vm = vm
        self.device = device
        start, count = int(attrs["input_num"]), int(attrs["param_num"])
        variables = train_mod[BACKBONE].params[start:]
        self._inputs = start
        self._param_vars, self._state_vars = variables[:count], variables[count:]
        self._optim_states = [array(s.numpy(), device) for s in attrs["optim_states"]]
        self._params: list[NDArray | None] = [None] * len(self._param_vars)
        self._states: list[NDArray | None] = [None] * len(self._state_vars)
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    def _zeros(self, variables: Sequence[Var]) -> list[NDArray | None]:
        return [array(np.zeros(_shape(v), _dtype(v)), self.device) for v in variables]

    def zero_init_params(self) -> None:
        """Let all parameters be zeros."""
        self._params = self._zeros(self._param_vars)

    def zero_init_states(self) -> None:
        """Let all states be zeros."""
        self._states = self._zeros(self._state_vars)

    def xaiver_uniform_init_params(self) -> None:
        """Draw parameters from uniform distributions, whose bounds fall with the extents."""
        self._params = []
        for var in self._param_vars:
            shape = _shape(var)
            bound = np.sqrt(6.0 / max(sum(shape), 1))
            values = np.random.uniform(-bound, bound, shape).astype(_dtype(var))
            self._params.append(array(values, self.device))

    def load_params(self, params: Mapping[str, Any]) -> None:
        """Take parameters, by the names that the model gives them."""
        self._params = self._loaded(params, self._param_vars, "parameters")

    def load_states(self, states: Mapping[str, Any]) -> None:
        """Take states, by the names that the model gives them."""
        self._states = self._loaded(states, self._state_vars, "states")

    def _loaded(
        self, given: Mapping[str, Any], variables: Sequence[Var], what: str
    ) -> list[NDArray | None]:
        names = [var.name_hint for var in variables]
        if sorted(given) != sorted(names):
            raise ValueError(f"Trainer requires the {what} {names}, got {sorted(given)}")
        loaded: list[NDArray | None] = []
        for var in variables:
            value = given[var.name_hint]
            numbers = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
            if list(numbers.shape) != _shape(var):
                raise ValueError(
                    f"Trainer requires {var.name_hint} of shape {_shape(var)}, got {numbers.shape}"
                )
            loaded.append(array(numbers.astype(_dtype(var)), self.device))
        return loaded

    def export_params(self) -> dict[str, Any]:
        """The parameters by name."""
        return _named(self._param_vars, self._params)

    def export_states(self) -> dict[str, Any]:
        """The states by name."""
        return _named(self._state_vars, self._states)

    def _check(self, inputs: Sequence[Any]) -> None:
        for values, variables in (
            (self._params, self._param_vars),
            (self._states, self._state_vars),
        ):
            missing = [v.name_hint for x, v in zip(values, variables, strict=True) if x is None]
            if missing:
                raise TVMError(
                    f"Trainer requires values of {', '.join(missing)}",
                    hint="load_params, xaiver_uniform_init_params and zero_init_states give some",
                )
        if len(inputs) != self._inputs:
            raise TVMError(f"the model requires {self._inputs} inputs, got {len(inputs)}")

    def _arrays(self, values: Sequence[Any]) -> list[NDArray]:
        return [v if isinstance(v, NDArray) else array(v, self.device) for v in values]

    def predict(self, *input_instances: Any) -> Any:
        """What the model gives for inputs, with the parameters as they are."""
        self._check(input_instances)
        found = self.vm[BACKBONE](*self._arrays(input_instances), *self._params, *self._states)
        count = len(self._states)
        if count == 0:
            return found
        rest: list[Any] = list(found)[:-count]
        return rest[0] if len(rest) == 1 else rest

    def _arguments(self, inputs: Any, targets: Any) -> list[Any]:
        inputs, targets = [x if isinstance(x, (list, tuple)) else [x] for x in (inputs, targets)]
        self._check(inputs)
        given: list[list[Any]] = [
            [*self._arrays(inputs)],
            self._params,
            self._states,
            [*self._arrays(targets)],
        ]
        return [value for values in given for value in values]

    def update(self, input_instances: Any, targets: Any) -> NDArray:
        """One step: parameters and states change.

        Parameters
        ----------
        input_instances, targets : array or list of arrays

        Returns
        -------
        NDArray
            The loss before the step.
        """
        result, grads = self.vm[ADJOINT](*self._arguments(input_instances, targets))
        new = self.vm[UPDATE_PARAMS](self._params, grads, self._optim_states)
        self._params, self._optim_states = [list(values) for values in new]
        if not self._states:
            found: NDArray = result
            return found
        loss, *states = list(result)
        self._states = states
        kept: NDArray = loss
        return kept

    def profile_adjoint(self, input_instances: Any, targets: Any) -> Any:
        """The report of a run that computes loss and gradients; the machine is made with ``profile=True``."""
        return self.vm.profile(ADJOINT, *self._arguments(input_instances, targets))


def _shape(var: Var) -> list[int]:
    return [int(dim) for dim in var.struct_info.dimensions]


def _dtype(var: Var) -> str:
    return str(var.struct_info.dtype)


def _named(variables: Sequence[Var], values: Sequence[Any]) -> dict[str, Any]:
    return {var.name_hint: value for var, value in zip(variables, values, strict=True)}


__all__ = ["Trainer"]

"""Optimizers as functions of relax: (parameters, gradients, states) -> (parameters, states)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Constant, Function, Tuple, TupleGetItem, Var, const
from tvm.relax.op.binary import add, divide, multiply, subtract
from tvm.relax.op.unary import sqrt
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo
from tvm.runtime.ndarray import NDArray, array
from tvm.tir.expr import IntImm


class Optimizer:
    """The base of optimizers.

    Parameters
    ----------
    name : str
        The name of the function.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.param_list: list[Var] | None = None
        # the number of steps, what the optimizer keeps beside, and what it keeps for each parameter
        self.state: Any = None
        self.dtype: Any = None

    def init(self, params: Var | Sequence[Var]) -> Any:
        """Take the parameters, float tensors of one data type and known shapes.

        Returns
        -------
        Optimizer
            Itself.
        """
        params = [params] if isinstance(params, Var) else list(params)
        names = [param.name_hint for param in params]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name} requires parameters of different names, got {names}")
        kinds = {param.struct_info.dtype for param in params if _is_fixed_float(param)}
        if len(kinds) != 1 or not all([_is_fixed_float(param) for param in params]):
            infos = ", ".join([f"{p.name_hint}: {p.struct_info}" for p in params])
            raise TVMError(
                f"{self.name} requires float tensors of one dtype and of known shapes, got {infos}"
            )
        self.param_list, self.dtype = params, kinds.pop()
        steps = array(np.zeros((), "int64"))
        self.state = (steps, *self._shared_states(), *self._states())
        return self

    def _shared_states(self) -> list[NDArray]:
        """What is kept once, beside the number of steps."""
        return []

    def _states(self) -> list[NDArray]:
        """What is kept for each parameter."""
        return []

    def _zeros(self) -> list[NDArray]:
        return [
            array(np.zeros([int(d) for d in param.struct_info.dimensions], str(self.dtype)))
            for param in self.param_list or ()
        ]

    def get_function(self) -> Function:
        """The function.

        Raises
        ------
        TVMError
            Before `init`.
        """
        if self.param_list is None:
            raise TVMError(f"{self.name} requires init(params) before get_function()")
        infos = [param.struct_info for param in self.param_list]
        params = Var("params", TupleStructInfo(infos))
        grads = Var("gradients", TupleStructInfo(infos))
        kept = [TensorStructInfo(state.shape, state.dtype) for state in self.state]
        states = Var("optim_states", TupleStructInfo(kept))
        builder = BlockBuilder()
        with builder.function(self.name, [params, grads, states]):
            with builder.dataflow():
                steps = builder.emit(TupleGetItem(states, 0), "num_steps")
                shared = [builder.emit(add(steps, const(1, "int64")), "num_steps_new")]
                shared += self._next_shared(builder, states)
                new, each = [], []
                for i, param in enumerate(self.param_list):
                    name = param.name_hint
                    p = builder.emit(TupleGetItem(params, i), name)
                    g = builder.emit(TupleGetItem(grads, i), f"{name}_grad")
                    own = self._own_states(builder, states, i, name)
                    result, *rest = self._step(builder, name, p, g, own, shared)
                    new.append(result)
                    each.append(rest)
                later = [state for kind in zip(*each, strict=True) for state in kind]
                made = builder.emit_output(Tuple(new), "params_new")
                left = builder.emit_output(Tuple([*shared, *later]), "optim_states_new")
            builder.emit_func_output(Tuple([made, left]))
        found = builder.get()[self.name]
        assert isinstance(found, Function)
        return found

    def _next_shared(self, builder: BlockBuilder, states: Var) -> list[Var]:
        return []

    def _own_states(self, builder: BlockBuilder, states: Var, i: int, name: str) -> list[Var]:
        return []

    def _step(
        self, builder: BlockBuilder, name: str, p: Var, g: Var, own: list[Var], shared: list[Var]
    ) -> list[Any]:
        """The new parameter, and its new states."""
        raise NotImplementedError

    def _const(self, value: float) -> Constant:
        return const(value, self.dtype)

    def _decayed(self, builder: BlockBuilder, name: str, p: Var, g: Var, rate: float) -> Var:
        """The gradient with that of the parameters' squares."""
        if not rate:
            return g
        return builder.emit(add(multiply(self._const(rate), p), g), f"{name}_grad_new")


def _is_fixed_float(param: Var) -> bool:
    info = param.struct_info
    if not isinstance(info, TensorStructInfo) or not info.dtype.is_float:
        return False
    dims = info.dimensions
    return dims is not None and all([isinstance(d, IntImm) for d in dims])


class SGD(Optimizer):
    """p - lr * (g + weight_decay * p)"""

    def __init__(self, lr: float, weight_decay: float = 0) -> None:
        super().__init__("SGD")
        self.lr = float(lr)
        self.weight_decay = float(weight_decay)

    def _step(
        self, builder: BlockBuilder, name: str, p: Var, g: Var, own: list[Var], shared: list[Var]
    ) -> list[Any]:
        g = self._decayed(builder, name, p, g, self.weight_decay)
        return [builder.emit(subtract(p, multiply(self._const(self.lr), g)), f"{name}_new")]


class MomentumSGD(Optimizer):
    """v = momentum * v + (1 - dampening) * (g + weight_decay * p); p - lr * v

    Parameters
    ----------
    lr, momentum, dampening, weight_decay : float
    nesterov : bool
        Whether p moves by g + momentum * v instead.
    """

    def __init__(
        self,
        lr: float,
        momentum: float,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        super().__init__("MomentumSGD")
        self.lr = float(lr)
        self.momentum = float(momentum)
        self.dampening = float(dampening)
        self.weight_decay = float(weight_decay)
        self.nesterov = nesterov

    def _states(self) -> list[NDArray]:
        return self._zeros()

    def _own_states(self, builder: BlockBuilder, states: Var, i: int, name: str) -> list[Var]:
        return [builder.emit(TupleGetItem(states, 1 + i), f"{name}_v")]

    def _step(
        self, builder: BlockBuilder, name: str, p: Var, g: Var, own: list[Var], shared: list[Var]
    ) -> list[Any]:
        g = self._decayed(builder, name, p, g, self.weight_decay)
        momentum = self._const(self.momentum)
        damped = multiply(self._const(1 - self.dampening), g) if self.dampening else g
        v = builder.emit(add(multiply(momentum, own[0]), damped), f"{name}_v_new")
        step = v
        if self.nesterov:
            step = builder.emit(add(g, multiply(momentum, v)), f"{name}_g_nest")
        moved = subtract(p, multiply(self._const(self.lr), step))
        return [builder.emit(moved, f"{name}_new"), v]


class Adam(Optimizer):
    """Steps by means of gradients over the roots of means of their squares.

    Parameters
    ----------
    lr : float
    betas : tuple of float
        How much of both means stays at each step.
    eps : float
        Added to the roots.
    weight_decay : float
    """

    def __init__(
        self,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
    ) -> None:
        super().__init__("Adam")
        self.lr = float(lr)
        self.beta1, self.beta2 = float(betas[0]), float(betas[1])
        self.eps = float(eps)
        self.weight_decay = float(weight_decay)

    def _shared_states(self) -> list[NDArray]:
        return [array(np.ones((), str(self.dtype))) for _ in range(2)]  # products of betas

    def _states(self) -> list[NDArray]:
        return [*self._zeros(), *self._zeros()]

    def _next_shared(self, builder: BlockBuilder, states: Var) -> list[Var]:
        return [
            builder.emit(multiply(TupleGetItem(states, 1 + i), self._const(beta)), f"beta{i}_prod")
            for i, beta in enumerate((self.beta1, self.beta2))
        ]

    def _own_states(self, builder: BlockBuilder, states: Var, i: int, name: str) -> list[Var]:
        count = len(self.param_list or ())
        m = builder.emit(TupleGetItem(states, 3 + i), f"{name}_m")
        v = builder.emit(TupleGetItem(states, 3 + i + count), f"{name}_v")
        return [m, v]

    def _step(
        self, builder: BlockBuilder, name: str, p: Var, g: Var, own: list[Var], shared: list[Var]
    ) -> list[Any]:
        g = self._decayed(builder, name, p, g, self.weight_decay)
        one, number = self._const(1.0), self._const
        m = add(multiply(number(self.beta1), own[0]), multiply(number(1 - self.beta1), g))
        m = builder.emit(m, f"{name}_m_new")
        squared = multiply(number(1 - self.beta2), multiply(g, g))
        v = builder.emit(add(multiply(number(self.beta2), own[1]), squared), f"{name}_v_new")
        m_hat = builder.emit(divide(m, subtract(one, shared[1])), f"{name}_m_hat")
        v_hat = builder.emit(divide(v, subtract(one, shared[2])), f"{name}_v_hat")
        step = divide(m_hat, add(sqrt(v_hat), number(self.eps)))
        moved = builder.emit(subtract(p, multiply(number(self.lr), step)), f"{name}_new")
        return [moved, m, v]


__all__ = ["SGD", "Adam", "MomentumSGD", "Optimizer"]

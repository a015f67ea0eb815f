"""Losses as functions of relax, from what a model predicts and what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Function, Var, const
from tvm.relax.op.binary import multiply, subtract
from tvm.relax.op.datatype import astype
from tvm.relax.op.nn import log_softmax, nll_loss
from tvm.relax.op.statistical import mean, sum
from tvm.relax.op.unary import abs, negative
from tvm.relax.struct_info import StructInfo

_REDUCTIONS = ("none", "mean", "sum")


def _param(given: Var | StructInfo, name: str) -> Var:
    """A parameter like a variable, or of a struct info."""
    if isinstance(given, Var):
        return Var(given.name_hint, given.struct_info)
    return Var(name, given)


def _class_params(
    predictions: Var | StructInfo, targets: Var | StructInfo, weights: Var | StructInfo | None
) -> list[Var]:
    """The parameters of a loss of classes, whose weights may be left out."""
    given = {"predictions": predictions, "targets": targets, "weights": weights}
    return [_param(value, name) for name, value in given.items() if value is not None]


class Loss:
    """The base of losses.

    Parameters
    ----------
    loss_name : str
        The name of the function.
    num_backbone_outputs : int
        How many of the function's first parameters are results of the model.
    reduction : str
        ``"mean"``, ``"sum"`` or ``"none"``.
    """

    def __init__(self, loss_name: str, num_backbone_outputs: int, reduction: str = "mean") -> None:
        if reduction not in _REDUCTIONS:
            raise ValueError(f"{loss_name} requires reduction {_REDUCTIONS}, got {reduction!r}")
        self._loss_name = loss_name
        self._num_backbone_outputs = num_backbone_outputs
        self._reduction = reduction

    @property
    def num_backbone_outputs(self) -> int:
        """How many results of the model the loss takes."""
        return self._num_backbone_outputs

    def __call__(self, *args: Any) -> Function:
        """The function, from variables or struct info of its parameters."""
        raise NotImplementedError

    def _reduced(self, values: Any) -> Any:
        if self._reduction == "none":
            return values
        return mean(values) if self._reduction == "mean" else sum(values)

    def _function(self, params: list[Var], body: Any) -> Function:
        builder = BlockBuilder()
        with builder.function(self._loss_name, params):
            with builder.dataflow():
                result = builder.emit_output(body(builder))
            builder.emit_func_output(result)
        found = builder.get()[self._loss_name]
        assert isinstance(found, Function)
        return found


class _OfDifferences(Loss):
    """A loss of the differences between predictions and targets, element by element."""

    def __init__(self, name: str, reduction: str, of: Callable[[Any], Any]) -> None:
        super().__init__(name, 1, reduction)
        self._of = of

    def __call__(self, predictions: Var | StructInfo, targets: Var | StructInfo) -> Function:
        """The function of predictions and targets of one shape."""
        params = [_param(predictions, "predictions"), _param(targets, "targets")]

        def body(builder: BlockBuilder) -> Any:
            difference = builder.emit(subtract(*params))
            return self._reduced(builder.emit(self._of(difference)))

        return self._function(params, body)


class L1Loss(_OfDifferences):
    """Absolute differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("l1_loss", reduction, abs)


class MSELoss(_OfDifferences):
    """Squared differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mse_loss", reduction, lambda d: multiply(d, d))


class CrossEntropyLoss(Loss):
    """The negative logarithm of the probability that a softmax of scores gives to the right class.

    Parameters
    ----------
    reduction : str
    ignore_index : int
        The class that is left out.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(
        self,
        predictions: Var | StructInfo,
        targets: Var | StructInfo,
        weights: Var | StructInfo | None = None,
    ) -> Function:
        """The function of scores, classes and, optionally, weights of classes."""
        params = _class_params(predictions, targets, weights)

        def body(builder: BlockBuilder) -> Any:
            logits = builder.emit(log_softmax(params[0]))
            given = params[2] if len(params) == 3 else None
            return nll_loss(logits, params[1], given, self._reduction, self.ignore_index)

        return self._function(params, body)


class CategoricalCrossEntropyLoss(Loss):
    """As `CrossEntropyLoss`, with the probabilities of classes as targets.

    Parameters
    ----------
    reduction : str
    ignore_index : int
        The class that is left out; a negative number for none.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("categorical_cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(
        self,
        predictions: Var | StructInfo,
        targets: Var | StructInfo,
        weights: Var | StructInfo | None = None,
    ) -> Function:
        """The function of scores, probabilities and, optionally, weights of classes."""
        params = _class_params(predictions, targets, weights)
        info = params[0].struct_info
        if info.dimensions is None:
            raise TVMError(f"{self._loss_name} requires predictions of known shape, got {info}")

        def body(builder: BlockBuilder) -> Any:
            logits = builder.emit(log_softmax(params[0]))
            wanted = astype(params[1], info.dtype)
            if self.ignore_index >= 0:
                mask = np.ones(int(info.dimensions[-1]), str(info.dtype))
                mask[self.ignore_index] = 0
                wanted = multiply(wanted, const(mask))
            values = builder.emit(multiply(negative(logits), wanted))
            if len(params) == 3:
                values = builder.emit(multiply(values, params[2]))
            return self._reduced(values)

        return self._function(params, body)


__all__ = ["CategoricalCrossEntropyLoss", "CrossEntropyLoss", "L1Loss", "Loss", "MSELoss"]

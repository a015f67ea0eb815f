"""What is quantised and how, in a `with` block."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from tvm.error import TVMError, or_similar
from tvm.relay.expr import Call
from tvm.support import Scoped


class QAnnotateKind(IntEnum):
    """What a quantised value is in its layer."""

    IDENTITY = 0
    INPUT = 1
    WEIGHT = 2
    ACTIVATION = 3


def kind2str(kind: QAnnotateKind | int) -> str:
    """The name of a kind."""
    names = {1: "input", 2: "weight", 3: "activation", 0: "identity"}
    return names[int(kind)]


_CALIBRATIONS = ("global_scale", "kl_divergence", "percentile", "max")
_WEIGHT_SCALES = ("power2", "max")
_PARTITIONS = ("disabled", "enabled", "fully_integral")


@dataclass(frozen=True)
class QConfig:
    """The options of one quantisation.

    Parameters
    ----------
    nbit_input, nbit_weight : the bits of layers' inputs and weights, at most those of the dtypes.
    nbit_activation, dtype_activation : the bits that sums of products are clipped to, in int32.
    dtype_input, dtype_weight : int8, or uint8 for inputs.
    calibrate_mode : where the range of inputs comes from: "global_scale" is one for all;
        "max", "percentile" and "kl_divergence" look at the values that a data set gives.
    global_scale : the largest magnitude, if it is one for all.
    weight_scale : "max" of the magnitudes, or the next "power2".
    skip_dense_layer : leave dense layers as they are.
    skip_conv_layers : convolutions to leave as they are, counted from the first.
    do_simulation : quantise and dequantise, but compute with floats.
    round_for_shift : results are rounded when they are scaled, or else only shifted: downwards.
    debug_enabled_ops : the names of the operators to quantise, all by default.
    rounding : halves go "UPWARD", or away from zero: "TONEAREST".
    calibrate_chunk_by : how many inputs of layers to look at in one run, -1: all.
    partition_conversions : "enabled" leaves functions of their own, for conversions of inputs and
        of results and for what is between; "fully_integral" rejects floats between.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Sequence[int] | None = (0,)
    do_simulation: bool = False
    round_for_shift: bool = True
    debug_enabled_ops: Sequence[str] | None = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"

    def __post_init__(self) -> None:
        _expect("calibrate_mode", self.calibrate_mode, _CALIBRATIONS)
        _expect("weight_scale", self.weight_scale, _WEIGHT_SCALES)
        _expect("dtype_input", self.dtype_input, ("int8", "uint8"))
        _expect("dtype_weight", self.dtype_weight, ("int8",))
        _expect("dtype_activation", self.dtype_activation, ("int32",))
        _expect("nbit_activation", self.nbit_activation, tuple(range(2, 33)))
        _expect("round_for_shift", self.round_for_shift, (True, False))
        _expect("rounding", self.rounding, ("UPWARD", "TONEAREST"))
        _expect("partition_conversions", self.partition_conversions, _PARTITIONS)
        for name in ("nbit_input", "nbit_weight"):
            _expect(name, getattr(self, name), tuple(range(2, 9)))

    def guard(self, ref_call: Call) -> bool:
        """Whether the operator of a call is one of those to quantise."""
        names = self.debug_enabled_ops
        return names is None or ref_call.operator.name in names

    def get_nbit_by_kind(self, kind: QAnnotateKind) -> int:
        """The bits of values of a kind."""
        return int(getattr(self, f"nbit_{kind2str(kind)}"))

    def get_dtype_by_kind(self, kind: QAnnotateKind) -> str:
        """The dtype of values of a kind."""
        return str(getattr(self, f"dtype_{kind2str(kind)}"))

    def __enter__(self) -> QConfig:
        _CURRENT.push(self)
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.pop()


_CURRENT: Scoped[QConfig] = Scoped("relay.quantize.config")


def _expect(name: str, value: object, known: tuple[Any, ...]) -> None:
    if value not in known:
        raise TVMError(f"qconfig requires {name} of {', '.join(map(str, known))}, got {value!r}")


def current_qconfig() -> QConfig:
    """The options of the innermost `with` block, or the usual ones."""
    return _CURRENT.current() or QConfig()


def qconfig(**kwargs: Any) -> QConfig:
    """The usual options but for those given; used in a `with` statement.

    Options that there are not are ignored, as they were, with a warning.
    """
    known = [field.name for field in fields(QConfig)]
    for name in kwargs:
        if name not in known:
            text = f"qconfig has no option {name!r}{or_similar(name, known)}"
            warnings.warn(text, stacklevel=2)
    return QConfig(**{name: value for name, value in kwargs.items() if name in known})

"""Threefry as operators: each takes a key and gives the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import Constant, TupleWrapper, const
from tvm.runtime import ndarray as nd

from ..attributes import as_int, as_ints, refuse
from ..registry import OpPattern, Precision, define_op, ops
from ..types import expect, expect_tensor, shape_of_type, tensor


class ThreefryGenerateAttrs(Attrs, key="relay.attrs.ThreefryGenerateAttrs"):
    """How many words."""

    out_shape: tuple[int, ...]


class UniformAttrs(Attrs, key="relay.attrs.UniformAttrs"):
    """How many numbers of which dtype."""

    out_shape: tuple[int, ...]
    out_dtype: str = "float32"


class NormalAttrs(UniformAttrs, key="relay.attrs.NormalAttrs"):
    """How many numbers of which dtype."""


class MultinomialAttrs(Attrs, key="relay.attrs.MultinomialAttrs"):
    """How many indices for each row."""

    num_samples: int


_WORDS = 10


def _expect_key(ty: Type, who: str) -> TensorType:
    key = expect_tensor(ty, who, "key", 1)
    expect(
        key.dtype == "uint64" and shape_of_type(key) == (_WORDS,),
        f"{who} requires a key of {_WORDS} uint64, got {key}",
        hint="make one with relay.random.threefry_key(seed)",
    )
    return key


def _generate_type(attrs: ThreefryGenerateAttrs, arg_types: Sequence[Type]) -> Type:
    key = _expect_key(arg_types[0], "random.threefry_generate")
    return TupleType((key, tensor(attrs.out_shape, "uint64")))


def _split_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    key = _expect_key(arg_types[0], "random.threefry_split")
    return TupleType((key, key))


def _distribution_type(who: str, bounds: Sequence[str]) -> Callable[..., Type]:
    def relation(attrs: UniformAttrs, arg_types: Sequence[Type]) -> Type:
        key = _expect_key(arg_types[0], who)
        for name, ty in zip(bounds, arg_types[1:], strict=True):
            expect_tensor(ty, who, name, 0)
        expect(
            attrs.out_dtype in ("float32", "float64"),
            f"{who} gives float32 or float64, not {attrs.out_dtype!r}",
        )
        return TupleType((key, tensor(attrs.out_shape, attrs.out_dtype)))

    return relation


def _multinomial_type(attrs: MultinomialAttrs, arg_types: Sequence[Type]) -> Type:
    who = "random.multinomial"
    key = _expect_key(arg_types[0], who)
    shape = shape_of_type(expect_tensor(arg_types[1], who, "probs"))
    expect(len(shape) > 0, f"{who} requires probabilities of rank 1 or more, got a scalar")
    return TupleType((key, tensor((*shape[:-1], attrs.num_samples), "int32")))


def _schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.default_schedule(outs, True)


_SCHEDULES = {"generic": _schedule, "cpu": _schedule}

define_op(
    "random.threefry_generate",
    ThreefryGenerateAttrs,
    inputs=("key",),
    infer_type=_generate_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: topi.random.threefry_generate(
        inputs[0], attrs.out_shape
    ),
    schedules=_SCHEDULES,
    precision=Precision.KEEP_FLOAT32,
)
define_op(
    "random.threefry_split",
    inputs=("key",),
    infer_type=_split_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: topi.random.threefry_split(inputs[0]),
    schedules=_SCHEDULES,
    precision=Precision.KEEP_FLOAT32,
)


def _distribution(
    name: str, attrs_type: type[Attrs], bounds: tuple[str, str], function: Callable[..., Any]
) -> Op:
    return define_op(
        name,
        attrs_type,
        inputs=("key", *bounds),
        infer_type=_distribution_type(name, bounds),
        fuse=OpPattern.OPAQUE,
        compute=lambda attrs, inputs, out_type: function(*inputs, attrs.out_shape, attrs.out_dtype),
        schedules=_SCHEDULES,
        precision=Precision.KEEP_FLOAT32,
    )


_distribution("random.uniform", UniformAttrs, ("low", "high"), topi.random.uniform)
_distribution("random.normal", NormalAttrs, ("mean", "scale"), topi.random.normal)
define_op(
    "random.multinomial",
    MultinomialAttrs,
    inputs=("key", "probs"),
    infer_type=_multinomial_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: topi.random.multinomial(*inputs, attrs.num_samples),
    schedules=_SCHEDULES,
    precision=Precision.KEEP_FLOAT32,
)


def threefry_key(seed: int) -> Constant:
    """A key for random numbers.

    Parameters
    ----------
    seed : int
        The same seed gives the same numbers; 0 to 2**256 - 1.
    """
    number = as_int(seed)
    if not 0 <= number < 2**256:
        refuse(seed, "an integer in [0, 2**256)")
    words = np.frombuffer(number.to_bytes(32, byteorder="little"), dtype="uint64")
    rest = np.array([0, 0, 0, 0, 1 << 63, 0], dtype="uint64")
    return Constant(nd.array(np.concatenate([words, rest])))


def threefry_generate(key: RelayExpr, shape: Sequence[int]) -> TupleWrapper:
    """Random words of 64 bits.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before.
    shape : sequence of int
        How many words.

    Returns
    -------
    tuple of relay.Expr
        The next key, and the words (uint64).
    """
    return TupleWrapper(ops.random.threefry_generate(key, out_shape=as_ints(shape)), 2)


def threefry_split(key: RelayExpr) -> TupleWrapper:
    """Two keys for independent random numbers.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before, and must not be used again.
    """
    return TupleWrapper(ops.random.threefry_split(key), 2)


def _number(value: Any, dtype: str) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else const(value, dtype)


def uniform(
    key: RelayExpr,
    shape: Sequence[int],
    dtype: str = "float32",
    low: Any = 0.0,
    high: Any = 1.0,
) -> TupleWrapper:
    """Numbers that are equally likely anywhere between two bounds.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before.
    shape : sequence of int
        How many.
    dtype : str
        "float32" or "float64".
    low, high : float or relay.Expr
        The least number, and one above all.

    Returns
    -------
    tuple of relay.Expr
        The next key, and the numbers.
    """
    call = ops.random.uniform(
        key, _number(low, dtype), _number(high, dtype), out_shape=as_ints(shape), out_dtype=dtype
    )
    return TupleWrapper(call, 2)


def normal(
    key: RelayExpr,
    shape: Sequence[int],
    dtype: str = "float32",
    mean: Any = 0.0,
    scale: Any = 1.0,
) -> TupleWrapper:
    """Numbers of the normal distribution.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before.
    shape : sequence of int
        How many.
    dtype : str
        "float32" or "float64".
    mean, scale : float or relay.Expr
        The mean and the standard deviation.

    Returns
    -------
    tuple of relay.Expr
        The next key, and the numbers.
    """
    call = ops.random.normal(
        key, _number(mean, dtype), _number(scale, dtype), out_shape=as_ints(shape), out_dtype=dtype
    )
    return TupleWrapper(call, 2)


def multinomial(key: RelayExpr, probs: RelayExpr, num_samples: int) -> TupleWrapper:
    """Indices, each as likely as its probability says.

    Parameters
    ----------
    key : relay.Expr
        A key that was not used before.
    probs : relay.Expr
        Probabilities along the last axis; negative ones count as 0, and they need not sum up to 1.
    num_samples : int
        How many indices for each row.

    Returns
    -------
    tuple of relay.Expr
        The next key, and the indices (int32).
    """
    return TupleWrapper(ops.random.multinomial(key, probs, num_samples=as_int(num_samples)), 2)

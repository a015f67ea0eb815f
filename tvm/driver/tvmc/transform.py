"""What is done to a model before it is compiled: another layout, another precision."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any

from tvm.driver.tvmc.errors import TVMCException, similar_or_all
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.op import Op, has_op
from tvm.ir.transform import PassContext, Sequential
from tvm.relay import transform

_CONVOLUTIONS = ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")
_PRODUCTS = ("nn.conv2d", "nn.dense")


def generate_mixed_precision_rule(acc_dtype: str) -> Callable[[Any, str], list[Any]]:
    """The rule of operators that are narrow, with sums in ``acc_dtype``."""

    def rule(_: Any, mixed_precision_type: str) -> list[Any]:
        return [0, acc_dtype, mixed_precision_type]

    return rule


class MixedPrecision:
    """A scope in which the given operators, whatever they are otherwise, are made narrow.

    Parameters
    ----------
    ops : list of str
        Operators.
    acc_type : str
        The type of their sums.
    """

    def __init__(self, ops: Sequence[str], acc_type: str) -> None:
        if unknown := [name for name in ops if not has_op(name)]:
            raise TVMCException(
                f"mixed precision requires operators, there is no {unknown[0]!r}: "
                f"{similar_or_all(unknown[0], Op.list_op_names())}"
            )
        self.ops = [Op.get(name) for name in ops]
        self.rule = generate_mixed_precision_rule(acc_type)
        self._before: list[Any] = []

    def __enter__(self) -> MixedPrecision:
        self._before = [op.precision for op in self.ops]
        for op in self.ops:
            op.set_facets(precision=self.rule)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for op, precision in zip(self.ops, self._before, strict=True):
            op.set_facets(precision=precision)


def convert_to_mixed_precision(
    mod: IRModule,
    ops: Sequence[str] | None = None,
    calculation_type: str = "float16",
    acc_type: str = "float16",
) -> IRModule:
    """The module with operators computed in a narrow type.

    Parameters
    ----------
    mod : IRModule
        The module.
    ops : list of str
        The operators, by default convolutions and dense layers.
    calculation_type, acc_type : str
        The types of products and of sums.
    """
    passes = [transform.InferType(), transform.ToMixedPrecision(calculation_type)]
    with MixedPrecision(ops or _PRODUCTS, acc_type):
        return _applied(mod, passes, "mixed precision")


def convert_graph_layout(
    mod: IRModule, desired_layouts: Sequence[str] | str, ops: Sequence[str] | None = None
) -> IRModule:
    """The module with operators in another layout.

    Parameters
    ----------
    mod : IRModule
        The module.
    desired_layouts : list of str
        One layout for all operators or one for each, such as "NHWC" or "NHWC:HWIO".
    ops : list of str
        The operators, by default two-dimensional convolutions.
    """
    layouts = [desired_layouts] if isinstance(desired_layouts, str) else list(desired_layouts)
    names = list(ops or _CONVOLUTIONS)
    if len(layouts) not in (1, len(names)):
        raise TVMCException(
            f"--desired-layout requires one layout or {len(names)}, one for each of "
            f"{', '.join(names)}, got {len(layouts)}"
        )
    layouts *= len(names) // len(layouts)
    wanted = {}
    for name, layout in zip(names, layouts, strict=True):
        data, _, kernel = layout.partition(":")
        wanted[name] = [data, kernel or "default"]
    passes = [
        transform.RemoveUnusedFunctions(),
        transform.ConvertLayout(wanted),
        transform.FoldConstant(),
    ]
    return _applied(mod, passes, f"the layout {', '.join(dict.fromkeys(layouts))}")


def _applied(mod: IRModule, passes: Sequence[Any], what: str) -> IRModule:
    try:
        with _all_levels():
            return Sequential(list(passes))(mod)
    except TVMError as error:
        raise TVMCException(f"Error converting to {what}: {error}") from error


def _all_levels() -> AbstractContextManager[Any]:
    """A context in which passes that were asked for run, whatever the level around."""
    is_enough = PassContext.current().opt_level >= 3
    return nullcontext() if is_enough else PassContext(opt_level=3)


def apply_graph_transforms(mod: IRModule, args: Mapping[str, Any] | None) -> IRModule:
    """The module after what the arguments ask for, as `parse_graph_transform_args` gives them."""
    args = args or {}
    if args.get("mixed_precision"):
        mod = convert_to_mixed_precision(
            mod,
            args.get("mixed_precision_ops"),
            args.get("mixed_precision_calculation_type") or "float16",
            args.get("mixed_precision_acc_type") or "float16",
        )
    if args.get("desired_layout"):
        mod = convert_graph_layout(mod, args["desired_layout"], args.get("desired_layout_ops"))
    return mod


TRANSFORM_ARGS = (
    "desired_layout", "desired_layout_ops", "mixed_precision", "mixed_precision_ops",
    "mixed_precision_calculation_type", "mixed_precision_acc_type",
)  # fmt: skip


def parse_graph_transform_args(args: Any) -> dict[str, Any]:
    """The arguments for `apply_graph_transforms`, from a namespace or a dictionary."""
    found = args if isinstance(args, Mapping) else vars(args)
    return {name: found[name] for name in TRANSFORM_ARGS if name in found}


def generate_transform_args(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("changes of the model")
    group.add_argument(
        "--desired-layout", nargs="+", metavar="LAYOUT",
        help="layout of the data, and of the kernel if not the usual one: NCHW, NHWC, NHWC:HWIO; "
        "one for all operators or one for each",
    )  # fmt: skip
    group.add_argument(
        "--desired-layout-ops", nargs="+", metavar="OP",
        help=f"operators whose layout is changed (default: {' '.join(_CONVOLUTIONS)})",
    )  # fmt: skip
    group.add_argument(
        "--mixed-precision", action="store_true", help="compute in a narrow float type"
    )
    group.add_argument(
        "--mixed-precision-ops", nargs="+", metavar="OP",
        help=f"operators that become narrow (default: {' '.join(_PRODUCTS)})",
    )  # fmt: skip
    group.add_argument(
        "--mixed-precision-calculation-type", choices=["float16", "bfloat16"], default="float16",
        help="type of products (default: float16)",
    )  # fmt: skip
    group.add_argument(
        "--mixed-precision-acc-type", choices=["float16", "bfloat16", "float32"],
        default="float16", help="type of sums (default: float16)",
    )  # fmt: skip

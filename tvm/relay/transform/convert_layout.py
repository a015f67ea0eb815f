"""Run operators in the data layouts that the user wants.

    nn.relu(nn.conv2d(%x, %w))    ->    %0 = layout_transform(%x, "NCHW", "NHWC");
                                        %1 = layout_transform(%w, "OIHW", "HWIO");
                                        %2 = nn.conv2d(%0, %1, data_layout="NHWC", ...);
                                        layout_transform(nn.relu(%2), "NHWC", "NCHW")

A value stays in its new layout through the operators that have a rule for it; it is brought back
where an operator knows nothing of layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.error import TVMError, suggest
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op, has_op
from tvm.ir.structural import structural_equal
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.layout_shapes import axes_extents, layout_parts, plain_layout
from tvm.relay.op.registry import ops
from tvm.relay.op.types import shape_of_type
from tvm.relay.transform.canonicalize_ops import canonicalize_ops
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.rewrite_layouts import LayoutRewriter
from tvm.support import Scoped

_KERNELS = {
    "NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI",
    "NCW": "OIW", "NWC": "WIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO",
}  # fmt: skip


class LayoutConfig:
    """Layers, counted from the first, that layout conversion leaves as they are.

    with relay.transform.LayoutConfig(skip_layers=[0]):
        mod = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod)
    """

    def __init__(self, skip_layers: Sequence[int] | None = None) -> None:
        self.skip_layers = list(skip_layers or [])
        self.counter = 0

    def __enter__(self) -> LayoutConfig:
        _CONFIGS.push(self)
        return self

    def __exit__(self, *_: object) -> None:
        _CONFIGS.pop()

    @staticmethod
    def find() -> LayoutConfig | None:
        """The configuration of the innermost `with` block."""
        return _CONFIGS.current()

    def check_skip(self) -> bool:
        """Count one layer; whether it is to be left as it is."""
        self.counter += 1
        return self.counter - 1 in self.skip_layers

    def reset(self) -> None:
        """Count from the first layer again."""
        self.counter = 0


_CONFIGS: Scoped[LayoutConfig] = Scoped("layout_config")


class _Conversion:
    """The calls of the operators that the user named, in the layouts wanted."""

    def __init__(self, desired: Mapping[str, Sequence[str]]) -> None:
        self.desired = desired
        self.config = LayoutConfig.find()
        if self.config is not None:
            self.config.reset()

    def __call__(
        self, call: Call, args: list[RelayExpr], arg_types: list[Type], out_type: Type
    ) -> RelayExpr | None:
        name = call.operator.name
        if name not in self.desired or self._is_skipped(call):
            return None
        wanted = [str(x) for x in self.desired[name]]
        if (convert := call.operator.get_attr("FTVMConvertOpLayout")) is not None:
            found: RelayExpr | None = convert(call.attrs, args, arg_types, wanted)
            return found
        if call.attrs is None:
            return None
        if "data_layout" in call.attrs:
            new = _convolution(call, args, arg_types, wanted)
        elif "layout" in call.attrs:
            new = _with_layout(call, args, arg_types, wanted[0])
        else:
            return None
        return None if new is None or structural_equal(new.attrs, call.attrs) else new

    def _is_skipped(self, call: Call) -> bool:
        is_layer = call.attrs is not None and "kernel_layout" in call.attrs
        return is_layer and self.config is not None and self.config.check_skip()


def _with_layout(
    call: Call, args: list[RelayExpr], arg_types: list[Type], wanted: str
) -> Call | None:
    old = str(call.attrs["layout"])
    if wanted == "default" or not _fits(arg_types[0], old, wanted):
        return None
    # a layout of the result keeps the operators around from taking this one along
    changed = {key: wanted for key in ("layout", "out_layout") if key in call.attrs}
    return call.replace(args=tuple(args), attrs=call.attrs.replace(**changed))


def _convolution(
    call: Call, args: list[RelayExpr], arg_types: list[Type], wanted: list[str]
) -> Call | None:
    attrs, name = call.attrs, call.operator.name
    old, kernel = str(attrs["data_layout"]), str(attrs["kernel_layout"])
    new = old if wanted[0] == "default" else wanted[0]
    is_default = len(wanted) < 2 or wanted[1] == "default"
    if _has_blocks(new) and is_default:
        raise TVMError(
            f"ConvertLayout requires a layout of the kernel beside {new} for {name}",
            hint='such as {"nn.conv2d": ["NCHW4c", "OIHW4o"]}',
        )
    new_kernel = _usual_kernel(call, arg_types, new) if is_default else wanted[1]
    is_blocked = _has_blocks(new) or _has_blocks(new_kernel)
    if not is_blocked and (sorted(new) != sorted(old) or sorted(new_kernel) != sorted(kernel)):
        raise TVMError(
            f"ConvertLayout requires layouts of the axes of {old} and {kernel} for "
            f"{name}, got {new} and {new_kernel}"
        )
    weight = arg_types[2 if len(arg_types) == 3 else 1]
    if not _fits(arg_types[0], old, new) or not _fits(weight, kernel, new_kernel):
        return None
    changed: dict[str, Any] = {"data_layout": new, "kernel_layout": new_kernel}
    if attrs["out_layout"]:
        changed["out_layout"] = new
    if attrs["groups"] > 1 and kernel == "HWOI" and new_kernel == "OIHW":
        args = [args[0], _without_multiplier(args[1], arg_types[1]), *args[2:]]
    op = call.op
    if op is ops.nn.conv2d and plain_layout(new) == "NCHW" != new:
        op = ops.nn.contrib_conv2d_NCHWc
    return Call(op, tuple(args), attrs.replace(**changed), span=call.span)


def _usual_kernel(call: Call, arg_types: Sequence[Type], data_layout: str) -> str:
    """The kernel's layout that goes with the data's."""
    attrs, old = call.attrs, str(call.attrs["kernel_layout"])
    usual = _KERNELS.get(data_layout, old)
    if "output_padding" in attrs and usual.startswith("OI"):
        usual = "IO" + usual[2:]
    is_moved = data_layout != attrs["data_layout"] or sorted(old) == sorted(usual)
    if usual == "HWIO" and attrs["groups"] > 1 and _is_depthwise(call, arg_types):
        usual = "HWOI"
    return usual if is_moved else old


def _is_depthwise(call: Call, arg_types: Sequence[Type]) -> bool:
    ty, axis = arg_types[0], str(call.attrs["data_layout"]).index("C")
    return isinstance(ty, TensorType) and ty.concrete_shape[axis] == call.attrs["groups"]


def _without_multiplier(weight: RelayExpr, ty: Type) -> RelayExpr:
    """A depthwise kernel whose multiplier, HWOI's I, becomes a part of the output channels."""
    height, width, channels, multiplier = shape_of_type(ty)
    if multiplier == 1:
        return weight
    return ops.reshape(weight, newshape=(height, width, channels * multiplier, 1))


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """The pass. Biases become additions first, as by `CanonicalizeOps`.

    Parameters
    ----------
    desired_layouts : by operator name, the layouts of data and kernel, such as
        `{"nn.conv2d": ["NHWC", "default"]}`; `default` for the kernel is what usually goes with
        the data's, for the data what it has. Layouts with blocks, such as
        `["NCHW4c", "OIHW4o"]`, are for operators whose extents they divide.
    """
    for name, layouts in desired_layouts.items():
        if not has_op(name):
            raise TVMError(
                f"ConvertLayout knows no operator {name!r}", hint=suggest(name, Op.list_op_names())
            )
        if isinstance(layouts, str) or not layouts:
            raise TVMError(f"ConvertLayout requires a list of layouts for {name}, got {layouts!r}")

    def run(func: Function, mod: IRModule, context: PassContext) -> Function:
        if is_primitive(func):
            return func
        canonical = canonicalize_ops(func, mod, context)
        if canonical is not func:
            infer_type_of(canonical)
        return converted(canonical, desired_layouts)

    return FunctionPass(run, PassInfo(3, "ConvertLayout"))


def converted(func: Function, desired_layouts: Mapping[str, Sequence[str]]) -> Function:
    """The function with its operators in those layouts."""
    result = LayoutRewriter(_Conversion(desired_layouts)).run(func)
    assert isinstance(result, Function)
    return result


def _has_blocks(name: str) -> bool:
    return plain_layout(name) != name


def _fits(ty: Type, old: str, new: str) -> bool:
    """Whether a tensor's extents are multiples of the new layout's blocks."""
    if sorted(plain_layout(new)) != sorted(plain_layout(old)):
        raise TVMError(f"ConvertLayout requires a layout of the axes of {old}, got {new}")
    have = axes_extents(shape_of_type(ty), old, "ConvertLayout")
    blocks: dict[str, int] = {}
    for letter, size in layout_parts(new):
        if letter.islower():
            blocks[letter.upper()] = blocks.get(letter.upper(), 1) * size
    return all([_is_multiple(have[axis], size) for axis, size in blocks.items()])


def _is_multiple(extent: Any, size: int) -> bool:
    return isinstance(extent, int) and extent % size == 0

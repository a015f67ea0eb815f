"""Run operators in the data layouts that the user wants.

    nn.relu(nn.conv2d(%x, %w))    ->    %0 = layout_transform(%x, "NCHW", "NHWC");
                                        %1 = layout_transform(%w, "OIHW", "HWIO");
                                        %2 = nn.conv2d(%0, %1, data_layout="NHWC", ...);
                                        layout_transform(nn.relu(%2), "NHWC", "NCHW")

A value stays in its new layout through element-wise operators, pooling, normalisation and
concatenation; it is brought back where an operator knows nothing of layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tvm.error import TVMError, suggest
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op, has_op
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Tuple, TupleGetItem
from tvm.relay.function import Function, is_closed, is_primitive
from tvm.relay.op.layout_shapes import axes_extents, layout_parts, plain_layout
from tvm.relay.op.registry import OpPattern, ops
from tvm.relay.op.types import shape_of_type
from tvm.relay.transform.alter_op_layout import LayoutAlterer
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.infer_layout_utils import (
    ends_in,
    layout_choice,
    named_layouts,
    with_transforms,
)
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import keep_span, operands, post_order, regrouped, tensors_of, with_operands
from tvm.support import Scoped
from tvm.tir.data_layout import layout

# from attributes, arguments, their types and the layouts wanted
ConvertOpLayout: TypeAlias = Callable[
    [Any, list[RelayExpr], list[Type], list[str]], "RelayExpr | None"
]

_KERNELS = {
    "NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI",
    "NCW": "OIW", "NWC": "WIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO",
}  # fmt: skip
_WITH_AXIS = {
    "nn.bias_add", "nn.softmax", "nn.log_softmax", "nn.prelu", "concatenate",
    "qnn.quantize", "qnn.dequantize", "qnn.requantize", "qnn.softmax",
}  # fmt: skip
# two tensors of one rank, each with an axis for its vector parameters
_WITH_TWO_AXES = {"qnn.add", "qnn.subtract", "qnn.mul"}
_NORMALISATIONS = {"nn.batch_norm"}


class _Moved(NamedTuple):
    """A value in layout `new` that was in `old` before; both are None if it did not move."""

    value: RelayExpr
    old: str | None = None
    new: str | None = None


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


class _Converter:
    """Rebuilds one function."""

    def __init__(self, desired: Mapping[str, Sequence[str]]) -> None:
        self.desired = desired
        self.config = LayoutConfig.find()
        if self.config is not None:
            self.config.reset()
        self._moved: dict[int, _Moved] = {}
        self._items: dict[int, list[_Moved]] = {}  # of values that are tuples, by old expression
        self._transforms: dict[tuple[int, str, str], RelayExpr] = {}

    def run(self, func: Function) -> RelayExpr:
        for node in post_order(func.body, is_whole=is_closed):
            self._moved[id(node)] = moved = self._rewrite(node)
            keep_span(node, moved.value)
        body = self._plain(func.body)
        return func if body is func.body else func.replace(body=body)

    def _rewrite(self, node: RelayExpr) -> _Moved:
        if is_operator_call(node) and not self._is_skipped(node):
            found = (
                self._wanted(node) if node.operator.name in self.desired else self._followed(node)
            )
            if found is not None:
                return found
        if isinstance(node, TupleGetItem) and id(node.tuple_value) in self._items:
            item = self._items[id(node.tuple_value)][node.index]
            value = TupleGetItem(self._moved[id(node.tuple_value)].value, node.index)
            return _Moved(value, item.old, item.new)
        below = () if is_closed(node) else operands(node)
        return _Moved(with_operands(node, [self._plain(o) for o in below]) if below else node)

    def _is_skipped(self, call: Call) -> bool:
        is_layer = call.operator.name in self.desired and call.operator.name.startswith(
            ("nn.conv", "qnn.conv")
        )
        return is_layer and self.config is not None and self.config.check_skip()

    # -- operators whose layout the user chose

    def _wanted(self, call: Call) -> _Moved | None:
        attrs, layouts = call.attrs, self.desired[call.operator.name]
        if (convert := call.operator.get_attr("FTVMConvertOpLayout")) is not None:
            return self._by_user(call, convert, layouts)
        if attrs is None:
            return None
        if "data_layout" not in attrs:
            return self._bound(call, layouts[0]) if "layout" in attrs else None
        old, kernel = str(attrs["data_layout"]), str(attrs["kernel_layout"])
        new = old if layouts[0] == "default" else layouts[0]
        if len(layouts) > 1 and layouts[1] != "default":
            new_kernel = layouts[1]
        else:
            new_kernel = kernel if new == old else _KERNELS.get(new, kernel)
        if attrs["groups"] > 1 and new != old and new_kernel == "HWIO" and self._is_depthwise(call):
            new_kernel = "HWOI" if len(layouts) < 2 else new_kernel
        if sorted(new) != sorted(old) or sorted(new_kernel) != sorted(kernel):
            raise TVMError(
                f"ConvertLayout requires layouts of the axes of {old} and {kernel} for "
                f"{call.operator.name}, got {new} and {new_kernel}"
            )
        data = self._in(call.args[0], old, new)
        weight = self._in(call.args[1], kernel, new_kernel)
        if attrs["groups"] > 1 and kernel == "HWOI" and new_kernel == "OIHW":
            weight = _without_multiplier(weight, call.args[1])
        changed: dict[str, Any] = {"data_layout": new, "kernel_layout": new_kernel}
        out = str(attrs["out_layout"]) or old
        if attrs["out_layout"]:
            changed["out_layout"] = new
        value = with_operands(
            call, [call.op, data, weight, *[self._plain(a) for a in call.args[2:]]]
        )
        if any([attrs[key] != text for key, text in changed.items()]):
            value = value.replace(attrs=attrs.replace(**changed))
        return _made(value, out, new)

    def _by_user(
        self, call: Call, convert: ConvertOpLayout, layouts: Sequence[str]
    ) -> _Moved | None:
        """What the user's function makes of the call, its arguments in the layouts it names."""
        plain = with_operands(call, [call.op, *[self._plain(a) for a in call.args]])
        assert isinstance(plain, Call)
        types = [infer_type_of(a) for a in call.args]
        new = convert(call.attrs, list(plain.args), types, list(layouts))
        if new is None:
            return None
        old_out, new_out = named_layouts(call)[1], named_layouts(new)[1]
        if sorted(old_out) != sorted(new_out) or not isinstance(new, Call):
            return _Moved(with_transforms(plain, new))
        pairs = zip(named_layouts(call)[0], named_layouts(new)[0], strict=False)
        args = list(new.args)
        for i, (old, wanted) in enumerate(pairs):
            if args[i] is plain.args[i]:
                args[i] = self._in(call.args[i], old, wanted)
            elif not ends_in(args[i], wanted):
                args[i] = self._transform(args[i], old, wanted)
        return _made(new.replace(args=tuple(args)), old_out, new_out)

    def _is_depthwise(self, call: Call) -> bool:
        ty = infer_type_of(call.args[0])
        axis = str(call.attrs["data_layout"]).index("C")
        return isinstance(ty, TensorType) and ty.concrete_shape[axis] == call.attrs["groups"]

    # -- operators that take the layout that comes

    def _followed(self, call: Call) -> _Moved | None:
        moved = [self._moved[id(t)] for t in tensors_of(call)]
        first = next((m for m in moved if m.new is not None), None)
        if first is None:
            return None
        assert first.old is not None and first.new is not None
        name, attrs = call.operator.name, call.attrs
        if call.operator.has_attr("FInferCorrectLayout"):
            return self._inferred(call, first.old, first.new)
        if attrs is not None and "layout" in attrs:
            return self._bound(call, first.new)
        if name in _WITH_AXIS:
            return self._with_axis(call, first.old, first.new)
        if name in _WITH_TWO_AXES:
            return self._with_two_axes(call, first.old, first.new)
        if name in _NORMALISATIONS and self._moved[id(call.args[0])].new is not None:
            return self._normalisation(call, first.old, first.new)
        is_simple = call.operator.fuse is not None and call.operator.fuse <= OpPattern.BROADCAST
        if is_simple and (attrs is None or (len(call.args) == 1 and not _names_axes(call))):
            return self._elementwise(call, first.old, first.new)
        return None

    def _inferred(self, call: Call, old: str, new: str) -> _Moved | None:
        """The call in the layouts that the user's function infers."""
        tensors = tensors_of(call)
        given = [self._moved[id(t)].new for t in tensors]
        types = [infer_type_of(a) for a in call.args]
        choice = layout_choice(call, [layout(name) if name else None for name in given], types, old)
        if choice is None or len(choice.inputs) != len(tensors) or len(choice.outputs) != 1:
            return None
        wanted = [None if found is None else found.name for found in choice.inputs]
        out = choice.outputs[0]
        if any([name and sorted(name) != sorted(old) for name in wanted]):
            return None
        moved = [
            self._plain(t) if name is None else self._in(t, old, name)
            for t, name in zip(tensors, wanted, strict=True)
        ]
        attrs = call.attrs if choice.attrs is None else choice.attrs
        value = call.replace(args=tuple(regrouped(call, moved)), attrs=attrs)
        return _Moved(value) if out is None else _made(value, old, out.name)

    def _bound(self, call: Call, new: str) -> _Moved | None:
        old = str(call.attrs["layout"])
        if sorted(old) != sorted(new):
            return None
        changed = {"layout": new}
        if getattr(call.attrs, "out_layout", ""):
            changed["out_layout"] = new
        args = [self._in(call.args[0], old, new), *[self._plain(a) for a in call.args[1:]]]
        value = call.replace(args=tuple(args), attrs=call.attrs.replace(**changed))
        return _made(value, old, new)

    def _with_axis(self, call: Call, old: str, new: str) -> _Moved | None:
        rank = len(old)
        tensors = tensors_of(call) if call.operator.name == "concatenate" else [call.args[0]]
        if any([_rank(t) != rank for t in tensors]):
            return None
        axis = new.index(old[call.attrs["axis"] % rank])
        attrs = call.attrs.replace(axis=axis)
        if call.operator.name == "concatenate":
            if not isinstance(call.args[0], Tuple):
                return None
            fields = Tuple([self._in(t, old, new) for t in tensors])
            return _made(call.replace(args=(fields,), attrs=attrs), old, new)
        args = [self._in(call.args[0], old, new), *[self._plain(a) for a in call.args[1:]]]
        return _made(call.replace(args=tuple(args), attrs=attrs), old, new)

    def _with_two_axes(self, call: Call, old: str, new: str) -> _Moved | None:
        if any([_rank(data) != len(old) for data in call.args[:2]]):
            return None
        axes = {
            name: new.index(old[call.attrs[name] % len(old)]) for name in ("lhs_axis", "rhs_axis")
        }
        data = [self._in(arg, old, new) for arg in call.args[:2]]
        rest = [self._plain(arg) for arg in call.args[2:]]
        value = call.replace(args=(*data, *rest), attrs=call.attrs.replace(**axes))
        return _made(value, old, new)

    def _normalisation(self, call: Call, old: str, new: str) -> _Moved:
        axis = new.index(old[call.attrs["axis"] % len(old)])
        args = [self._in(call.args[0], old, new), *[self._plain(a) for a in call.args[1:]]]
        value = call.replace(args=tuple(args), attrs=call.attrs.replace(axis=axis))
        whole = infer_type_of(call)
        assert isinstance(whole, TupleType)
        self._items[id(call)] = [
            _Moved(value, old, new),
            *[_Moved(value)] * (len(whole.fields) - 1),
        ]
        return _Moved(value)

    def _elementwise(self, call: Call, old: str, new: str) -> _Moved | None:
        if _rank(call) != len(old) or any([(_rank(a) or 0) > len(old) for a in call.args]):
            return None
        args = [self._broadcast(a, old, new) for a in call.args]
        return _made(call.replace(args=tuple(args)), old, new)

    def _broadcast(self, arg: RelayExpr, old: str, new: str) -> RelayExpr:
        """An argument of any rank, so that it broadcasts in the new layout as in the old one."""
        ty = infer_type_of(arg)
        assert isinstance(ty, TensorType)
        rank = len(ty.shape)
        if rank == len(old):
            return self._in(arg, old, new)
        plain = self._plain(arg)
        if all([getattr(dim, "value", 0) == 1 for dim in ty.shape]):
            return plain
        wide = ops.expand_dims(plain, axis=0, num_newaxis=len(old) - rank)
        return self._transform(wide, old, new)

    # -- moving values

    def _in(self, old_expr: RelayExpr, old: str, new: str) -> RelayExpr:
        moved = self._moved.get(id(old_expr), _Moved(old_expr))
        if (moved.old, moved.new) == (old, new):
            return moved.value
        return self._transform(self._plain(old_expr), old, new)

    def _plain(self, old_expr: RelayExpr) -> RelayExpr:
        moved = self._moved.get(id(old_expr), _Moved(old_expr))
        if (items := self._items.get(id(old_expr))) is not None:
            if items[0].new is None:
                return moved.value
            first = TupleGetItem(moved.value, 0)
            rest = [TupleGetItem(moved.value, i) for i in range(1, len(items))]
            return Tuple([self._transform(first, str(items[0].new), str(items[0].old)), *rest])
        if moved.new is None or moved.old is None:
            return moved.value
        return self._transform(moved.value, moved.new, moved.old)

    def _transform(self, value: RelayExpr, source: str, target: str) -> RelayExpr:
        if source == target:
            return value
        key = (id(value), source, target)
        if key not in self._transforms:
            self._transforms[key] = ops.layout_transform(
                value, src_layout=source, dst_layout=target
            )
        return self._transforms[key]


def _made(value: RelayExpr, old: str, new: str) -> _Moved:
    return _Moved(value) if old == new else _Moved(value, old, new)


def _rank(expr: RelayExpr) -> int | None:
    ty = infer_type_of(expr)
    return len(ty.shape) if isinstance(ty, TensorType) else None


def _names_axes(call: Call) -> bool:
    return call.op is not ops.cast and any(
        [k in call.attrs for k in ("axis", "axes", "shape", "newshape")]
    )


def _without_multiplier(weight: RelayExpr, old: RelayExpr) -> RelayExpr:
    """A depthwise kernel whose multiplier, HWOI's I, becomes a part of the output channels."""
    height, width, channels, multiplier = tensor_type_of(old).concrete_shape
    if multiplier == 1:
        return weight
    return ops.reshape(weight, newshape=(channels * multiplier, 1, height, width))


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """The pass.

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

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return func if is_primitive(func) else converted(func, desired_layouts)

    return FunctionPass(run, PassInfo(3, "ConvertLayout"))


def converted(func: Function, desired_layouts: Mapping[str, Sequence[str]]) -> Function:
    """The function with its operators in those layouts."""
    blocked = {name: wanted for name, wanted in desired_layouts.items() if _has_blocks(wanted)}
    plain = {name: wanted for name, wanted in desired_layouts.items() if name not in blocked}
    result = _Converter(plain).run(func)
    if blocked:
        infer_type_of(result)
        result = LayoutAlterer(_BlockedCalls(blocked)).run(result)  # type: ignore[arg-type]
    assert isinstance(result, Function)
    return result


def _has_blocks(layouts: Sequence[str]) -> bool:
    return any([plain_layout(name) != name for name in layouts if name != "default"])


class _BlockedCalls:
    """Calls in layouts with blocks, such as NCHW16c with OIHW16i16o."""

    def __init__(self, desired: Mapping[str, Sequence[str]]) -> None:
        self.desired = desired
        self.config = LayoutConfig.find()

    def __call__(
        self, call: Call, args: list[RelayExpr], arg_types: list[Type], out_type: Type
    ) -> RelayExpr | None:
        name = call.operator.name
        if name not in self.desired or (self.config is not None and self.config.check_skip()):
            return None
        wanted = list(self.desired[name])
        if (convert := call.operator.get_attr("FTVMConvertOpLayout")) is not None:
            found: RelayExpr | None = convert(call.attrs, args, arg_types, wanted)
            return found
        keys = ["data_layout", "kernel_layout"] if "data_layout" in call.attrs else ["layout"]
        if len(wanted) < len(keys) or wanted[-1] == "default":
            raise TVMError(
                f"ConvertLayout requires a layout of the kernel beside {wanted[0]} for {name}",
                hint='such as {"nn.conv2d": ["NCHW4c", "OIHW4o"]}',
            )
        changed = {key: new for key, new in zip(keys, wanted, strict=False) if new != "default"}
        for key, ty, new in zip(keys, arg_types, wanted, strict=False):
            old = str(call.attrs[key])
            if new != "default" and not _fits(ty, old, new):
                return None
        if getattr(call.attrs, "out_layout", ""):
            changed["out_layout"] = changed.get(keys[0], str(call.attrs["out_layout"]))
        return call.replace(args=tuple(args), attrs=call.attrs.replace(**changed))


def _fits(ty: Type, old: str, new: str) -> bool:
    """Whether a tensor's extents are whole numbers of the new layout's blocks."""
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

"""Graphs of TorchDynamo as ATen operators without writes, and what their outputs share memory with.

y = x.view(-1)         ->     (x + 1).view(-1)    the new value of x, first
x.add_(1)                     x as [6] from 0     y, which shares the memory of x
return y
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp.decompositions import native_batch_norm_decomposition
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tvm.error import TVMError
from tvm.relay.frontend.pytorch.fx import ordered_arguments

# its schema hides that it writes the running statistics
_HIDDEN_WRITES = {torch.ops.aten.native_batch_norm.default: native_batch_norm_decomposition}


@dataclass(frozen=True)
class Shared:
    """Where an output lies in the memory of an input, or of another output."""

    source: int  # the position among the inputs, or among the outputs
    of_input: bool
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int  # from the first element of the source

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The output, given its source."""
        offset = tensor.storage_offset() + self.offset
        same = (self.shape, self.strides, self.offset) == (tensor.shape, tensor.stride(), 0)
        return tensor if same else tensor.as_strided(self.shape, self.strides, offset)


@dataclass(frozen=True)
class Draw:
    """An operator that draws random numbers, of shapes and numbers alone."""

    overload: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    like: torch.Tensor  # of the shape and type of its result

    def __call__(self) -> Any:
        return self.overload(*self.args, **self.kwargs)


@dataclass(frozen=True)
class FlatGraph:
    """A graph of ATen operators: new values of written inputs, then the outputs."""

    module: torch.fx.GraphModule
    draws: list[Draw]  # PyTorch draws them for each run, they are the last inputs
    written: list[int]  # positions of inputs
    shared: Mapping[int, Shared]  # by the position of the output
    strides: Mapping[int, tuple[int, ...]]  # of outputs that do not lie in the order of their axes
    structure: Any  # how the outputs nest


def flatten(module: torch.fx.GraphModule, args: Sequence[Any]) -> FlatGraph:
    """Trace a graph for the shapes of its arguments."""
    shared: dict[int, Shared] = {}
    strides: dict[int, tuple[int, ...]] = {}
    structure: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        leaves, spec = torch.utils._pytree.tree_flatten(module.forward(*values))
        structure.append(spec)
        shared.update(_shared(values, leaves))
        strides.update({i: x.stride() for i, x in enumerate(leaves) if _is_permuted(x)})
        return leaves

    # first all transforms of functions are resolved: removing writes does not nest with them
    plain = _trace(flat, args, _HIDDEN_WRITES)

    def written(*values: Any) -> Any:
        return plain.forward(*values)

    pure = _trace(torch.func.functionalize(written, remove="mutations_and_views"), args)
    _require_no_control_flow(pure)
    written_inputs = _returned_writes(pure)
    return FlatGraph(pure, _draws(pure), written_inputs, shared, strides, structure[-1])


def _require_no_control_flow(traced: torch.fx.GraphModule) -> None:
    for node in traced.graph.nodes:
        if str(node.target) in ("cond", "while_loop"):
            raise TVMError(f"{node.target} decides by values that the graph computes")


def numbers_read(module: torch.fx.GraphModule) -> list[int]:
    """The positions of inputs that the graph reads as numbers: TorchDynamo gives floats so."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    return [i for i, node in enumerate(placeholders) if _readings(node)]


def _readings(placeholder: torch.fx.Node) -> list[torch.fx.Node]:
    return [n for n in placeholder.users if n.op == "call_method" and n.target == "item"]


def with_numbers(module: torch.fx.GraphModule, values: Mapping[int, float]) -> torch.fx.GraphModule:
    """The graph with numbers in place of what it reads."""
    made = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    placeholders = [node for node in made.graph.nodes if node.op == "placeholder"]
    for position, value in values.items():
        for reading in _readings(placeholders[position]):
            known: dict[torch.fx.Node, Any] = {reading: value}

            def replaced(node: torch.fx.Node, known: dict[torch.fx.Node, Any] = known) -> Any:
                return known.get(node, node)

            for user in list(reading.users):
                user.args = torch.fx.node.map_arg(user.args, replaced)
                user.kwargs = torch.fx.node.map_arg(user.kwargs, replaced)
            made.graph.erase_node(reading)
    made.recompile()
    return made


def _trace(
    function: Any, args: Sequence[Any], rules: Mapping[Any, Any] | None = None
) -> torch.fx.GraphModule:
    fake = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    # the caller's grad mode stays: torch.func.grad needs it, and arguments need no gradients
    with fake as mode:
        fakes = [
            mode.from_tensor(arg.detach(), static_shapes=True)
            if isinstance(arg, torch.Tensor) else arg
            for arg in args
        ]  # fmt: skip
        return make_fx(function, decomposition_table=rules)(*fakes)


def _shared(inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[int, Shared]:
    """The outputs that share memory with an input or with an output that owns all of its own."""
    owners = {_memory(x): (i, True, x) for i, x in enumerate(inputs) if _is_strided(x)}
    for i, output in enumerate(outputs):
        if _is_strided(output) and _owns_memory(output):
            owners.setdefault(_memory(output), (i, False, output))
    result = {}
    for i, output in enumerate(outputs):
        place, of_input, owner = owners.get(_memory(output), (i, False, None))
        if owner is not None and owner.dtype == output.dtype and (of_input or place != i):
            offset = output.storage_offset() - owner.storage_offset()
            shape, strides = tuple(output.shape), output.stride()
            result[i] = Shared(place, of_input, shape, strides, offset)
    return result


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided


def _is_permuted(value: Any) -> bool:
    """Whether the elements fill memory without gaps, in another order than that of the axes."""
    if not _is_strided(value) or value.is_contiguous():
        return False
    following = 1
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size != 1 and stride != following:
            return False
        following *= size
    return True


def _memory(value: Any) -> Any:
    return value.untyped_storage()._cdata if _is_strided(value) else None


def _owns_memory(tensor: torch.Tensor) -> bool:
    size = tensor.numel() * tensor.element_size()
    return tensor.is_contiguous() and size == tensor.untyped_storage().nbytes()


# these read no more of their tensor than its shape and type
_LIKE = {
    torch.ops.aten.rand_like.default, torch.ops.aten.randn_like.default,
    torch.ops.aten.randint_like.default, torch.ops.aten.randint_like.low_dtype,
    torch.ops.aten.bernoulli.p, torch.ops.aten.normal_functional.default,
    torch.ops.aten.uniform.default, torch.ops.aten.exponential.default,
}  # fmt: skip


def _draws(traced: torch.fx.GraphModule) -> list[Draw]:
    """Make inputs of random numbers: code that is compiled would repeat them in each run."""
    last = [node for node in traced.graph.nodes if node.op == "placeholder"][-1:]
    found: list[Draw] = []
    for node in list(traced.graph.nodes):
        if not _is_random(node):
            continue
        made = node.meta["val"]
        if not isinstance(made, torch.Tensor) or (
            node.all_input_nodes and node.target not in _LIKE
        ):
            raise TVMError(f"{node.target} draws random numbers from what the graph computes")
        args, kwargs = torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda n: _like(n.meta["val"])
        )
        inserting = traced.graph.inserting_after if last else traced.graph.inserting_before
        with inserting((last or list(traced.graph.nodes))[0]):
            last = [traced.graph.placeholder(f"drawn{len(found)}")]
        last[0].meta = node.meta
        found.append(Draw(node.target, args, kwargs, _like(made)))
        node.replace_all_uses_with(last[0])
        traced.graph.erase_node(node)
    return found


def sampled_dropout(
    x: torch.Tensor, p: float, train: bool | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """``native_dropout`` with numbers that are drawn before, from the same stream."""
    mask = torch.empty_like(x, dtype=torch.bool)
    if train is False or p == 0:
        return x.clone(), torch.ones_like(mask)
    kept = 1.0 - p
    mask = torch.ops.aten.bernoulli.p(mask, kept)
    return x * mask * (1 / kept if kept else 0.0), mask


def _is_random(node: Any) -> bool:
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    arguments = ordered_arguments(node.target, node.args, node.kwargs)
    names = [argument.name for argument in node.target._schema.arguments]
    # attention drops nothing out in inference
    return dict(zip(names, arguments, strict=True)).get("dropout_p") != 0


def _like(tensor: Any) -> Any:
    return torch.zeros(tuple(map(int, tensor.shape)), dtype=tensor.dtype)


def _returned_writes(traced: torch.fx.GraphModule) -> list[int]:
    """Make values that are copied into inputs the first outputs instead."""
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    (output,) = [node for node in traced.graph.nodes if node.op == "output"]
    written, values = [], []
    for node in list(traced.graph.nodes):
        if node.target is torch.ops.aten.copy_.default and node.args[0] in placeholders:
            written.append(placeholders.index(node.args[0]))
            values.append(node.args[1])
            node.replace_all_uses_with(node.args[1])
            traced.graph.erase_node(node)
    output.args = ([*values, *output.args[0]],)
    return written

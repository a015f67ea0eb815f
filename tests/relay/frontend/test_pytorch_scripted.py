"""Scripted modules: the language of TorchScript beside its operators."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tvm import relay
from tvm.error import OpNotImplemented, TVMError

from .running import assert_close

torch.manual_seed(0)
X = torch.randn(3, 4)
N = [torch.tensor(n) for n in (2, 0, 5)]
SIGNS = [(X,), (-X.abs(),), (X.abs(),)]
PROGRAMS: dict[str, tuple[Any, list[tuple[Tensor, ...]]]] = {}


def program(*inputs: tuple[Tensor, ...]) -> Any:
    """Register a module or function, and inputs to call it with."""

    def register(module: Any) -> Any:
        PROGRAMS[module.__name__] = (module, list(inputs) or [(X,)])
        return module

    return register


def _flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, (Tensor, int, float, bool)):
        return [torch.as_tensor(value).numpy()]
    if hasattr(value, "numpy"):
        return [value.numpy()]
    items = value.values() if isinstance(value, dict) else value
    return [array for item in items for array in _flat(item)]


def imported(module: Any, shapes: list[Any]) -> Any:
    """A function that runs the imported module in the interpreter."""
    mod, params = relay.frontend.from_pytorch(module, shapes)
    call = relay.create_executor("debug", mod=mod).evaluate()
    return lambda *tensors: call(*[t.numpy() for t in tensors], **params)


@torch.no_grad()
def _check(name: str) -> None:
    made, calls = PROGRAMS[name]
    script = torch.jit.script(made().eval() if isinstance(made, type) else made)
    types = [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in calls[0]]
    call = imported(script, [(f"x{i}", kind) for i, kind in enumerate(types)])
    for inputs in calls:
        expected = _flat(script(*[t.clone() for t in inputs]))
        for actual, wanted in zip(_flat(call(*inputs)), expected, strict=True):
            assert_close(actual.astype(wanted.dtype) if not wanted.ndim else actual, wanted)


# ---- values of the language


@program()
def lists(x: Tensor):
    found: list[Tensor] = []
    for i in range(x.size(0)):
        found.append(x[i] * i)
    found.insert(0, x[0])
    found.reverse()
    found.extend([x[1], found.pop()])
    rows = [[x[0, 0]], [x[0, 1], x[1, 1]]]
    rows[0].append(x[2, 2])
    return torch.stack(found[1:] + found[:1]), torch.stack(rows[0]), len(found), sum([1, 2])


@program()
def dictionaries(x: Tensor):
    known: dict[str, Tensor] = {"a": x}
    if "b" not in known:
        known["b"] = x * 2
    total = torch.zeros_like(x)
    for key, value in known.items():
        total = total + value + known[key] * len(key)
    numbers = {1: x, 2: x + 1}
    last = known.pop("a")
    return total, known, numbers.get(1, x) + last, list(numbers.values())[1], len(known)


class Point(NamedTuple):
    left: Tensor
    right: Tensor


@program()
def named_tuples(x: Tensor):
    first = Point(x, x + 1)
    swapped = Point(left=first.right, right=first.left)
    return swapped.left * 2 + swapped.right, swapped


@program()
def comprehensions_and_numbers(x: Tensor):
    rows = [x[i].sum() for i in range(3)]
    rank, half = x.dim(), x.size(0) / 2
    numbers = [min(rank, 10), max(2, len(rows)), x.size(0) // 2, -rank % 3, round(half), abs(-rank)]
    total = 0
    for i, (factor, row) in enumerate(zip([1.0, 2.0, 3.0], x.unbind(0))):  # noqa: B905
        rows[0] = rows[0] + factor * row.max() * i
        total += numbers[i]
    return rows[0] + rows[-1] * half, total, [k for k in range(4, 0, -2)], all([rank > 1])  # noqa: C416


class Flags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mode, self.names, self.training_steps = "sum", ["alpha", "beta"], 0
        self.sizes, self.table = [1, 2], {"a": 1.5}

    def forward(self, x):
        if self.mode == "sum":
            y = x.sum(1) * self.sizes[1] + self.table["a"]
        elif self.mode in ["mean", "avg"]:
            y = x.mean(1)
        else:
            raise ValueError(f"unknown mode {self.mode}")
        for name in self.names:
            if name.startswith("al") and "{}-{}".format(name, 1) == "alpha-1":  # noqa: UP032
                y = y * len(name)
        if torch.jit.is_scripting() and not self.training:
            self.training_steps += 2
        with torch.no_grad():
            return y + self.training_steps


program()(Flags)


class Scale(nn.Module):
    def forward(self, x: Tensor, factor: Tensor | None = None, power: int | None = None):
        if factor is not None and power is not None:
            return x * factor**power
        return x if factor is None else x * factor


@program()
class Optionals(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Scale()

    def forward(self, x, offset: float = 0.5, flag: bool = True):
        kept: Tensor | None = None
        if flag:
            kept = x + offset
        assert kept is not None
        return self.scale(x) + self.scale(x, kept) + self.scale(x, kept, 2)


@torch.jit.script
class Total:
    def __init__(self, count: int):
        self.sum = torch.zeros(4)
        self.count = count

    def add(self, x: Tensor):
        self.sum = self.sum + x
        self.count += 1
        return self


@program(*SIGNS)
def objects(x: Tensor):
    total = Total(1)
    for i in range(x.size(0)):
        total.add(x[i])
    if bool(x.sum() > 0):
        total.add(x[0])
    else:
        total.sum = x[1]
    return total.sum / total.count


# ---- control flow that depends on data


@program(*SIGNS)
def early_returns(x: Tensor):
    if x.size(0) > 5:
        return x
    if bool(x.sum() > 3):
        return x * 2
    if bool(x.sum() < -3):
        return x - 1
    return x + 10


@program(*SIGNS)
def branches_that_write(x: Tensor):
    y = x.clone()
    row, found, known = y[0], [x[0]], {"a": x}
    if bool(x.sum() > 0):
        row.add_(1)
        y[1] = 5
        found.append(x[1])
        known["a"] = x * 3
    else:
        y.mul_(2)
        found.append(x[2])
    return y, row, torch.stack(found), known["a"]


@program(*SIGNS)
def branches_of_other_lengths(x: Tensor):
    found = [x[0]]
    if bool(x.sum() > 0):
        found.append(x[1])
        y = x[:2]
    else:
        y = x[:1]
    found.append(x[2])
    return torch.stack(found), y * 2, len(found)


@program(*[(X, n) for n in N])
def loops_that_write(x: Tensor, n: Tensor):
    y, state, last = torch.zeros(5, 4), {"h": x[0], "c": x[1]}, (x[0], x[1])
    for i in range(int(n)):
        y[i] = x[1] * i
        state["h"] = state["h"] * 0.5 + state["c"]
        last = (last[1], last[0] + 1)
    return y, state["h"], last


@program(*[(X, n) for n in N[::2]])
def lists_that_grow(x: Tensor, n: Tensor):
    rows: list[Tensor] = []
    states: list[tuple[Tensor, Tensor]] = []
    joined = x
    h = x[0]
    for i in range(int(n)):
        h = torch.tanh(h + x[1] * i)
        rows.append(h)
        states += [(h, h * 2)]
        joined = torch.cat([joined, x])
    last = states[-1]
    return torch.stack(rows), torch.cat(rows), torch.stack(rows, 1), rows[0], last[1], joined


@program((torch.rand(3, 4),), (torch.rand(3, 4) * 50,))
def loops_that_break(x: Tensor):
    steps, total = 0, torch.zeros(4)
    while steps < 10:
        x = x + 1
        steps += 1
        if bool(x.max() > 8):
            break
    for i in range(3):
        if bool(x[i].max() < 9):
            continue
        total = total + x[i]
        if bool(total.sum() > 100):
            return total * 10, steps
    return total, steps


@program(*[(torch.tensor([n]),) for n in (6, 27, 1)])
def whole_numbers_that_are_read(x: Tensor):
    n, count = int(x[0]), 0
    while n != 1 and count < 20:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count, n, torch.tensor([float(n), float(count)])


@program(*[(X, torch.tensor(n)) for n in (2, 0)])
def places_and_sizes_that_are_read(x: Tensor, n: Tensor):
    i = int(n)
    return x[i], x[:, i], x[i:], torch.zeros(i, 4) + x[0], torch.arange(i), x.repeat(i + 1, 1)


# ---- memory


@program()
def names_of_one_tensor(x: Tensor):
    y = x.clone()
    z, kept, found = y, y, [y]
    for _ in range(2):
        z = z.add_(1)
    found[0].mul_(2)
    left, right = y.chunk(2, 1)
    left.add_(1)
    y.t()[0] = 5
    permuted = x.t().contiguous()
    permuted[0] = 7
    return y, z, kept, left, right, found[0], x, permuted


# ---- layers


@program((torch.randn(3, 2, 4),))
class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(4, 6), nn.LSTMCell(6, 6)])
        self.layers = nn.ModuleDict(
            {"gru": nn.GRU(6, 3), "lstm": nn.LSTM(3, 2, bidirectional=True)}
        )

    def forward(self, x):
        found = torch.jit.annotate(list[Tensor], [])
        states = [(torch.zeros(x.size(1), 6), torch.zeros(x.size(1), 6)) for _ in range(2)]
        for step in x.unbind(0):
            for i, cell in enumerate(self.cells):
                states[i] = cell(step, states[i])
                step = states[i][0]
            found += [step]
        y = torch.stack(found)
        for name, layer in self.layers.items():
            y = layer(y)[0] * len(name)
        return y, states


@program((torch.randn(2, 5, 8),))
class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x):
        y, weights = self.attention(x, x, x)
        return self.encoder(y), weights


test_program_agrees_with_torch = pytest.mark.parametrize("name", PROGRAMS)(_check)


@torch.no_grad()
def test_sequences_of_open_length() -> None:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(4, 3)

        def forward(self, x):
            h = torch.zeros(x.size(1), 3)
            found: list[Tensor] = []
            for i in range(x.size(0)):
                h = self.cell(x[i], h)
                found.append(h)
            return torch.stack(found), h

    script = torch.jit.script(Cell().eval())
    mod, params = relay.frontend.from_pytorch(script, [("x", (relay.Any(), 2, 4))])
    call = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    for length in (1, 4):
        x = torch.randn(length, 2, 4)
        for actual, expected in zip(call(x.numpy(), **params), script(x), strict=True):
            assert_close(actual.numpy(), expected.numpy())


def test_weights_of_recurrent_layers_have_their_names() -> None:
    _, params = relay.frontend.from_pytorch(
        torch.jit.script(Recurrent().eval()), [("x", (1, 2, 4))]
    )
    assert "layers.lstm.weight_ih_l0_reverse" in params and "cells.0.bias_hh" in params


def test_unknown_operators_in_branches_that_are_not_taken_do_not_matter() -> None:
    class Model(nn.Module):
        def forward(self, x, is_odd: bool = False):
            return torch._nested_tensor_from_mask(x, x > 0) if is_odd else x * 2

    call = imported(torch.jit.script(Model()), [("x", (1, 2, 3))])
    assert_close(call(torch.ones(1, 2, 3)).numpy(), np.full((1, 2, 3), 2, "float32"))


def test_lists_of_unknown_length_are_refused_as_outputs_and_by_most_operators() -> None:
    @torch.jit.script
    def rows(x, n: Tensor):
        found: list[Tensor] = []
        for _ in range(int(n)):
            found.append(x)
        return found

    @torch.jit.script
    def blocks(x, n: Tensor):
        return torch.block_diag(rows(x, n))

    infos = [("x", (2, 2)), ("n", ((), "int64"))]
    with pytest.raises(TVMError, match=r"outputs of known structure(.|\n)*return torch\.stack"):
        relay.frontend.from_pytorch(rows, infos)
    with pytest.raises(OpNotImplemented, match="lists of known length.*aten::block_diag"):
        relay.frontend.from_pytorch(blocks, infos)


def test_branches_of_other_structures_are_refused() -> None:
    @torch.jit.script
    def optional(x):
        y: Tensor | None = None
        if bool(x.sum() > 0):
            y = x
        return y

    with pytest.raises(TVMError, match="values of one structure, got a tensor and None"):
        relay.frontend.from_pytorch(optional, [("x", (2,))])


def test_images_are_resized_to_sizes_that_are_read() -> None:
    @torch.jit.script
    def resized(x, n: Tensor):
        size = [int(n), int(n) + 2]
        linear = nn.functional.interpolate(x, size, mode="bilinear", align_corners=True)
        cubic = nn.functional.interpolate(x, size, mode="bicubic", align_corners=False)
        exact = nn.functional.interpolate(x, size, mode="nearest-exact")
        return linear, cubic, exact, nn.functional.interpolate(x, size)

    call = imported(resized, [("x", (1, 2, 5, 6)), ("n", ((), "int64"))])
    x = torch.randn(1, 2, 5, 6)
    for n in (torch.tensor(3), torch.tensor(9)):
        for actual, expected in zip(call(x, n), resized(x, n), strict=True):
            assert_close(actual.numpy(), expected.numpy())


def test_what_was_computed_before_a_loop_is_not_computed_in_its_steps() -> None:
    def summed(x: Tensor, n: Tensor):
        y, total = torch.softmax(x, 0), torch.zeros(4)
        for _ in range(int(n)):
            for j in range(int(n)):
                total = total + y[0] * j
        return total

    mod, _ = relay.frontend.from_pytorch(
        torch.jit.script(summed), [("x", ((3, 4), "float32")), ("n", ((), "int64"))]
    )
    within: list[str] = []
    relay.analysis.post_order_visit(
        mod["main"].body,
        lambda node: within.append(node.astext()) if isinstance(node, relay.Function) else None,
    )
    assert len(within) == 2 and not any("softmax" in text for text in within)

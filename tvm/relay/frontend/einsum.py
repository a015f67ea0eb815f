"""Einstein summation by transposes, sums and batches of matrix products.

einsum("bij,bkj->bik", a, b)    ->    batch_matmul(a, b)    (transpose_b)
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_shape
from tvm.relay.frontend.dynamic_extents import broadcast, extent, product_of, reshaped


def einsum(equation: str, operands: Sequence[RelayExpr]) -> RelayExpr:
    """The sum of products that numpy's notation describes."""
    inputs, output = _letters(equation, [len(infer_shape(x)) for x in operands])
    pairs = [_without_repeats(terms, x) for terms, x in zip(inputs, operands, strict=True)]
    inputs, operands = [labels for labels, _ in pairs], [x for _, x in pairs]
    labels, value = inputs[0], operands[0]
    for position in range(1, len(operands)):
        later = set("".join(inputs[position + 1 :])) | set(output)
        labels, value = _product(labels, value, inputs[position], operands[position], later)
    summed = [axis for axis, label in enumerate(labels) if label not in output]
    if summed:
        value = _op.sum(value, axis=summed)
        labels = "".join([label for label in labels if label in output])
    return _arranged(value, labels, output)


def _letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """One letter an axis for each operand and the result, ellipses written out."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    free = [c for c in string.ascii_letters if c not in equation]
    extra = max([r - len(t) + 3 for t, r in zip(terms, ranks, strict=True) if "..." in t] + [0])
    dots = "".join(free[:extra])
    result = []
    for term, rank in zip(terms, ranks, strict=True):
        count = rank - len(term) + 3
        full = term.replace("...", dots[extra - count :] if "..." in term else "")
        if len(full) != rank:
            raise OpAttributeUnImplemented(
                f"einsum requires terms of one letter an axis, got {equation!r}"
            )
        result.append(full)
    if not arrow:
        once = [
            c for c in sorted(set("".join(result)) - set(dots)) if "".join(result).count(c) == 1
        ]
        right = "..." + "".join(once)
    return result, right.replace("...", dots)


def _without_repeats(labels: str, x: RelayExpr) -> tuple[str, RelayExpr]:
    """The diagonals of axes that share a letter."""
    while repeated := [c for c in labels if labels.count(c) > 1]:
        first, second = labels.index(repeated[0]), labels.rindex(repeated[0])
        rest = [axis for axis in range(len(labels)) if axis not in (first, second)]
        shape = infer_shape(x)
        moved = _op.transpose(x, [*rest, first, second])
        flat = _op.reshape(moved, [*[shape[axis] for axis in rest], shape[first] ** 2])
        step = shape[first] + 1
        x = _op.strided_slice(flat, [0], [shape[first] ** 2], [step], [len(rest)])
        labels = "".join([labels[axis] for axis in rest]) + repeated[0]
    return labels, x


def _product(
    a_labels: str, a: RelayExpr, b_labels: str, b: RelayExpr, later: set[str]
) -> tuple[str, RelayExpr]:
    """Two operands as one batched matrix product; labels that are not needed later are summed."""
    a_labels, a = _summed(a_labels, a, later | set(b_labels))
    b_labels, b = _summed(b_labels, b, later | set(a_labels))
    shared = [c for c in a_labels if c in b_labels]
    batch = [c for c in shared if c in later]
    inner = [c for c in shared if c not in later]
    rows = [c for c in a_labels if c not in shared]
    columns = [c for c in b_labels if c not in shared]
    size = {label: extent(b, axis) for axis, label in enumerate(b_labels)}
    for axis, label in enumerate(a_labels):
        size[label] = _wider(extent(a, axis), size.get(label, 1))
    left = _matrices(a, a_labels, [batch, rows, inner], size)
    right = _matrices(b, b_labels, [batch, columns, inner], size)
    product = _op.nn.batch_matmul(left, right)
    labels = [*batch, *rows, *columns]
    return "".join(labels), reshaped(product, [size[c] for c in labels])


def _summed(labels: str, x: RelayExpr, kept: set[str]) -> tuple[str, RelayExpr]:
    axes = [axis for axis, label in enumerate(labels) if label not in kept]
    if not axes:
        return labels, x
    return "".join([c for c in labels if c in kept]), _op.sum(x, axis=axes)


def _wider(a: Any, b: Any) -> Any:
    """The extent of both: one is broadcast, two dynamic ones are the same."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    known = [e for e in (a, b) if isinstance(e, int) and e != 1]
    return known[0] if known else a if isinstance(b, int) else b


def _matrices(
    x: RelayExpr, labels: str, groups: Sequence[Sequence[str]], size: dict[str, Any]
) -> RelayExpr:
    """Three axes, one for each group of labels."""
    order = [label for group in groups for label in group]
    x = _arranged(x, labels, "".join(order))
    wanted = [size[label] for label in order]
    if any(
        isinstance(have, int) and not (isinstance(want, int) and have == want)
        for have, want in zip(infer_shape(x), wanted, strict=True)
    ):
        x = broadcast(x, wanted)  # extents of one that are broadcast
    return reshaped(x, [product_of([size[label] for label in group]) for group in groups])


def _arranged(x: RelayExpr, labels: str, wanted: str) -> RelayExpr:
    axes = [labels.index(label) for label in wanted]
    return x if axes == list(range(len(axes))) else _op.transpose(x, axes)

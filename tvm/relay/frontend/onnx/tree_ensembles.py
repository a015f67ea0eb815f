"""Ensembles of decision trees: all trees take a step at once, as often as the deepest has levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, scalar_like

from .classical_ml import best_class, class_labels, in_rows, named_classes, transformed, two_classes
from .registry import OnnxNode, onnx_op, onnx_ops

Array = np.ndarray[Any, Any]

_COMPARISONS: dict[str, Callable[[RelayExpr, RelayExpr], RelayExpr]] = {
    "BRANCH_LEQ": _op.less_equal, "BRANCH_LT": _op.less, "BRANCH_GTE": _op.greater_equal,
    "BRANCH_GT": _op.greater, "BRANCH_EQ": _op.equal, "BRANCH_NEQ": _op.not_equal,
}  # fmt: skip
_MEMBER = "BRANCH_MEMBER"
_MODES = [*list(_COMPARISONS), _MEMBER]  # as TreeEnsemble numbers them
_AGGREGATES = ["AVERAGE", "SUM", "MIN", "MAX"]


@dataclass(frozen=True)
class Forest:
    """Arrays over all nodes; a leaf leads to itself."""

    features: Array
    splits: Array
    modes: Sequence[str]
    is_true_for_nan: Array
    if_true: Array
    if_false: Array
    weights: Array  # of each node for each output, NaN where a leaf says nothing about it
    roots: Array
    members: Array | None = None  # of each node, filled with NaN

    def leaves(self, x: RelayExpr) -> RelayExpr:
        """The leaf that each row reaches in each tree."""
        row = _op.strided_slice(x, [0], [1], axes=[1])
        at = _op.cast(_op.zeros_like(row), "int32") + constant(self.roots[None], "int32")
        for _ in range(self.depth()):
            value = _op.gather(x, 1, self._of(self.features, at))
            goes = self._condition(value, at)
            if self.is_true_for_nan.any():
                missing = _op.logical_and(_op.isnan(value), self._of(self.is_true_for_nan, at))
                goes = _op.logical_or(goes, missing)
            at = _op.where(goes, self._of(self.if_true, at), self._of(self.if_false, at))
        return at

    def depth(self) -> int:
        """Steps from the roots to the last leaf."""
        level, steps = np.unique(self.roots), 0
        while True:
            inner = level[self.if_true[level] != level]
            if not inner.size or steps > len(self.features):
                return steps
            level = np.unique(np.concatenate([self.if_true[inner], self.if_false[inner]]))
            steps += 1

    @staticmethod
    def _of(values: Array, at: RelayExpr) -> RelayExpr:
        kind = "int32" if values.dtype.kind == "i" else str(values.dtype)
        return _op.take(constant(values, kind), at, 0, mode="fast")

    def _condition(self, value: RelayExpr, at: RelayExpr) -> RelayExpr:
        split = _op.cast(self._of(self.splits, at), infer_dtype(value))
        modes = sorted(set(self.modes) - {"LEAF"})
        chosen = self._holds(modes[0], value, split, at)
        for mode in modes[1:]:
            here = self._of(np.array([m == mode for m in self.modes]), at)
            chosen = _op.where(here, self._holds(mode, value, split, at), chosen)
        return chosen

    def _holds(self, mode: str, value: RelayExpr, split: RelayExpr, at: RelayExpr) -> RelayExpr:
        if mode != _MEMBER:
            return _COMPARISONS[mode](value, split)
        assert self.members is not None
        members = _op.cast(self._of(self.members, at), infer_dtype(value))
        return _op.any(_op.equal(_op.expand_dims(value, 2), members), [2])

    def outputs(self, x: RelayExpr, aggregate: str) -> RelayExpr:
        """(rows, outputs): what the leaves say, over all trees."""
        dtype, silent = infer_dtype(x), np.isnan(self.weights)
        empty = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0)
        table = constant(np.where(silent, empty, self.weights), dtype)
        parts = _op.take(table, self.leaves(x), 0, mode="fast")
        if aggregate in ("MIN", "MAX"):
            found = (_op.min if aggregate == "MIN" else _op.max)(parts, [1])
            return _op.where(_op.isinf(found), _op.zeros_like(found), found)
        total = _op.sum(parts, [1])
        return total / scalar_like(len(self.roots), total) if aggregate == "AVERAGE" else total


def _array(node: OnnxNode, name: str) -> Array:
    """An attribute given as numbers or as a tensor."""
    found = node.attr(f"{name}_as_tensor")
    return np.asarray(node.attr(name, []) if found is None else found)


def _forest(node: OnnxNode, kind: str, count: int) -> Forest:
    """The forest of the older operators: weights are those of a ``kind``, ``count`` of them."""
    keys = list(zip(node.attr("nodes_treeids"), node.attr("nodes_nodeids"), strict=True))
    index = {key: i for i, key in enumerate(keys)}
    modes, own = list(node.attr("nodes_modes")), np.arange(len(keys))
    is_leaf = np.array([mode == "LEAF" for mode in modes])

    def children(name: str) -> Array:
        ids = zip(keys, node.attr(name), is_leaf, strict=True)
        found = [0 if leaf else index[tree, child] for (tree, _), child, leaf in ids]
        return np.where(is_leaf, own, found)

    weights = np.full((len(keys), count), np.nan)
    entries = zip(
        node.attr(f"{kind}_treeids"), node.attr(f"{kind}_nodeids"), node.attr(f"{kind}_ids"),
        _array(node, f"{kind}_weights"), strict=True,
    )  # fmt: skip
    for tree, node_id, output, weight in entries:
        position = index[tree, node_id], output
        weights[position] = weight + np.nan_to_num(weights[position])
    firsts = {tree: i for i, (tree, _) in reversed(list(enumerate(keys)))}
    return Forest(
        np.array(node.attr("nodes_featureids")), _array(node, "nodes_values"), modes,
        np.array(node.attr("nodes_missing_value_tracks_true") or [0] * len(keys), bool),
        children("nodes_truenodeids"), children("nodes_falsenodeids"), weights,
        np.array([firsts[tree] for tree in dict.fromkeys(tree for tree, _ in keys)]),
    )  # fmt: skip


def _rows(node: OnnxNode) -> RelayExpr:
    is_float = node.dtype(0).startswith("float")
    return in_rows(node[0] if is_float else _op.cast(node[0], "float32"))


def _with_base(node: OnnxNode, scores: RelayExpr) -> RelayExpr:
    base = _array(node, "base_values")
    return scores + constant(base[None], infer_dtype(scores)) if base.size else scores


@onnx_op("ai.onnx.ml.TreeEnsembleRegressor")
def _tree_regressor(node: OnnxNode) -> RelayExpr:
    forest = _forest(node, "target", node.attr("n_targets", 1))
    scores = forest.outputs(_rows(node), node.attr("aggregate_function", "SUM"))
    result = transformed(node, _with_base(node, scores), node.attr("post_transform", "NONE"))
    return _op.cast(result, "float32")


onnx_ops({
    "ai.onnx.ml.TreeEnsembleClassifier": lambda node: named_classes(node, _tree_classes(node)),
})  # fmt: skip


def _tree_classes(node: OnnxNode) -> list[RelayExpr]:
    labels, ids = class_labels(node, "classlabels_int64s"), set(node.attr("class_ids"))
    forest, x = _forest(node, "class", len(labels)), _rows(node)
    scores, base = forest.outputs(x, "SUM"), _array(node, "base_values")
    if len(labels) == 2 and len(ids) == 1:
        (only,) = ids
        score = _op.strided_slice(scores, [only], [only + 1], axes=[1])
        if base.size:
            score = score + scalar_like(float(base[-1]), score)
        is_share = bool((_array(node, "class_weights") >= 0).all())
        other = _op.zeros_like(score) if only else None
        return two_classes(node, score, labels, 0.5 if is_share else 0.0, is_share, other)
    scores = _with_base(node, scores)
    chosen, result = best_class(node, scores, labels)
    return [chosen, _op.cast(result, "float32")]


@onnx_op("ai.onnx.ml.TreeEnsemble")
def _tree_ensemble(node: OnnxNode) -> RelayExpr:
    """Nodes first and leaves behind them."""
    features = np.array(node.attr("nodes_featureids"))
    count, targets = len(features), np.array(node.attr("leaf_targetids"))
    own = count + np.arange(len(targets))

    def children(side: str) -> Array:
        ids, is_leaf = [np.array(node.attr(f"nodes_{side}{what}")) for what in ("nodeids", "leafs")]
        return np.concatenate([np.where(is_leaf, count + ids, ids), own])

    def padded(values: Any, fill: Any) -> Array:
        return np.concatenate([np.asarray(values), np.full(len(own), fill)])

    modes = [_MODES[mode] for mode in np.asarray(node.attr("nodes_modes"))]
    weights = np.full((count + len(own), node.attr("n_targets", 1)), np.nan)
    weights[own, targets] = node.attr("leaf_weights")
    nan = node.attr("nodes_missing_value_tracks_true") or [0] * count
    splits = node.attr("nodes_splits")
    forest = Forest(
        padded(features, 0), padded(splits, 0).astype(splits.dtype),
        [*modes, *["LEAF"] * len(own)], padded(nan, 0).astype(bool), children("true"),
        children("false"), weights, np.array(node.attr("tree_roots")), _members(node, modes, own),
    )  # fmt: skip
    scores = forest.outputs(_rows(node), _AGGREGATES[node.attr("aggregate_function", 1)])
    names = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
    return transformed(node, scores, names[node.attr("post_transform", 0)])


def _members(node: OnnxNode, modes: Sequence[str], leaves: Array) -> Array | None:
    """The sets of the nodes that ask for members; NaN separates them."""
    values = node.attr("membership_values")
    if values is None:
        return None
    ends = np.flatnonzero(np.isnan(values))
    sets = iter([part[~np.isnan(part)] for part in np.split(values, ends + 1)])
    of_nodes = [next(sets) if mode == _MEMBER else values[:0] for mode in modes]
    most = max(len(found) for found in of_nodes)
    table = np.full((len(modes) + len(leaves), most), np.nan, values.dtype)
    for row, found in zip(table, of_nodes, strict=False):
        row[: len(found)] = found
    return table

"""ai.onnx.ml without trees: preprocessing, linear models, support vectors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.linalg import inverse
from tvm.relay.frontend.matmul import matmul
from tvm.relay.frontend.normalization import p_norm

from .registry import OnnxNode, StringTensor, Value, onnx_op, onnx_ops

_DOMAIN = "ai.onnx.ml"
Array = np.ndarray[Any, Any]


def transformed(node: OnnxNode, scores: RelayExpr, name: str) -> RelayExpr:
    """Scores after the transformation of that name."""
    if name == "NONE":
        return scores
    if name == "LOGISTIC":
        return _op.sigmoid(scores)
    if name == "SOFTMAX":
        return _op.nn.softmax(scores, axis=-1)
    if name == "SOFTMAX_ZERO":
        return _softmax_of_others(scores)
    raise node.unsupported(f"post_transform {name!r}")


def _softmax_of_others(scores: RelayExpr) -> RelayExpr:
    """Zeros stay, the others share one."""
    is_zero = _op.less_equal(_op.abs(scores), scalar_like(1e-7, scores))
    powers = _op.exp(scores - _op.max(scores, [-1], True))
    shares = _op.where(is_zero, _op.zeros_like(scores), powers)
    return shares / _op.sum(shares, [-1], True)


def class_labels(node: OnnxNode, name: str) -> Array:
    """The classes' numbers, or positions if they have names."""
    if names := node.attr("classlabels_strings"):
        return np.arange(len(names))
    return np.array(node.attr(name), "int64")


def named_classes(node: OnnxNode, results: list[RelayExpr]) -> list[Value]:
    """Labels and scores, the labels as strings if the node has those."""
    names = node.attr("classlabels_strings")
    return [StringTensor(tuple(names), results[0]), *results[1:]] if names else list(results)


def two_classes(
    node: OnnxNode, score: RelayExpr, labels: Array, limit: float, is_share: bool,
    other: RelayExpr | None = None,
) -> list[RelayExpr]:  # fmt: skip
    """Labels and scores from the score of the second class, which is chosen above ``limit``.

    What the first class gets, if not ``other``, is the rest of 1 or the same with another sign.
    """
    first, second = [constant(label) for label in labels]
    is_second = _op.greater(_op.squeeze(score, [1]), scalar_like(limit, score))
    post = node.attr("post_transform", "NONE")
    if other is not None:
        scores = transformed(node, _op.concatenate([other, score], 1), post)
    elif is_share:
        scores = _op.concatenate([scalar_like(1.0, score) - score, score], 1)
    else:
        scores = transformed(node, _op.concatenate([_op.negative(score), score], 1), post)
    return [_op.where(is_second, second, first), _op.cast(scores, "float32")]


def _as_float(x: RelayExpr) -> RelayExpr:
    return x if infer_dtype(x) == "float32" else _op.cast(x, "float32")


def in_rows(x: RelayExpr) -> RelayExpr:
    """A vector as a matrix of one row."""
    return x if len(infer_shape(x)) == 2 else _op.expand_dims(x, 0)


def _linear(node: OnnxNode, x: RelayExpr, rows: int) -> RelayExpr:
    """The scores by the node's coefficients, a row of them for each."""
    weight = np.array(node.attr("coefficients"), "float32").reshape(rows, -1)
    scores = _op.nn.dense(in_rows(_as_float(x)), constant(weight))
    intercepts = node.attr("intercepts")
    return scores + constant(intercepts, "float32") if intercepts else scores


@onnx_op(f"{_DOMAIN}.LinearClassifier")
def _linear_classifier(
    x: RelayExpr, post_transform: str = "NONE", *, node: OnnxNode
) -> list[Value]:
    labels = class_labels(node, "classlabels_ints")
    rows = max(len(node.attr("intercepts") or []), 1)
    scores = _linear(node, x, rows)
    if rows == 1 and len(labels) == 2:
        found = two_classes(node, scores, labels, 0.0, post_transform == "NONE")
        return named_classes(node, found)
    return named_classes(node, best_class(node, scores, labels))


def best_class(node: OnnxNode, scores: RelayExpr, labels: Array) -> list[RelayExpr]:
    """The label of the greatest score, and the transformed scores."""
    chosen = _op.take(constant(labels), _op.argmax(scores, 1), 0)
    return [chosen, transformed(node, scores, node.attr("post_transform", "NONE"))]


def _kernel(node: OnnxNode, x: RelayExpr, vectors: Array) -> RelayExpr:
    """(rows, vectors): how alike each row and each support vector are."""
    gamma, offset, degree = node.attr("kernel_params") or (0.0, 0.0, 0.0)
    kind = node.attr("kernel_type", "LINEAR")
    if kind == "RBF":
        gaps = _op.expand_dims(x, 1) - constant(vectors[None])
        return _op.exp(scalar_like(-gamma, x) * _op.sum(gaps * gaps, [2]))
    products = _op.nn.dense(x, constant(vectors))
    if kind == "LINEAR":
        return products
    inner = scalar_like(gamma, x) * products + scalar_like(offset, x)
    if kind == "POLY":
        return _op.power(inner, scalar_like(degree, x))
    if kind == "SIGMOID":
        return _op.tanh(inner)
    raise node.unsupported(f"the kernel {kind!r}")


@onnx_op(f"{_DOMAIN}.SVMRegressor")
def _svm_regressor(node: OnnxNode) -> RelayExpr:
    x, count = _as_float(node[0]), node.attr("n_supports", 0)
    weights = np.array(node.attr("coefficients"), "float32")
    if count:
        vectors = np.array(node.attr("support_vectors"), "float32").reshape(count, -1)
        alike = _kernel(node, x, vectors)
        score = matmul(alike, constant(weights.reshape(count, 1)))
    else:
        score = _op.nn.dense(x, constant(weights[None]))
    score = score + scalar_like(node.attr("rho", [0.0])[0], x)
    if node.attr("one_class", 0):
        is_inside = _op.greater(score, scalar_like(0.0, x))
        return _op.where(is_inside, scalar_like(1.0, x), scalar_like(-1.0, x))
    return transformed(node, score, node.attr("post_transform", "NONE"))


def _svm_classes(node: OnnxNode) -> list[RelayExpr]:
    """The class that wins most pairs, and scores or probabilities; linear machines have a score
    of each class."""
    labels = class_labels(node, "classlabels_ints")
    x = in_rows(_as_float(node[0]))
    counts = node.attr("vectors_per_class") or []
    if not sum(counts):
        return _linear_machine(node, x, labels)
    scores = _pair_scores(node, x, counts)
    best = _op.argmax(_votes(scores, len(labels)), 1)
    chosen = _op.take(constant(labels), best, 0)
    post = node.attr("post_transform", "NONE")
    if node.attr("prob_a"):
        return [chosen, transformed(node, _shares_of_pairs(node, scores, len(labels)), post)]
    if len(labels) > 2:
        return [chosen, transformed(node, scores, post)]
    if post.startswith("SOFTMAX"):  # as ONNX Runtime has it: what the other class leaves
        return [chosen, _op.concatenate([scalar_like(1.0, scores) - scores, scores], 1)]
    both = _op.concatenate([_op.negative(scores), scores], 1)
    return [chosen, transformed(node, both, post)]


def _linear_machine(node: OnnxNode, x: RelayExpr, labels: Array) -> list[RelayExpr]:
    weight = np.array(node.attr("coefficients"), "float32").reshape(len(labels), -1)
    scores = _kernel(node, x, weight) + scalar_like(node.attr("rho", [0.0])[0], x)
    return best_class(node, scores, labels)


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def _pair_scores(node: OnnxNode, x: RelayExpr, counts: Sequence[int]) -> RelayExpr:
    """(rows, pairs of classes): positive where the first class of a pair wins.

    Row ``j - 1`` of the coefficients has those of the vectors of class ``i`` against class ``j``,
    row ``i`` those of class ``j`` against class ``i``.
    """
    total, classes = sum(counts), len(counts)
    vectors = np.array(node.attr("support_vectors"), "float32").reshape(total, -1)
    given = np.array(node.attr("coefficients"), "float32").reshape(classes - 1, total)
    starts = np.concatenate([[0], np.cumsum(counts)])
    weight = np.zeros((len(_pairs(classes)), total), "float32")
    for row, (i, j) in zip(weight, _pairs(classes), strict=True):
        for own, other in ((i, j - 1), (j, i)):
            part = slice(starts[own], starts[own + 1])
            row[part] = given[other, part]
    rho = np.array(node.attr("rho"), "float32")
    return _op.nn.dense(_kernel(node, x, vectors), constant(weight)) + constant(rho)


def _votes(scores: RelayExpr, classes: int) -> RelayExpr:
    """(rows, classes): how many pairs each class wins."""
    firsts = np.zeros((2, len(_pairs(classes)), classes), "float32")
    for row, pair in enumerate(_pairs(classes)):
        for side, winner in enumerate(pair):
            firsts[side, row, winner] = 1
    wins = _op.cast(_op.greater(scores, scalar_like(0.0, scores)), "float32")
    losses = scalar_like(1.0, wins) - wins
    return matmul(wins, constant(firsts[0])) + matmul(losses, constant(firsts[1]))


def _shares_of_pairs(node: OnnxNode, scores: RelayExpr, classes: int) -> RelayExpr:
    """(rows, classes): the shares p that fit the pairs' probabilities r best (Wu, Lin, Weng 2004).

    They minimise the sum of (r[j, i] p[i] - r[i, j] p[j])**2 over all pairs, adding up to one:
    a linear system with one more unknown.
    """
    slope, offset = [constant(node.attr(name), "float32") for name in ("prob_a", "prob_b")]
    first = _op.clip(_op.sigmoid(_op.negative(scores * slope + offset)), 1e-7, 1 - 1e-7)
    if classes == 2:
        return _op.concatenate([first, scalar_like(1.0, first) - first], 1)
    second = scalar_like(1.0, first) - first
    size = classes + 1
    squares = np.zeros((2, len(_pairs(classes)), size * size), "float32")
    products = np.zeros((len(_pairs(classes)), size * size), "float32")
    for row, (i, j) in enumerate(_pairs(classes)):
        squares[0, row, j * size + j] = squares[1, row, i * size + i] = 1
        products[row, [i * size + j, j * size + i]] = -1
    border = np.zeros((size, size), "float32")
    border[:classes, classes] = border[classes, :classes] = 1
    flat = matmul(first * first, constant(squares[0])) + matmul(
        second * second, constant(squares[1])
    )
    flat = flat + matmul(first * second, constant(products)) + constant(border.reshape(-1))
    solved = inverse(_op.reshape(flat, (-1, size, size)))
    last = _op.strided_slice(solved, [0, classes], [classes, size], axes=[1, 2])
    return _op.squeeze(last, [2])


@onnx_op(f"{_DOMAIN}.ZipMap")
def _zip_map(node: OnnxNode) -> RelayExpr:
    """The classes' scores side by side: maps have no type here, the classes' order is the node's."""
    names = node.attr("classlabels_int64s") or node.attr("classlabels_strings")
    if names is None:
        raise node.unsupported("a map without its keys")
    warnings.warn(
        f"ZipMap {node.name} gives no maps but a tensor: its columns are the classes {list(names)}",
        stacklevel=2,
    )
    return node[0]


# ---- preprocessing


onnx_ops({
    f"{_DOMAIN}.Binarizer": lambda x, threshold=0.0: _op.cast(
        _op.greater(x, scalar_like(threshold, x)), infer_dtype(x)
    ),
    f"{_DOMAIN}.Scaler": lambda x, *, offset, scale: (
        _as_float(x) - constant(offset, "float32")
    ) * constant(scale, "float32"),
    f"{_DOMAIN}.SVMClassifier": lambda node: named_classes(node, _svm_classes(node)),
    f"{_DOMAIN}.LinearRegressor": lambda x, targets=1, post_transform="NONE", *, node: transformed(
        node, _linear(node, x, targets), post_transform
    ),
})  # fmt: skip


@onnx_op(f"{_DOMAIN}.ArrayFeatureExtractor")
def _array_feature_extractor(x: RelayExpr, positions: RelayExpr) -> RelayExpr:
    rank = len(infer_shape(x))
    rows = _op.expand_dims(x, 0) if rank == 1 else x
    return _op.take(rows, _op.reshape(positions, (-1,)), max(rank - 1, 1))


@onnx_op(f"{_DOMAIN}.FeatureVectorizer")
def _feature_vectorizer(node: OnnxNode) -> RelayExpr:
    sizes = node.attr("inputdimensions")
    parts = []
    for i, size in enumerate(sizes):
        part = _op.reshape(_op.cast(node[i], "float32"), (node.shape(i)[0], -1))
        have = infer_shape(part)[1]
        kept = _op.strided_slice(part, [0], [min(have, size)], axes=[1])
        parts.append(_op.nn.pad(kept, [(0, 0), (0, size - have)]) if size > have else kept)
    return _op.concatenate(parts, 1)


@onnx_op(f"{_DOMAIN}.Imputer")
def _imputer(node: OnnxNode) -> RelayExpr:
    kind = "float" if node.dtype(0).startswith("float") else "int64"
    x, wanted = node[0], node.attr(f"replaced_value_{kind}", 0)
    values = constant(np.array(node.attr(f"imputed_value_{kind}s")), node.dtype(0))
    is_missing = _op.isnan(x) if np.isnan(wanted) else _op.equal(x, scalar_like(wanted, x))
    return _op.where(is_missing, values, x)


@onnx_op(f"{_DOMAIN}.Normalizer")
def _normalizer(x: RelayExpr, norm: str = "MAX") -> RelayExpr:
    x = _as_float(x)
    size = _op.max(x, [-1], True) if norm == "MAX" else p_norm(x, int(norm[1]), [-1], True)
    is_zero = _op.equal(size, scalar_like(0.0, x))
    return x / _op.where(is_zero, scalar_like(1.0, x), size)


@onnx_op(f"{_DOMAIN}.OneHotEncoder")
def _one_hot_encoder(node: OnnxNode) -> RelayExpr:
    if not node.attr("zeros", 1):
        raise node.unsupported("zeros = 0: values of no category are errors at run time")
    if (given := node.strings(0)) is not None:
        names = np.array(node.attr("cats_strings"), object)
        rows = np.array(given.table, object)[:, None] == names
        return _op.take(constant(rows.astype("float32")), given.indices, 0)
    categories = node.attr("cats_int64s")
    x = _op.expand_dims(_op.cast(node[0], "int64"), -1)
    return _op.cast(_op.equal(x, constant(categories, "int64")), "float32")


@onnx_op(f"{_DOMAIN}.LabelEncoder")
def _label_encoder(node: OnnxNode) -> Value:
    """Values by keys."""
    if node.opset < 2:
        names = np.array(node.attr("classes_strings"), object)
        numbers = np.arange(len(names))
        return _looked_up(node, *((names, numbers) if node.strings(0) else (numbers, names)))
    return _looked_up(node, _mapping(node, "keys"), _mapping(node, "values"))


@onnx_op(f"{_DOMAIN}.CategoryMapper")
def _category_mapper(node: OnnxNode) -> Value:
    """Strings by numbers, or numbers by strings."""
    names, numbers = np.array(node.attr("cats_strings"), object), np.array(node.attr("cats_int64s"))
    return _looked_up(node, *((names, numbers) if node.strings(0) else (numbers, names)))


def _looked_up(node: OnnxNode, keys: Array, values: Array) -> Value:
    """The values of the keys, those of the table where keys are strings."""
    default = _default(node, values.dtype)
    if values.dtype.kind == "O":
        table, positions = np.unique([*values.astype(str), str(default)], return_inverse=True)
        found = _looked_up_numbers(node, keys, positions[:-1], positions[-1])
        return StringTensor(tuple(table.tolist()), found)
    return _looked_up_numbers(node, keys, values, default)


def _looked_up_numbers(node: OnnxNode, keys: Array, values: Array, default: Any) -> RelayExpr:
    if (given := node.strings(0)) is not None:
        by_key = dict(zip(keys.astype(str).tolist(), values, strict=True))
        numbers = np.array([by_key.get(text, default) for text in given.table], values.dtype)
        return _op.take(constant(numbers), given.indices, 0)
    # sorted to be searched
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    x = _op.cast(node[0], str(keys.dtype))
    at = _op.searchsorted(constant(keys[~np.isnan(keys)]), x, dtype="int32")
    at = _op.minimum(at, constant(len(keys) - 1, "int32"))
    is_key = _op.equal(_op.take(constant(keys), at, 0), x)
    result = _op.where(
        is_key, _op.take(constant(values), at, 0), constant(default, str(values.dtype))
    )
    if np.isnan(keys).any():  # sorted to the end
        result = _op.where(_op.isnan(x), constant(values[-1]), result)
    return result


def _mapping(node: OnnxNode, name: str) -> Array:
    if (tensor := node.attr(f"{name}_tensor")) is not None:
        return np.asarray(tensor).reshape(-1)
    for kind, dtype in (("int64s", "int64"), ("floats", "float32"), ("strings", object)):
        if (found := node.attr(f"{name}_{kind}")) is not None:
            return np.array(found, dtype)
    raise node.unsupported(f"a table without {name}")


def _default(node: OnnxNode, dtype: Any) -> Array:
    if (tensor := node.attr("default_tensor")) is not None:
        return np.asarray(tensor, dtype).reshape(())
    if dtype.kind == "O":
        return np.asarray(node.attr("default_string", "_Unused"), object)
    is_integer = dtype.kind == "i"
    found = node.attr("default_int64", -1) if is_integer else node.attr("default_float", -0.0)
    return np.asarray(found, dtype)

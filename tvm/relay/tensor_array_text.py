"""The definitions of tensor arrays: lists of tensors whose ranks are known at run time only.

`dynamic_text("float32")` has a data type with one constructor a rank; `static_text` one whose
tensors have all the same, partly known shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

MAX_RANK = 6


def tensor_text(shape: Sequence[object], dtype: str) -> str:
    """A tensor type in the text form; a scalar is written by its dtype."""
    if not shape:
        return dtype
    comma = "," if len(shape) == 1 else ""
    return f"Tensor[({', '.join([str(dim) for dim in shape])}{comma}), {dtype}]"


def dynamic_text(dtype: str) -> str:
    """All definitions for one dtype."""
    ranks = range(MAX_RANK + 1)
    fields = [f"  tensor{n}_{dtype}({tensor_text('?' * n, dtype)})," for n in ranks]
    parts = [
        f"type tensor_{dtype}_t {{\n  tensor_nil_{dtype},\n" + "\n".join(fields) + "\n}",
        _by_rank("tensor_take", "%lower: int32, %upper: int32", dtype, 0, _TAKE),
        _by_rank("tensor_expand_dims", "", dtype, 1, "expand_dims(%t, axis=0)"),
        _concatenate(dtype),
        *[_unstack(n, dtype) for n in ranks[1:]],
        _DYNAMIC.substitute(d=dtype),
    ]
    return "\n".join(parts)


_TAKE = 'take(%t, arange(%lower, %upper, 1, step=1, dtype="int32"), axis=0)'


def _by_rank(name: str, params: str, dtype: str, more: int, value: str) -> str:
    """A function that does the same for tensors of each rank; `more` axes than before."""
    first = 0 if more else 1
    clauses = [
        f"    tensor{n}_{dtype}(%t) => tensor{n + more}_{dtype}({value}),"
        for n in range(first, MAX_RANK + 1 - more)
    ]
    comma = f", {params}" if params else ""
    head = f"def @{name}_{dtype}(%x: tensor_{dtype}_t{comma}) -> tensor_{dtype}_t {{"
    return "\n".join([head, "  match? (%x) {", *clauses, "  }", "}"])


def _concatenate(dtype: str) -> str:
    clauses = [
        f"    (tensor{n}_{dtype}(%a), tensor{n}_{dtype}(%b)) => "
        f"tensor{n}_{dtype}(concatenate((%a, %b), axis=0)),"
        for n in range(1, MAX_RANK + 1)
    ]
    tensor = f"tensor_{dtype}_t"
    head = f"def @tensor_concatenate_{dtype}(%x: {tensor}, %y: {tensor}) -> {tensor} {{"
    return "\n".join([head, "  match? (%x, %y) {", *clauses, "  }", "}"])


def _unstack(rank: int, dtype: str) -> str:
    return _UNSTACK.substitute(
        name=f"tensor_array_unstack_tensor{rank}",
        d=dtype,
        tensor=tensor_text("?" * rank, dtype),
        inner=f"tensor{rank - 1}_{dtype}",
        list=f"List[tensor_{dtype}_t]",
    )


_UNSTACK = Template("""
def @${name}_helper_$d(%i: int32, %up: int32, %t: $tensor) -> $list {
  if (%i == %up) {
    Nil
  } else {
    Cons($inner(take(%t, %i, axis=0)), @${name}_helper_$d(%i + 1, %up, %t))
  }
}
def @${name}_$d(%t: $tensor) -> $list {
  @${name}_helper_$d(0, take(shape_of(%t), 0, axis=0), %t)
}
""")

_DYNAMIC = Template("""
def @tensor_array_$d(%size: int32) -> List[tensor_${d}_t] {
  if (%size == 0) {
    Nil
  } else {
    Cons(tensor_nil_$d, @tensor_array_$d(%size - 1))
  }
}
def @tensor_array_read_$d(%xs: List[tensor_${d}_t], %n: int32) -> tensor_${d}_t {
  @nth(%xs, %n)
}
def @tensor_array_write_$d(%xs: List[tensor_${d}_t], %n: int32, %v: tensor_${d}_t) -> List[tensor_${d}_t] {
  @update(%xs, %n, %v)
}
def @tensor_array_scatter_helper_$d(%xs: List[tensor_${d}_t], %current: int32, %limit: int32, %where: Tensor[(?,), int32], %values: List[tensor_${d}_t]) -> List[tensor_${d}_t] {
  if (%current == %limit) {
    %xs
  } else {
    let %next = @tensor_array_write_$d(%xs, take(%where, %current, axis=0), @nth(%values, %current));
    @tensor_array_scatter_helper_$d(%next, %current + 1, %limit, %where, %values)
  }
}
def @tensor_array_scatter_$d(%xs: List[tensor_${d}_t], %where: Tensor[(?,), int32], %values: List[tensor_${d}_t]) -> List[tensor_${d}_t] {
  @tensor_array_scatter_helper_$d(%xs, 0, take(shape_of(%where), 0, axis=0), %where, %values)
}
def @tensor_array_split_helper_$d(%x: tensor_${d}_t, %start: int32, %current: int32, %limit: int32, %lengths: Tensor[(?,), int32]) -> List[tensor_${d}_t] {
  if (%current == %limit) {
    Nil
  } else {
    let %stop = %start + take(%lengths, %current, axis=0);
    Cons(@tensor_take_$d(%x, %start, %stop), @tensor_array_split_helper_$d(%x, %stop, %current + 1, %limit, %lengths))
  }
}
def @tensor_array_split_$d(%xs: List[tensor_${d}_t], %x: tensor_${d}_t, %lengths: Tensor[(?,), int32]) -> List[tensor_${d}_t] {
  @tensor_array_split_helper_$d(%x, 0, 0, take(shape_of(%lengths), 0, axis=0), %lengths)
}
def @tensor_array_concat_$d(%xs: List[tensor_${d}_t]) -> tensor_${d}_t {
  match (%xs) {
    Cons(%x, Nil) => %x,
    Cons(%x, %rest) => @tensor_concatenate_$d(%x, @tensor_array_concat_$d(%rest)),
    Nil => tensor_nil_$d,
  }
}
def @tensor_array_stack_$d(%xs: List[tensor_${d}_t]) -> tensor_${d}_t {
  let %grown = @map(@tensor_expand_dims_$d, %xs);
  @foldl(@tensor_concatenate_$d, @hd(%grown), @tl(%grown))
}
def @tensor_array_gather_helper_$d(%xs: List[tensor_${d}_t], %done: List[tensor_${d}_t], %current: int32, %limit: int32, %where: Tensor[(?,), int32]) -> List[tensor_${d}_t] {
  if (%current == 0) {
    %done
  } else {
    let %x = @tensor_array_read_$d(%xs, take(%where, %current - 1, axis=0));
    @tensor_array_gather_helper_$d(%xs, Cons(%x, %done), %current - 1, %limit, %where)
  }
}
def @tensor_array_gather_$d(%xs: List[tensor_${d}_t], %where: Tensor[(?,), int32]) -> tensor_${d}_t {
  let %count = take(shape_of(%where), 0, axis=0);
  @tensor_array_stack_$d(@tensor_array_gather_helper_$d(%xs, Nil, %count, %count, %where))
}
""")


def static_suffix(dtype: str, shape: Sequence[object]) -> str:
    """What the names for tensors of one shape end in."""
    dims = "_".join(["any" if dim == "?" else str(dim) for dim in shape])
    return f"{dtype}_{dims or 'scalar'}"


def static_text(dtype: str, shape: Sequence[object]) -> str:
    """The type of tensors of one shape, and the functions that stay with it."""
    return _STATIC.substitute(
        n=static_suffix(dtype, shape),
        tensor=tensor_text(shape, dtype),
        stacked=tensor_text(("?", *shape), dtype),
    )


def static_shapes(shape: Sequence[object]) -> list[tuple[object, ...]]:
    """The shapes whose types `static_joined_text` names."""
    rows = [("?", *shape[1:])] if shape else []
    return [tuple(shape), ("?", *shape), (1, *shape), *rows]


def static_joined_text(dtype: str, shape: Sequence[object]) -> str:
    """The functions from tensors of one shape to those of others."""
    own, stacked, grown, *rows = [static_suffix(dtype, s) for s in static_shapes(shape)]
    text = _STATIC_JOINED.substitute(n=own, s=stacked, g=grown)
    if rows:
        text += _STATIC_ROWS.substitute(n=own, o=rows[0])
        text += static_split_text(dtype, shape, shape)
    return text


def static_split_text(dtype: str, shape: Sequence[object], value: Sequence[object]) -> str:
    """The function that splits a tensor of the shape `value` into rows."""
    rows = static_suffix(dtype, ("?", *shape[1:]))
    return _STATIC_SPLIT.substitute(
        n=static_suffix(dtype, shape), o=rows, v=static_suffix(dtype, value),
        tensor=tensor_text(value, dtype),
    )  # fmt: skip


_STATIC = Template("""
type static_tensor_${n}_t {
  tensor_nil_$n,
  tensor_constructor_$n($tensor),
}
def @tensor_get_data_$n(%x: static_tensor_${n}_t) -> $tensor {
  match? (%x) {
    tensor_constructor_$n(%data) => %data,
  }
}
def @tensor_array_$n(%size: int32) -> List[static_tensor_${n}_t] {
  if (%size == 0) {
    Nil
  } else {
    Cons(tensor_nil_$n, @tensor_array_$n(%size - 1))
  }
}
def @tensor_array_read_$n(%xs: List[static_tensor_${n}_t], %n: int32) -> static_tensor_${n}_t {
  @nth(%xs, %n)
}
def @tensor_array_write_$n(%xs: List[static_tensor_${n}_t], %n: int32, %v: static_tensor_${n}_t) -> List[static_tensor_${n}_t] {
  @update(%xs, %n, %v)
}
def @tensor_array_unstack_helper_$n(%i: int32, %up: int32, %data: $stacked) -> List[static_tensor_${n}_t] {
  if (%i == %up) {
    Nil
  } else {
    Cons(tensor_constructor_$n(take(%data, %i, axis=0)), @tensor_array_unstack_helper_$n(%i + 1, %up, %data))
  }
}
def @tensor_array_unstack_$n(%data: $stacked) -> List[static_tensor_${n}_t] {
  @tensor_array_unstack_helper_$n(0, take(shape_of(%data), 0, axis=0), %data)
}
def @tensor_array_scatter_helper_$n(%xs: List[static_tensor_${n}_t], %current: int32, %limit: int32, %where: Tensor[(?,), int32], %values: List[static_tensor_${n}_t]) -> List[static_tensor_${n}_t] {
  if (%current == %limit) {
    %xs
  } else {
    let %next = @update(%xs, take(%where, %current, axis=0), @nth(%values, %current));
    @tensor_array_scatter_helper_$n(%next, %current + 1, %limit, %where, %values)
  }
}
def @tensor_array_scatter_$n(%xs: List[static_tensor_${n}_t], %where: Tensor[(?,), int32], %values: List[static_tensor_${n}_t]) -> List[static_tensor_${n}_t] {
  @tensor_array_scatter_helper_$n(%xs, 0, take(shape_of(%where), 0, axis=0), %where, %values)
}
""")

_STATIC_JOINED = Template("""
def @tensor_expand_dims_$n(%x: static_tensor_${n}_t) -> static_tensor_${g}_t {
  tensor_constructor_$g(expand_dims(@tensor_get_data_$n(%x), axis=0))
}
def @tensor_array_stack_$n(%xs: List[static_tensor_${n}_t]) -> static_tensor_${s}_t {
  match? (%xs) {
    Cons(%x, Nil) => tensor_constructor_$s(expand_dims(@tensor_get_data_$n(%x), axis=0)),
    Cons(%x, %rest) => tensor_constructor_$s(concatenate((expand_dims(@tensor_get_data_$n(%x), axis=0), @tensor_get_data_$s(@tensor_array_stack_$n(%rest))), axis=0)),
  }
}
def @tensor_array_gather_$n(%xs: List[static_tensor_${n}_t], %where: Tensor[(?,), int32]) -> static_tensor_${s}_t {
  tensor_constructor_$s(take(@tensor_get_data_$s(@tensor_array_stack_$n(%xs)), %where, axis=0))
}
""")

_STATIC_ROWS = Template("""
def @tensor_take_$n(%x: static_tensor_${n}_t, %lower: int32, %upper: int32) -> static_tensor_${o}_t {
  tensor_constructor_$o(take(@tensor_get_data_$n(%x), arange(%lower, %upper, 1, step=1, dtype="int32"), axis=0))
}
def @tensor_concatenate_$n(%x: static_tensor_${n}_t, %y: static_tensor_${n}_t) -> static_tensor_${o}_t {
  tensor_constructor_$o(concatenate((@tensor_get_data_$n(%x), @tensor_get_data_$n(%y)), axis=0))
}
def @tensor_array_concat_$n(%xs: List[static_tensor_${n}_t]) -> static_tensor_${o}_t {
  match? (%xs) {
    Cons(%x, Nil) => tensor_constructor_$o(@tensor_get_data_$n(%x)),
    Cons(%x, %rest) => tensor_constructor_$o(concatenate((@tensor_get_data_$n(%x), @tensor_get_data_$o(@tensor_array_concat_$n(%rest))), axis=0)),
  }
}
""")

_STATIC_SPLIT = Template("""
def @tensor_array_split_helper_$n(%data: $tensor, %start: int32, %current: int32, %limit: int32, %lengths: Tensor[(?,), int32]) -> List[static_tensor_${o}_t] {
  if (%current == %limit) {
    Nil
  } else {
    let %stop = %start + take(%lengths, %current, axis=0);
    Cons(tensor_constructor_$o(take(%data, arange(%start, %stop, 1, step=1, dtype="int32"), axis=0)), @tensor_array_split_helper_$n(%data, %stop, %current + 1, %limit, %lengths))
  }
}
def @tensor_array_split_$n(%xs: List[static_tensor_${o}_t], %x: static_tensor_${v}_t, %lengths: Tensor[(?,), int32]) -> List[static_tensor_${o}_t] {
  @tensor_array_split_helper_$n(@tensor_get_data_$v(%x), 0, 0, take(shape_of(%lengths), 0, axis=0), %lengths)
}
""")

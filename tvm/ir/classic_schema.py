"""What the JSON of classic releases says of nodes: the reader and the writer follow it.

The value of every attribute is a text: a number, a name, or the number of a node, 0 standing for none.
Which one it is follows from the annotation of the field of the node's class.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

# Python's values, which are nodes there
BOXES: dict[str, tuple[type, Callable[[str], Any]]] = {
    "runtime.BoxInt": (int, int),
    "runtime.BoxFloat": (float, float),
    "runtime.BoxBool": (bool, lambda text: bool(int(text))),
}

# numbers of operators that are nodes in classic JSON, and no optional ones
NODES_OF_NUMBERS = {
    f"relay.attrs.{name}Attrs": fields.split()
    for name, fields in {
        "DFT": "inverse",
        "Gather": "axis",
        "GatherND": "batch_dims",
        "Multinomial": "num_samples",
        "Repeat": "repeats axis",
        "Reverse": "axis",
        "ReverseSequence": "seq_axis batch_axis",
        "Scanop": "exclusive",
        "ScatterElements": "axis",
        "Stack": "axis",
        "Take": "batch_dims",
        "Topk": "k",
        "YoloReorg": "stride",
    }.items()
}

_BINARY = "Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or"
# the attributes of release 0.18, which reads no node that lacks one
_ATTRIBUTES: dict[str, str] = {
    "IntImm FloatImm": "dtype value span",
    "Range": "min extent span",
    "PrimType": "dtype",
    "PointerType": "element_type storage_scope",
    "TupleType": "fields span",
    "FuncType": "arg_types type_params ret_type type_constraints span",
    "IncompleteType": "kind span",
    "SourceName": "",
    "Span": "source_name line column end_line end_column",
    "tir.Var tir.SizeVar": "dtype name type_annotation span",
    "tir.StringImm tir.Cast": "dtype value span",
    " ".join([f"tir.{name}" for name in _BINARY.split()]): "dtype a b span",
    "tir.Not": "dtype a span",
    "tir.Select": "dtype condition true_value false_value span",
    "tir.BufferLoad": "dtype buffer indices predicate span",
    "tir.Ramp": "dtype base stride lanes span",
    "tir.Broadcast": "dtype value lanes span",
    "tir.Let": "dtype var value body span",
    "tir.Call": "dtype op args span",
    "tir.Shuffle": "dtype vectors indices span",
    "tir.CommReducer": "lhs rhs result identity_element span",
    "tir.Reduce": "dtype combiner source init axis condition value_index span",
    "tir.Any": "dtype span",
    "tir.LetStmt": "var value body span",
    "tir.AttrStmt": "node attr_key value body span",
    "tir.AssertStmt": "condition message body span",
    "tir.BufferStore": "buffer value indices predicate span",
    "tir.BufferRealize": "buffer bounds condition body span",
    "tir.Allocate": "buffer_var dtype extents condition body annotations span",
    "tir.DeclBuffer": "buffer body span",
    "tir.SeqStmt": "seq span",
    "tir.IfThenElse": "condition then_case else_case span",
    "tir.Evaluate": "value span",
    "tir.For": "loop_var min extent kind body thread_binding annotations span",
    "tir.While": "condition body span",
    "tir.Prefetch": "buffer bounds span",
    "tir.BufferRegion": "buffer region",
    "tir.MatchBufferRegion": "buffer source",
    "tir.Block": "iter_vars reads writes name_hint body init alloc_buffers match_buffers annotations",
    "tir.BlockRealize": "iter_values predicate block",
    "tir.IterVar": "dom var iter_type thread_tag span",
    "tir.Buffer": "data dtype shape strides axis_separators elem_offset name data_alignment "
    "offset_factor buffer_type span",
    "tir.PrimFunc": "params body ret_type buffer_map attrs span",
    "tir.IndexMap": "initial_indices final_indices inverse_index_map",
    "GlobalVar": "name_hint span",
    "relay.TensorType": "shape dtype span",
    "relay.TypeVar GlobalTypeVar": "name_hint kind span",
    "relay.RefType": "value span",
    "relay.Constant": "data span",
    "relay.Tuple": "fields span",
    "relay.Var": "type_annotation span",
    "relay.Call": "op args attrs type_args span",
    "relay.Let": "var value body span",
    "relay.If": "cond true_branch false_branch span",
    "relay.TupleGetItem": "tuple_value index span",
    "relay.RefCreate": "value span",
    "relay.RefRead": "ref span",
    "relay.RefWrite": "ref value span",
    "relay.Function": "params body ret_type type_params attrs span",
}
# attributes of operators that hold no text, and nothing that our operators do not have
_OPERATORS = {
    "Cast CastHint": "dtype",
    "ExpandDims": "axis num_newaxis",
    "Concatenate Softmax BiasAdd PRelu Stack Reverse Gather": "axis",
    "Transpose": "axes",
    "Reshape": "newshape allowzero",
    "ReshapeLike": "lhs_begin lhs_end rhs_begin rhs_end",
    "Squeeze": "axis",
    "SliceLike": "axes",
    "Tile": "reps",
    "Repeat": "repeats axis",
    "GatherND": "batch_dims index_rank",
    "Reduce": "axis keepdims exclude",
    "ArgReduce": "axis keepdims select_last_index exclude",
    "Variance": "axis keepdims exclude unbiased",
    "Clip": "a_min a_max",
    "BatchNorm LayerNorm InstanceNorm": "axis epsilon center scale",
    "GroupNorm": "num_groups axis epsilon center scale",
    "LeakyRelu": "alpha",
    "Dropout": "rate",
    "LRN": "size axis bias alpha beta",
    "L2Normalize": "eps axis",
    "OneHot": "depth axis dtype",
    "InitOp": "shape dtype",
}
CLASSIC_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    key: tuple(names.split()) for keys, names in _ATTRIBUTES.items() for key in keys.split()
} | {
    f"relay.attrs.{name}Attrs": tuple(names.split())
    for keys, names in _OPERATORS.items()
    for name in keys.split()
}
# what is found again by whoever asks for it: types by inference, devices by planning
FOUND_AGAIN = ("_checked_type_", "virtual_device_", "struct_info_")


def enumeration_of(cls: type[Any], kind: str) -> type[Enum] | None:
    """The enumeration that an annotation names, seen from the class that has the field."""
    for base in cls.__mro__:
        found = in_module_of(base, kind) if kind.isidentifier() else None
        if isinstance(found, type):
            return found if issubclass(found, Enum) else None
    return None


def in_module_of(cls: type[Any], name: str) -> Any:
    """What a name stands for where a class is defined."""
    return getattr(sys.modules[cls.__module__], name, None)


def member_of(enumeration: type[Enum], number: int) -> Enum:
    """The member that a number stands for."""
    members = list(enumeration)
    if isinstance(members[0].value, int):
        return enumeration(number)
    return members[number]


def number_of(member: Enum) -> int:
    """The number that stands for a member."""
    return member.value if isinstance(member.value, int) else list(type(member)).index(member)


def is_plain(kind: str) -> bool:
    """Whether numbers of a field are Python's."""
    return bool(re.fullmatch(r"(tuple\[)?(int|float|bool)\b.*", kind))

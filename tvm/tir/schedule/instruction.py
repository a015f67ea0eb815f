"""Steps of a schedule as data: the primitive, what it was applied to, what came of it.

The table lists, for each kind, the method of `Schedule` that it calls and the parameters that are inputs
(loops, blocks, numbers) and attributes (all else).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.error import TVMError, or_similar
from tvm.ir.expr import PrimExpr
from tvm.runtime.object import Object
from tvm.tir.expr import FloatImm, IntImm, StringImm, Var
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt_functor import substitute

from .random_variables import BlockRV, LoopRV

RandomVariable = (BlockRV, LoopRV, Var)


@dataclass(frozen=True, eq=False)
class InstructionKind(Object):
    """A kind of instruction.

    Attributes
    ----------
    name : str
        The name in traces, such as ``"Split"``.
    method : str
        The method of ``Schedule`` that it stands for.
    inputs : tuple of str
        The method's parameters that are inputs. The last one takes the rest of them if its name starts
        with ``*``; then it is a list, or with ``**`` the method's positional arguments.
    attrs : tuple of str
        The method's parameters that are attributes.
    is_pure : bool
        Whether it leaves the program as it is.
    samples : bool
        Whether it takes a decision.
    """

    name: str
    method: str
    inputs: tuple[str, ...]
    attrs: tuple[str, ...]
    is_pure: bool = False
    samples: bool = False

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind of a name."""
        found = KINDS.get(name)
        if found is None:
            raise TVMError(f"no kind of instruction is called {name!r}{or_similar(name, KINDS)}")
        return found

    def arguments(
        self, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the method, by position and by name."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        rest = list(inputs)
        for parameter in self.inputs:
            if parameter.startswith("**"):
                positional, rest = rest, []
            elif parameter.startswith("*"):
                named[parameter[1:]], rest = rest, []
            else:
                named[parameter] = rest.pop(0)
        for name, value in zip(self.attrs, attrs, strict=True):
            named[name] = bool(value) if name in _FLAGS else value
        if "buffer_index_type" in named:
            kind, index = named.pop("buffer_index_type"), named.pop("buffer_index")
            named = {**_before_index_map(named), "buffer": (kind, index), **named}
        if self.samples and decision is not None:
            named["decision"] = decision
        return positional, named

    def apply(
        self, sch: Any, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any
    ) -> list[Any]:
        """Call the method of a schedule; the result is the list of its outputs."""
        positional, named = self.arguments(inputs, attrs, decision)
        result = getattr(sch, self.method)(*positional, **named)
        if result is None:
            return []
        return list(result) if isinstance(result, (list, tuple)) else [result]


def _before_index_map(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if name == "block"}


class Instruction(Object):
    """One step of a schedule.

    Parameters
    ----------
    kind : InstructionKind
        What is done.
    inputs : list
        The loops, blocks and numbers that it is done to.
    attrs : list
        The other arguments.
    outputs : list
        The loops, blocks and numbers that come of it.
    """

    def __init__(
        self,
        kind: InstructionKind,
        inputs: Sequence[Any],
        attrs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        self.kind = kind
        self.inputs = list(inputs)
        self.attrs = list(attrs)
        self.outputs = list(outputs)

    def __str__(self) -> str:
        return self.as_python(lambda _: "_", None)

    __repr__ = __str__

    def as_python(self, name: Callable[[Any], str], decision: Any) -> str:
        """The call, with random variables by their names."""
        positional, named = self.kind.arguments(self.inputs, self.attrs, decision)
        texts = [_text(value, name) for value in positional]
        texts += [
            f"{key}={_text(value, name)}"
            for key, value in named.items()
            if not (key == "consumer_blocks" and not value)
        ]
        call = f"sch.{self.kind.method}({', '.join(texts)})"
        if not self.outputs:
            return call
        targets = ", ".join([name(output) for output in self.outputs])
        if len(self.outputs) == 1 and self.kind.name in _RETURN_LISTS:
            targets += ","
        return f"{targets} = {call}"


def _text(value: Any, name: Callable[[Any], str]) -> str:
    if isinstance(value, RandomVariable):
        return name(value)
    if isinstance(value, (IntImm, FloatImm)):
        return str(bool(value.value)) if value.dtype.is_bool else str(value.value)
    if isinstance(value, (str, StringImm)):
        text = value if isinstance(value, str) else value.value
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, (list, tuple)):
        items = ", ".join([_text(item, name) for item in value])
        if isinstance(value, tuple):
            return f"({items},)" if len(value) == 1 else f"({items})"
        return f"[{items}]"
    if isinstance(value, Mapping):
        items = ", ".join([f"{_text(k, name)}: {_text(v, name)}" for k, v in value.items()])
        return f"{{{items}}}"
    if isinstance(value, IndexMap):
        return _lambda_text(value, name)
    return str(value)


def _lambda_text(index_map: IndexMap, name: Callable[[Any], str]) -> str:
    """The function of an index map: each variable by a name of its own."""
    taken: dict[str, None] = {}
    renamed: dict[Var, PrimExpr] = {}
    for var in index_map.initial_indices:
        base = text = var.name
        count = 0
        while text in taken:
            count += 1
            text = f"{base}_{count}"
        taken[text] = None
        renamed[var] = var.replace(name=text)
    for var in _free_variables(index_map):
        renamed[var] = var.replace(name=name(var))
    results = [str(substitute(index, renamed)) for index in index_map.final_indices]
    body = f"({', '.join(results)}{',' if len(results) == 1 else ''})"
    return f"lambda {', '.join(taken)}: {body}"


def _free_variables(index_map: IndexMap) -> list[Var]:
    own = dict.fromkeys(index_map.initial_indices)
    return [var for var in variables_in(index_map.final_indices) if var not in own]


def variables_in(value: Any) -> list[Any]:
    """The random variables in an input: itself, in a list, in an expression or an index map."""
    if isinstance(value, RandomVariable):
        return [value]
    if isinstance(value, (list, tuple)):
        return [var for item in value for var in variables_in(item)]
    if isinstance(value, Mapping):
        return [var for item in value.values() for var in variables_in(item)]
    if isinstance(value, IndexMap):
        return _free_variables(value)
    if isinstance(value, PrimExpr):
        return [var for child in value.children() for var in variables_in(child)]
    return []


def replace_variables(value: Any, mapping: Mapping[Any, Any]) -> Any:
    """An input with random variables replaced by what they are now."""
    if isinstance(value, RandomVariable):
        return mapping.get(value, value)
    if isinstance(value, (list, tuple)):
        return [replace_variables(item, mapping) for item in value]
    if isinstance(value, Mapping):
        return {key: replace_variables(item, mapping) for key, item in value.items()}
    if isinstance(value, IndexMap):
        if not (free := [var for var in _free_variables(value) if var in mapping]):
            return value
        numbers = {var: mapping[var] for var in free}
        return value.replace(
            final_indices=tuple([substitute(e, numbers) for e in value.final_indices])
        )
    if isinstance(value, PrimExpr) and (found := variables_in(value)):
        return substitute(value, {var: mapping[var] for var in found if var in mapping})
    return value


_RETURN_LISTS = frozenset(
    ["GetLoops", "GetChildBlocks", "GetProducers", "GetConsumers", "GetOutputBlocks", "Split",
     "SamplePerfectTile", "SamplePartitionedTile", "LoopPartition", "CacheIndex", "CacheInplace"]
)  # fmt: skip

# attributes that are truth values; JSON has them as numbers
_FLAGS = frozenset(
    ["preserve_unit_iters", "preserve_unit_loops", "disable_predication",
     "assume_injective_transform"]
)  # fmt: skip
_BUFFER = ("buffer_index", "buffer_index_type")
# name, method, inputs, attributes; pure ones leave the program as it is
_PURE = (
    ("GetBlock", "get_block", "", "name func_name"),
    ("GetLoops", "get_loops", "block", ""),
    ("GetChildBlocks", "get_child_blocks", "block_or_loop", ""),
    ("GetProducers", "get_producers", "block", ""),
    ("GetConsumers", "get_consumers", "block", ""),
    ("GetOutputBlocks", "get_output_blocks", "scope_block", ""),
)
_SAMPLING = (
    ("SampleCategorical", "sample_categorical", "", "candidates probs"),
    ("SamplePerfectTile", "sample_perfect_tile", "loop", "n max_innermost_factor"),
    ("SamplePartitionedTile", "sample_partitioned_tile", "loop",
     "n partition_pos innerpart_factor"),
    ("SampleComputeLocation", "sample_compute_location", "block", ""),
)  # fmt: skip
_CHANGING = (
    ("EnterPostproc", "enter_postproc", "", ""),
    ("Merge", "merge", "**loops", ""),
    ("Fuse", "fuse", "**loops", "preserve_unit_iters"),
    ("Split", "split", "loop *factors", "preserve_unit_iters disable_predication"),
    ("LoopPartition", "loop_partition", "loop *factors", "preserve_unit_iters"),
    ("Reorder", "reorder", "**ordered_loops", ""),
    ("ReorderBlockIterVar", "reorder_block_iter_var", "block", "new_order"),
    ("AddUnitLoop", "add_unit_loop", "block_or_loop", ""),
    ("Parallel", "parallel", "loop", ""),
    ("Vectorize", "vectorize", "loop", ""),
    ("Bind", "bind", "loop", "thread_axis"),
    ("Unroll", "unroll", "loop", ""),
    ("CacheRead", "cache_read", "block consumer_blocks", "read_buffer_index storage_scope"),
    ("CacheWrite", "cache_write", "block consumer_blocks", "write_buffer_index storage_scope"),
    ("ReindexCacheRead", "reindex_cache_read", "block index_map",
     "read_buffer_index storage_scope"),
    ("ReindexCacheWrite", "reindex_cache_write", "block index_map",
     "write_buffer_index storage_scope"),
    ("CacheInplace", "cache_inplace", "block", "read_buffer_index storage_scope"),
    ("CacheIndex", "cache_index", "block", "storage_scope cse_thresh"),
    ("Reindex", "reindex", "block", " ".join(_BUFFER)),
    ("ReadAt", "read_at", "loop block", "read_buffer_index storage_scope"),
    ("WriteAt", "write_at", "loop block", "write_buffer_index storage_scope"),
    ("ComputeAt", "compute_at", "block loop", "preserve_unit_loops index"),
    ("ReverseComputeAt", "reverse_compute_at", "block loop", "preserve_unit_loops index"),
    ("ComputeInline", "compute_inline", "block", ""),
    ("ReverseComputeInline", "reverse_compute_inline", "block", ""),
    ("DecomposeReduction", "decompose_reduction", "block loop", ""),
    ("RFactor", "rfactor", "loop", "factor_axis"),
    ("StorageAlign", "storage_align", "block", "buffer_index axis factor offset"),
    ("SetScope", "set_scope", "block", "buffer_index storage_scope"),
    ("UnsafeSetDType", "unsafe_set_dtype", "block", "buffer_index dtype"),
    ("Blockize", "blockize", "target", "preserve_unit_iters"),
    ("Tensorize", "tensorize", "block_or_loop", "tensor_intrin preserve_unit_iters"),
    ("Annotate", "annotate", "block_or_loop ann_val", "ann_key"),
    ("Unannotate", "unannotate", "block_or_loop", "ann_key"),
    ("TransformLayout", "transform_layout", "block index_map",
     f"{' '.join(_BUFFER)} pad_value assume_injective_transform"),
    ("TransformBlockLayout", "transform_block_layout", "block", "index_map"),
    ("SetAxisSeparator", "set_axis_separator", "block", f"{' '.join(_BUFFER)} axis_separators"),
    ("DecomposePadding", "decompose_padding", "block loop", ""),
    ("PadEinsum", "pad_einsum", "block", "padding"),
    ("RollingBuffer", "rolling_buffer", "block", "write_buffer_index"),
    ("UnsafeHideBufferAccess", "unsafe_hide_buffer_access", "block", "buf_type buf_index_array"),
    ("AnnotateBufferAccess", "annotate_buffer_access", "block",
     "buffer_index buf_type gen_new_ranges"),
)  # fmt: skip

KINDS: dict[str, InstructionKind] = {
    name: InstructionKind(
        name,
        method,
        tuple(inputs.split()),
        tuple(attrs.split()),
        rows is not _CHANGING,
        rows is _SAMPLING,
    )
    for rows in (_PURE, _SAMPLING, _CHANGING)
    for name, method, inputs, attrs in rows
}

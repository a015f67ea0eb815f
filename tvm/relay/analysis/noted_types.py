"""What type inference notes at calls of operators, and finds at copies of them.

add(%x, %y)    ->    add(%z, %y)    where %x and %z are of one type: so are the calls
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, InferredTypes
from tvm.tir.expr import IntImm

# calls are made before the types are known
_NOTE_TYPE_ARGS: Callable[[Call, InferredTypes], None] = Call.__dict__["type_args"].__set__


def note_arguments(call: Call, arg_types: Sequence[Type]) -> InferredTypes:
    """Note the types of a call's arguments; the result is to be noted with them."""
    noted = InferredTypes(arg_types)
    _NOTE_TYPE_ARGS(call, noted)
    return noted


def noted_result(call: Call, relation: object, arg_types: Sequence[Type]) -> Type | None:
    """The result of the call that this one is a copy of, if its arguments were of the same types.

    It is the very same type, so that calls of this one have theirs as fast.
    """
    noted = call.type_args
    if type(noted) is not InferredTypes or noted.found is None or len(noted) != len(arg_types):
        return None
    noted_relation, attrs, found = noted.found
    if noted_relation is not relation or attrs is not call.attrs:
        return None
    for before, now in zip(noted, arg_types, strict=True):
        if before is not now and not _is_same_tensor(before, now):
            return None
    return found


def _is_same_tensor(a: Type, b: Type) -> bool:
    """Whether both are the same tensor type of known extents."""
    if type(a) is not TensorType or type(b) is not TensorType or a.dtype is not b.dtype:
        return False
    if len(a.shape) != len(b.shape):
        return False
    for x, y in zip(a.shape, b.shape, strict=True):
        if x is not y and not (
            type(x) is IntImm and type(y) is IntImm and x.value == y.value and x.dtype is y.dtype
        ):
            return False
    return True

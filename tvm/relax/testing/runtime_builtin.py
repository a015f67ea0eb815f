"""The codes of the machine's functions on shapes."""

from enum import IntEnum


class MatchShapeCode(IntEnum):
    """What ``vm.builtin.match_shape`` does with an axis."""

    ASSERT_EQUAL_TO_IMM = 0
    STORE_TO_HEAP = 1
    NO_OP = 2
    ASSERT_EQUAL_TO_LOAD = 3


class MakeShapeCode(IntEnum):
    """Where ``vm.builtin.make_shape`` takes an axis from."""

    USE_IMM = 0
    LOAD_SHAPE = 1

"""The rule tables by dtype: which laws hold for floats, wrapping integers, index integers, truth values.

Floats obey only exact laws. Narrow and unsigned integers wrap around, so they form a ring without order-preserving
addition. int32 and int64 carry indices, which do not overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.ir.rule_compiler import CompiledRules, RuleStatistics
from tvm.ir.rules import Rule, RuleTable, rules
from tvm.tir import expr as tir

from .add import ADD_ANY, ADD_NO_OVERFLOW, ADD_WRAPPING
from .compare import (
    EQ_ANY,
    EQ_NO_OVERFLOW,
    EQ_WRAPPING,
    LE_ANY,
    LE_NO_OVERFLOW,
    LE_WRAPPING,
    LT_ANY,
    LT_NO_OVERFLOW,
    LT_WRAPPING,
    NE_ANY,
    NE_NO_OVERFLOW,
    NE_WRAPPING,
)
from .floordiv import FLOORDIV_NO_OVERFLOW, FLOORDIV_WRAPPING
from .floormod import FLOORMOD_NO_OVERFLOW, FLOORMOD_WRAPPING
from .logic import AND, EQ_BOOLEAN, NE_BOOLEAN, NOT, OR
from .min_max import MAX_ANY, MAX_NO_OVERFLOW, MAX_WRAPPING, MIN_ANY, MIN_NO_OVERFLOW, MIN_WRAPPING
from .mul import MUL_ANY, MUL_NO_OVERFLOW, MUL_WRAPPING
from .notation import FLOAT_VOCABULARY, VOCABULARY
from .select import SELECT, SELECT_BOOLEAN
from .sub import SUB_ANY, SUB_NO_OVERFLOW, SUB_WRAPPING
from .truncdiv import (
    TRUNCDIV_NO_OVERFLOW,
    TRUNCDIV_WRAPPING,
    TRUNCMOD_NO_OVERFLOW,
    TRUNCMOD_WRAPPING,
)

FLOAT, WRAPPING, INDEX, BOOLEAN = range(4)

# the laws of each operation: of any dtype, of wrapping integers too, of index integers too
LAWS: dict[type, tuple[str, RuleTable, RuleTable, RuleTable]] = {
    tir.Add: ("add", ADD_ANY, ADD_WRAPPING, ADD_NO_OVERFLOW),
    tir.Sub: ("sub", SUB_ANY, SUB_WRAPPING, SUB_NO_OVERFLOW),
    tir.Mul: ("mul", MUL_ANY, MUL_WRAPPING, MUL_NO_OVERFLOW),
    tir.FloorDiv: ("floordiv", rules(), FLOORDIV_WRAPPING, FLOORDIV_NO_OVERFLOW),
    tir.FloorMod: ("floormod", rules(), FLOORMOD_WRAPPING, FLOORMOD_NO_OVERFLOW),
    tir.Div: ("truncdiv", rules(), TRUNCDIV_WRAPPING, TRUNCDIV_NO_OVERFLOW),
    tir.Mod: ("truncmod", rules(), TRUNCMOD_WRAPPING, TRUNCMOD_NO_OVERFLOW),
    tir.Min: ("min", MIN_ANY, MIN_WRAPPING, MIN_NO_OVERFLOW),
    tir.Max: ("max", MAX_ANY, MAX_WRAPPING, MAX_NO_OVERFLOW),
    tir.EQ: ("eq", EQ_ANY, EQ_WRAPPING, EQ_NO_OVERFLOW),
    tir.NE: ("ne", NE_ANY, NE_WRAPPING, NE_NO_OVERFLOW),
    tir.LT: ("lt", LT_ANY, LT_WRAPPING, LT_NO_OVERFLOW),
    tir.LE: ("le", LE_ANY, LE_WRAPPING, LE_NO_OVERFLOW),
    tir.Select: ("select", SELECT, rules(), rules()),
}

BOOLEAN_LAWS: dict[type, tuple[str, RuleTable]] = {
    tir.And: ("logical_and", AND),
    tir.Or: ("logical_or", OR),
    tir.Not: ("logical_not", NOT),
    tir.EQ: ("eq", EQ_BOOLEAN + EQ_ANY),
    tir.NE: ("ne", NE_BOOLEAN + NE_ANY),
    tir.Select: ("select", SELECT + SELECT_BOOLEAN),
}


# what the knob RULE_STATS counts
STATISTICS: dict[Rule, RuleStatistics] = {}


def _compile_tables() -> list[Mapping[Any, CompiledRules]]:
    """The tables by kind of dtype and node class; their functions are compiled on first use."""
    return [
        {
            cls: CompiledRules(name, any_law, FLOAT_VOCABULARY, STATISTICS)
            for cls, (name, any_law, _, _) in LAWS.items()
        },
        {
            cls: CompiledRules(name, any_law + wrapping, VOCABULARY, STATISTICS)
            for cls, (name, any_law, wrapping, _) in LAWS.items()
        },
        {
            cls: CompiledRules(name, any_law + wrapping + index, VOCABULARY, STATISTICS)
            for cls, (name, any_law, wrapping, index) in LAWS.items()
        },
        {
            cls: CompiledRules(name, table, VOCABULARY, STATISTICS)
            for cls, (name, table) in BOOLEAN_LAWS.items()
        },
    ]


TABLES = _compile_tables()


def all_rules() -> list[Rule]:
    """Every rule of every table, once."""
    found: dict[Rule, None] = {}
    for _, *tables in LAWS.values():
        for table in tables:
            found.update(dict.fromkeys(table))
    for _, table in BOOLEAN_LAWS.values():
        found.update(dict.fromkeys(table))
    return list(found)

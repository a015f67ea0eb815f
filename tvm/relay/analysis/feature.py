"""Which features of the language a program uses."""

from __future__ import annotations

from enum import IntEnum

import tvm.relay.expr as nodes
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.adt import Match
from tvm.relay.function import Function, relay_functions
from tvm.relay.traverse import operands, post_order


class Feature(IntEnum):
    """A kind of expression, or sharing (`fGraph`)."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_FEATURES: dict[type, Feature] = {
    nodes.Var: Feature.fVar,
    GlobalVar: Feature.fGlobalVar,
    nodes.Constant: Feature.fConstant,
    nodes.Tuple: Feature.fTuple,
    nodes.TupleGetItem: Feature.fTupleGetItem,
    Function: Feature.fFunction,
    nodes.Call: Feature.fCall,
    nodes.Let: Feature.fLet,
    nodes.If: Feature.fIf,
    nodes.RefCreate: Feature.fRefCreate,
    nodes.RefRead: Feature.fRefRead,
    nodes.RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor,
    Match: Feature.fMatch,
}
_ATOMS = (nodes.Var, GlobalVar, Op, nodes.Constant, Constructor)


def detect_feature(a: RelayExpr | IRModule, b: IRModule | None = None) -> set[Feature]:
    """The features of an expression, or of all functions of a module."""
    mod = a if isinstance(a, IRModule) else b
    if not isinstance(a, IRModule) and a is not None:
        return _features(a)
    functions = relay_functions(mod).values() if mod is not None else ()
    return {f for func in functions for f in _features(func)}


def _features(root: RelayExpr) -> set[Feature]:
    found: set[Feature] = set()
    used: set[int] = set()
    for node in post_order(root):
        found.add(Feature.fOp if isinstance(node, Op) else _FEATURES[type(node)])
        for operand in operands(node):
            if id(operand) in used and not isinstance(operand, _ATOMS):
                found.add(Feature.fGraph)
            used.add(id(operand))
        if isinstance(node, nodes.Let) and any(n is node.var for n in post_order(node.value)):
            found.add(Feature.fLetRec)
    return found

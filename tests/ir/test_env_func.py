"""Global functions as nodes."""

from __future__ import annotations

import pickle

import pytest

import tvm


def test_functions_are_saved_by_their_names() -> None:
    tvm.register_func("tests.env_func", lambda x: x + 1, override=True)
    func = tvm.ir.EnvFunc.get("tests.env_func")
    assert func(3) == 4 and func.func(1) == 2
    for again in (tvm.ir.load_json(tvm.ir.save_json(func)), pickle.loads(pickle.dumps(func))):
        assert isinstance(again, tvm.ir.EnvFunc) and again.name == func.name and again(4) == 5
    tvm.ir.assert_structural_equal(again, func)


def test_unknown_functions_are_rejected() -> None:
    with pytest.raises(tvm.TVMError, match=r"requires a global function, got 'tests\.nothing'"):
        tvm.ir.EnvFunc.get("tests.nothing")

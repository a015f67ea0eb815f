"""How kernels were scheduled is logged in one line, and told in full on demand."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import tvm
from tvm import knobs, relay
from tvm.relay.backend import summary
from tvm.target.host import host_name


def model() -> relay.Function:
    """A convolution by Winograd's way, one as it is, a dense layer and a softmax."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> relay.Constant:
        return relay.const(rng.normal(size=shape).astype("float32"))

    x = relay.var("x", shape=(1, 32, 28, 28))
    out = relay.nn.conv2d(x, weight(64, 32, 3, 3), padding=1)
    out = relay.nn.conv2d(out, weight(32, 64, 3, 3), strides=2, padding=1)
    out = relay.nn.dense(relay.reshape(out, (32, 196)), weight(64, 196))
    return relay.Function([x], relay.nn.softmax(out))


def test_one_line_is_logged(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "tvm.relay"):
        relay.build(model(), "llvm -mcpu=native")
    lines = [r.getMessage() for r in caplog.records if r.name == "tvm.relay"]
    assert len(lines) == 1 and "tiles of the cost model" in lines[0]
    assert capsys.readouterr() == ("", "")


def test_processor_that_nobody_named_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    summary._log_default_processor.cache_clear()
    x = relay.var("x", shape=(2,))
    with caplog.at_level(logging.WARNING, "tvm.relay"):
        for compile_ in (relay.build, relay.vm.compile):
            compile_(tvm.IRModule.from_expr(relay.exp(x)), "llvm -mcpu=native")
            compile_(tvm.IRModule.from_expr(relay.exp(x)), "llvm")
    (line,) = [r.getMessage() for r in caplog.records]
    assert host_name() in line and "-mcpu=native" in line


def test_table_names_tiles_and_their_predicted_share(capsys: pytest.CaptureFixture[str]) -> None:
    with knobs.VERBOSE.scope(True), tvm.transform.PassContext(opt_level=3):
        relay.build(model(), "llvm -mcpu=x86-64-v4")
    text = capsys.readouterr().err
    for tile in ("WinogradConfig(", "Conv2dConfig(", "MatmulConfig("):
        line = next(line for line in text.splitlines() if tile in line)
        assert "MFLOP" in line
        assert 20 <= int(line.rsplit("% of the peak", 1)[0].split()[-1]) <= 100
    assert any(line.endswith("nn_softmax: fixed") for line in text.splitlines())

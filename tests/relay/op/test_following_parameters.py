"""Operators whose parameters follow those of another."""

from __future__ import annotations

from inspect import signature

import pytest

from tvm import relay
from tvm.relay.op.parameters import more_parameters, same_parameters

DATA = relay.var("data", shape=(1, 4, 8, 8, 8))
WEIGHT = relay.var("weight", shape=(4, 4, 3, 3, 3))


def test_another_rank_changes_defaults_and_layouts() -> None:
    parameters = signature(relay.nn.conv3d).parameters
    assert list(parameters) == list(signature(relay.nn.conv2d).parameters)
    assert parameters["strides"].default == (1, 1, 1)
    assert parameters["strides"].annotation == "Spatial3"
    assert parameters["kernel_layout"].default == "OIDHW"


def test_another_rank_converts_values() -> None:
    call = relay.nn.conv3d(DATA, WEIGHT, strides=2, padding=(1, 2, 3), kernel_size=3)
    assert call.attrs.strides == (2, 2, 2)
    assert call.attrs.padding == (1, 2, 3, 1, 2, 3)
    assert call.attrs.kernel_size == (3, 3, 3)


def test_new_parameters_stand_behind_the_one_named_before() -> None:
    assert list(signature(relay.nn.deformable_conv2d).parameters)[:3] == [
        "data",
        "offset",
        "weight",
    ]
    assert list(signature(relay.nn.avg_pool2d).parameters)[-1] == "count_include_pad"


def test_parameters_may_be_renamed() -> None:
    assert list(signature(relay.nn.contrib_conv2d_nchwc).parameters)[:2] == ["data", "kernel"]


def test_errors_of_arguments_name_the_function() -> None:
    with pytest.raises(TypeError, match=r"^conv3d\(\) missing a required argument: 'weight'"):
        relay.nn.conv3d(DATA)
    with pytest.raises(TypeError, match=r"^avg_pool2d\(\) .*unexpected keyword argument 'size'"):
        relay.nn.avg_pool2d(DATA, size=2)


def test_parameters_that_are_not_the_same_are_rejected() -> None:
    def conv4d(reach: int = 1) -> None:
        """No operator."""

    with pytest.raises(TypeError, match="conv4d: conv2d has no reach"):
        same_parameters(relay.nn.conv2d)(conv4d)
    reached = more_parameters(relay.nn.conv2d)(conv4d)
    assert list(signature(reached).parameters)[-1] == "reach"

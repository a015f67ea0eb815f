"""ONNX's own interface of back ends: ``onnx.backend.base.Backend``.

    import tvm.contrib.onnx_backend as backend
    outputs = backend.prepare(model).run([x, y])

A model is compiled at its first run, for the shapes of the inputs that come. Inputs whose values
decide about shapes (the target of a Reshape, the axes of a reduction) become constants of
that compilation; other values compile anew, and what was compiled is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from tvm import transform
from tvm.contrib import graph_executor
from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.transform import Pass
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.evaluate import runnable
from tvm.relay.build_module import build, create_executor
from tvm.relay.expr import If, Let
from tvm.relay.frontend.onnx.model import Imported, import_model
from tvm.relay.frontend.onnx.registry import (
    EmptyOptional,
    StringTensor,
    TensorSequence,
    Value,
    ValueRequired,
)
from tvm.relay.frontend.onnx.tensors import HELD_AS, numpy_type, representable
from tvm.relay.function import Function
from tvm.relay.traverse import post_order
from tvm.runtime.container import ADT
from tvm.runtime.device import cpu
from tvm.target import Target

# larger inputs are data: a program for each of their values would never be used again
_MOST_BOUND = 4096


class TVMBackendRep(BackendRep):
    """A model that is compiled for the shapes it is run with."""

    def __init__(
        self,
        model: onnx.ModelProto,
        target: Any,
        opt_level: int,
        passes: Sequence[Pass] = (),
        context: Mapping[str, Any] | None = None,
        is_verified: bool = False,
        **options: Any,
    ) -> None:
        self.model = model
        self.target = Target(target)
        self.opt_level = opt_level
        self.passes = passes
        self.context = dict(context or {})
        self.options = options
        # what only the run knows stays so and is compiled, where else it is computed at once
        self.is_verified = is_verified
        self._waits = is_verified
        given = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [value.name for value in model.graph.input if value.name not in given]
        self.outputs = [value.name for value in model.graph.output]
        self._narrow = [_narrow_type(value) for value in model.graph.output]
        self._compiled: dict[Any, _Program] = {}
        self._bound: list[str] = []  # the inputs whose values are needed to compile
        self._allow_dynamic = False  # whether values that decide about shapes come with the run

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for ``inputs``: a sequence in the model's order, or a dict by name."""
        if kwargs:
            raise TypeError(f"run takes no options, got {', '.join(kwargs)}")
        named = self._named(inputs)
        program = self._find(named)
        outputs = [
            value if kind is None else value.astype(kind)
            for value, kind in zip(program.run(named), self._narrow, strict=True)
        ]
        return namedtupledict("Outputs", self.outputs)(*outputs)

    def _named(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            if len(arrays) > len(self.inputs):
                raise ValueError(f"the model has the inputs {self.inputs}, got {len(arrays)}")
            given = dict(zip(self.inputs, arrays, strict=False))
        if unknown := [name for name in given if name not in self.inputs]:
            raise ValueError(f"the model has the inputs {self.inputs}, got also {unknown}")
        if missing := [name for name in self.inputs if name not in given]:
            raise ValueError(f"values are missing for the inputs {missing}")
        return {name: _as_input(value) for name, value in given.items()}

    def _find(self, named: dict[str, Any]) -> _Program:
        """The program for these inputs."""
        key = self._key(named)
        if key not in self._compiled:
            program = self._compile(self.import_for(named))
            key = self._key(named)  # more values may have become part of it
            self._compiled[key] = program
        return self._compiled[key]

    def _key(self, named: Mapping[str, Any]) -> Any:
        return tuple([
            (name, _signature(value, self._is_bound(name, value))) for name, value in named.items()
        ])  # fmt: skip

    def _is_bound(self, name: str, value: Any) -> bool:
        """Whether a value is part of the program: it decides about shapes, or has strings."""
        return name in self._bound or _has_strings(value)

    def import_for(self, named: Mapping[str, Any]) -> Imported:
        """The module for these inputs; the values it depends on become known on the way."""
        while True:
            bound = {name: named[name] for name in named if self._is_bound(name, named[name])}
            types = {name: value for name, value in named.items() if name not in bound}
            try:
                return import_model(
                    self.model,
                    bound=bound,
                    like=types,
                    allow_dynamic=self._allow_dynamic,
                    **self.options,
                )
            except ValueRequired as error:
                if self._allow_dynamic and not self._waits:
                    raise
                self._bind_more(error, named)

    def _bind_more(self, error: ValueRequired, named: Mapping[str, Any]) -> None:
        """Make the inputs that decide part of the program; where that is no use, wait for the run."""
        known = set(self._bound)
        more = [name for name in error.inputs if name in named and name not in known]
        is_data = any(np.asarray(named[name]).dtype.kind not in "iub" for name in more)
        waits, self._waits = self._waits and not self._allow_dynamic and is_data, False
        is_large = any(np.size(named[name]) > _MOST_BOUND for name in more)
        self._allow_dynamic = not more or is_large or waits
        self._bound += [] if self._allow_dynamic else more

    def _compile(self, imported: Imported) -> _Program:
        with transform.PassContext(opt_level=self.opt_level, **self.context), self.target:
            mod = transform.Sequential(list(self.passes))(imported.mod)
            executor = "vm" if self.is_verified else "debug"
            return _Program(replace(imported, mod=mod), self.target, executor)


class _Program:
    """One compilation."""

    def __init__(self, imported: Imported, target: Target, executor: str) -> None:
        main = imported.mod["main"]
        self.names = [param.name_hint for param in main.params]
        self.outputs = imported.outputs
        self.call: Callable[..., Any] | None = None
        if needs_interpreter(main):
            self.call = create_executor(executor, imported.mod, cpu(), target).evaluate()
            return
        library = build(imported.mod, target)
        self.module = graph_executor.GraphModule(
            runnable(library.module, library.get_lib())["default"](cpu())
        )

    def run(self, named: Mapping[str, Any]) -> list[Any]:
        flat = dict(_flat_inputs(named))
        if self.call is not None:
            result = self.call(*[flat[name] for name in self.names])
            results = iter(_flat_outputs(result))
        else:
            for name in self.names:
                self.module.set_input(name, flat[name])
            self.module.run()
            count = self.module.get_num_outputs()
            results = iter([self.module.get_output(i).numpy() for i in range(count)])
        return [_nested(value, results) for value in self.outputs]


def _narrow_type(value: onnx.ValueInfoProto) -> Any:
    """The numpy type of an output that has few bits, and that we hold wider."""
    kind = numpy_type(value.type.tensor_type.elem_type or 1)
    return kind if kind.name in ("int2", "int4", "uint2", "uint4", *HELD_AS) else None


def _flat_inputs(named: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for name, value in named.items():
        if isinstance(value, list):
            yield from _flat_inputs({f"{name}.{i}": item for i, item in enumerate(value)})
        elif value is not None:
            yield name, value


def _flat_outputs(result: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(result, (list, tuple, ADT)):
        for item in result:
            yield from _flat_outputs(item)
    else:
        yield result.numpy()


def _nested(value: Value, results: Iterator[Any]) -> Any:
    if isinstance(value, TensorSequence):
        return [_nested(field, results) for field in value.fields]
    if isinstance(value, StringTensor):
        return value.at(next(results))
    return None if isinstance(value, EmptyOptional) else next(results)


def _as_input(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_as_input(item) for item in value]
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else representable(array)


def _has_strings(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_strings(item) for item in value)
    return isinstance(value, np.ndarray) and value.dtype.kind == "O"


def _signature(value: Any, is_bound: bool) -> Any:
    """What a compilation depends on: types, and the bytes of values that are bound."""
    if value is None:
        return None
    if isinstance(value, list):
        return tuple([_signature(item, is_bound) for item in value])
    if not is_bound:
        return value.shape, str(value.dtype)
    content = tuple(value.reshape(-1).tolist()) if _has_strings(value) else value.tobytes()
    return value.shape, str(value.dtype), content


def needs_interpreter(main: RelayExpr) -> bool:
    """Whether the graph executor cannot run it: control flow, or shapes that data decide."""
    for node in post_order(main):
        if isinstance(node, (If, Let)) or (isinstance(node, Function) and node is not main):
            return True
        if node is not main and getattr(node, "op", None) is not None:
            if _is_dynamic(infer_type_of(node)):
                return True
    return False


def _is_dynamic(ty: Type) -> bool:
    fields = ty.fields if isinstance(ty, TupleType) else [ty]
    return any(isinstance(field, TensorType) and field.is_dynamic for field in fields)


class TVMBackend(Backend):
    """Compiles ONNX models for the processor it runs on."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TVMBackendRep:
        """A model ready to run; ``target``, ``opt_level`` and options of ``from_onnx``."""
        _check_device(device)
        options = {"target": "llvm", "opt_level": 3, **kwargs}
        return TVMBackendRep(model, **options)

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Compile and run once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU",
        outputs_info: Any = None, **kwargs: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Compile and run a single node, of the newest opset."""
        _check_device(device)
        names = [name for name in node.input if name]
        arrays = [np.asarray(value) for value in inputs]
        typed = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip(names, arrays, strict=True)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "node", typed, results))
        return cls.prepare(model, device, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on ``device``: the CPU alone."""
        return bool(Device(device).type == DeviceType.CPU)


def _check_device(device: str) -> None:
    if not TVMBackend.supports_device(device):
        raise TVMError(f"the ONNX backend runs on the device CPU, got {device!r}")


prepare = TVMBackend.prepare
run_node = TVMBackend.run_node
run_model = TVMBackend.run_model
supports_device = TVMBackend.supports_device
is_compatible = TVMBackend.is_compatible

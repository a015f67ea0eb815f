"""Compiled programs for the virtual machine of relay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.remote import global_function_beside


class Executable:
    """A compiled program: code, constants and kernels.

    Parameters
    ----------
    mod : Module
        The native executable, as :func:`tvm.relay.vm.compile` makes it.
    """

    def __init__(self, mod: Module) -> None:
        if not isinstance(mod, Module) or mod.type_key not in ("VMExecutable", "rpc"):
            found = mod.type_key if isinstance(mod, Module) else type(mod).__name__
            raise TypeError(f"Executable needs a module of type VMExecutable, got {found}")
        self.mod = mod
        self._function_params: dict[str, list[str]] = {}

    def save(self) -> tuple[bytearray, Module]:
        """The program and its kernels apart, in the classic release's format.

        Returns
        -------
        (bytearray, Module)
            The program with its constants, and the library with its kernels, to be exported.
        """
        return self.mod["save"](), self.lib

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Module | None) -> Executable:
        """The executable that :meth:`save` wrote.

        Parameters
        ----------
        bytecode : bytes
            The program.
        lib : Module
            The library, which may have been exported and loaded again.
        """
        if not isinstance(bytecode, (bytes, bytearray)):
            raise TypeError(f"load_exec needs the program as bytes, got {type(bytecode).__name__}")
        if lib is not None and not isinstance(lib, Module):
            raise TypeError(f"load_exec needs the library as a Module, got {type(lib).__name__}")
        name = "runtime.Load_Executable"
        load = get_global_func(name) if lib is None else global_function_beside(lib, name)
        return Executable(load(bytes(bytecode), lib))

    @property
    def lib(self) -> Module:
        """The library with the kernels."""
        module: Module = self.mod["get_lib"]()
        return module

    @property
    def module(self) -> Module:
        """The native module."""
        return self.mod

    @property
    def stats(self) -> str:
        """How many constants, functions and kernels there are."""
        return str(self.mod["get_stats"]())

    @property
    def bytecode(self) -> str:
        """The instructions as text."""
        return str(self.mod["get_bytecode"]())

    @property
    def constants(self) -> str:
        """The constants' shapes and dtypes as text."""
        return str(self.mod["get_constants"]())

    @property
    def virtual_devices(self) -> str:
        """The devices as text."""
        return str(self.mod["get_virtual_devices"]())

    @property
    def primitives(self) -> str:
        """The kernels as text."""
        return str(self.mod["get_primitives"]())

    @property
    def primitive_ops(self) -> list[str]:
        """The names of the kernels."""
        name = self.mod["get_primitive_name"]
        return [name(i) for i in range(self.mod["get_num_primitives"]())]

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        name = self.mod["get_function_name"]
        return [name(i) for i in range(self.mod["get_num_functions"]())]

    def get_function_params(self, func_name: str) -> list[str]:
        """The names of a function's parameters.

        Parameters
        ----------
        func_name : str
            One of :attr:`globals`.

        Returns
        -------
        list of str
            In the order in which the function takes them.
        """
        if func_name not in self._function_params:
            count, name = (
                self.mod["get_function_arity"](func_name),
                self.mod["get_function_param_name"],
            )
            self._function_params[func_name] = [name(func_name, i) for i in range(count)]
        return self._function_params[func_name]

    def get_input_info(
        self, func_name: str = "main"
    ) -> tuple[dict[str, tuple[int | None, ...]], dict[str, str]]:
        """Shapes and data types of the tensors that a function takes.

        Parameters
        ----------
        func_name : str
            One of :attr:`globals`.

        Returns
        -------
        (dict of str to tuple, dict of str to str)
            By name, in the order of the parameters: the dimensions, None for open ones, and the
            data type. Parameters that are no tensors are left out; all are for a program that
            another package compiled.
        """
        inputs = self._signature(func_name)["inputs"]
        shapes = {name: tuple(dims) for name, (dims, _) in inputs.items()}
        return shapes, {name: dtype for name, (_, dtype) in inputs.items()}

    def get_output_names(self, func_name: str = "main") -> list[str]:
        """The names that the imported model gave a function's outputs.

        Parameters
        ----------
        func_name : str
            One of :attr:`globals`.

        Returns
        -------
        list of str
            In the order of :meth:`VirtualMachine.get_outputs`; empty if they are not known.
        """
        names: list[str] = self._signature(func_name)["outputs"]
        return names

    def _signature(self, func_name: str) -> dict[str, Any]:
        text = self.mod["get_function_signature"](func_name)
        return json.loads(text) if text else {"inputs": {}, "outputs": []}

    def move_late_bound_consts(self, path: str, byte_limit: int) -> None:
        """Move large constants to a file, from which :meth:`load_late_bound_consts` loads them.

        Parameters
        ----------
        path : str
            The file, which is written anew.
        byte_limit : int
            Constants of at least that many bytes are moved.
        """
        self.mod["move_late_bound_consts"](str(path), byte_limit)

    def get_late_bound_consts(self, byte_limit: int) -> dict[str, NDArray]:
        """Take large constants out of the program.

        Parameters
        ----------
        byte_limit : int
            Constants of at least that many bytes are taken.

        Returns
        -------
        dict of str to NDArray
            They by name, as :meth:`load_late_bound_consts_from_map` takes them back.
        """
        found: dict[str, NDArray] = {}
        self.mod["get_late_bound_consts"](byte_limit, found.__setitem__)
        return found

    def load_late_bound_consts(self, path: str) -> None:
        """Load the constants that :meth:`move_late_bound_consts` moved.

        Parameters
        ----------
        path : str
            The file.
        """
        self.mod["load_late_bound_consts"](str(path))

    def load_late_bound_consts_from_map(self, map: Mapping[str, NDArray]) -> None:
        """Set late-bound constants.

        Parameters
        ----------
        map : dict of str to NDArray
            What :meth:`get_late_bound_consts` gave.
        """
        self.mod["load_late_bound_consts_from_map"](
            *[part for item in map.items() for part in item]
        )

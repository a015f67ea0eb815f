"""An instrument that runs each kernel of another library beside that of a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray


class LibCompareVMInstrument:
    """Compares what kernels compute with what those of a library do.

    Parameters
    ----------
    mod : Module
        The library.
    device : Device
        Where it runs.
    verbose : bool
        Whether each comparison is printed.
    rtol, atol : float
        How far results may differ.
    """

    def __init__(
        self,
        mod: Module,
        device: Device,
        verbose: bool = True,
        rtol: float = 1e-5,
        atol: float = 1e-5,
    ) -> None:
        self.mod = mod
        self.device = device
        self.verbose = verbose
        self.rtol = rtol
        self.atol = atol
        self._wanted: dict[str, NDArray] = {}

    def compare(
        self, name: str, ref_args: list[Any], new_args: list[Any], ret_indices: Any
    ) -> None:
        """Compare results.

        Parameters
        ----------
        name : str
            The kernel.
        ref_args : list
            Arguments of the program's kernel.
        new_args : list
            Arguments of the library's kernel.
        ret_indices : iterable of int
            Which of them are results.
        """
        for i in ret_indices:
            np.testing.assert_allclose(
                new_args[i].numpy(), ref_args[i].numpy(), rtol=self.rtol, atol=self.atol
            )
        if self.verbose:
            print(f"{name}: equal")

    def skip_instrument(
        self, func: Any, name: str, before_run: bool, ret_val: Any, *args: Any
    ) -> bool:
        """Whether a call is not compared."""
        return False

    def __call__(self, func: Any, name: str, before_run: bool, ret_val: Any, *args: Any) -> None:
        if before_run or name.startswith("vm.builtin."):
            return
        if self.skip_instrument(func, name, before_run, ret_val, *args):
            return
        if not self.mod.implements_function(name, True):
            raise RuntimeError(f"the library has no function {name!r}")
        copies = [arg.copyto(self.device) if isinstance(arg, NDArray) else arg for arg in args]
        self.mod.get_function(name, True)(*copies)
        self.compare(name, list(args), copies, [len(args) - 1])

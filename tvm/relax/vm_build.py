"""Executables of the virtual machine."""

from __future__ import annotations

from tvm.runtime.relax_vm import Executable

VMExecutable = Executable

"""What others find in the code of a module: functions, entries, the runtime's slots, large constants."""

from __future__ import annotations

from dataclasses import dataclass, field

from .options import CodegenOptions

_CONTEXT = "module_ctx"  # the slot of the module itself


@dataclass
class Exports:
    """The names that a module's code defines for its loader.

    Attributes
    ----------
    prefix : str
        What stands before every name of a system library.
    is_linked : bool
        With the runtime, rather than loaded by it.
    functions : list of str
        Those that others may call by the packed convention.
    slots : dict of str to str
        The global pointers that the loader fills, by what they are to point to.
    large_constants : dict of str to bytes
        By symbol; not part of the code.
    """

    options: CodegenOptions
    prefix: str = ""
    is_linked: bool = False
    functions: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    slots: dict[str, str] = field(default_factory=dict)
    large_constants: dict[str, bytes] = field(default_factory=dict)

    def symbols(self) -> dict[str, str]:
        """The symbols behind the names that the runtime looks for."""
        own = [*self.functions, *self.entries]
        if _CONTEXT in self.slots:
            own.append("__tvm_module_ctx")
        slots = self.runtime_slots()
        return {name: self.full_name(name) for name in own} | {name: name for name in slots}

    def runtime_slots(self) -> list[str]:
        """The pointers to functions of the runtime, which models may share."""
        return [symbol[1:] for key, symbol in self.slots.items() if key != _CONTEXT]

    def full_name(self, name: str) -> str:
        """A name with the prefix before it."""
        return name if name.startswith(self.prefix) else self.prefix + name

    def absorb(self, other: Exports) -> None:
        """Count what another module defines among what this one does: they are linked together."""
        self.functions += other.functions
        self.entries += other.entries
        self.slots.update(other.slots)
        self.large_constants.update(other.large_constants)

"""Modules are changed in place: parameters, states and modules within replaced by others."""

from __future__ import annotations

from typing import Any

from .core import Effect, Module, ModuleList, Parameter


class Mutator:
    """Visits what modules keep, and puts what the visit returns in its place."""

    def visit_module(self, name: str, node: Module) -> Any:
        """A module; by default what it keeps is visited."""
        return self.visit(name, node)

    def visit_effect(self, name: str, node: Effect) -> Any:
        """A state; by default it stays."""
        return node

    def visit_param(self, name: str, node: Parameter) -> Any:
        """A parameter; by default it stays."""
        return node

    def visit_modulelist(self, name: str, node: ModuleList) -> Any:
        """Modules in a row; by default each is visited."""
        return self.visit(name, node)

    def visit(self, name: str, node: Any) -> Any:
        """Visit what a module keeps.

        Parameters
        ----------
        name : str
            Its dotted name.
        node : Module
            The module.

        Returns
        -------
        Module
            The module itself.
        """
        if isinstance(node, ModuleList):
            for i, module in enumerate(node.modules):
                node.modules[i] = self._one(f"{name}.{i}" if name else str(i), module)
            return node
        for key, value in list(node.__dict__.items()):
            setattr(node, key, self._one(f"{name}.{key}" if name else key, value))
        return node

    def _one(self, name: str, value: Any) -> Any:
        if isinstance(value, ModuleList):
            return self.visit_modulelist(name, value)
        if isinstance(value, Module):
            return self.visit_module(name, value)
        if isinstance(value, Effect):
            return self.visit_effect(name, value)
        if isinstance(value, Parameter):
            return self.visit_param(name, value)
        return value

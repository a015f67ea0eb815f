"""Training of relax models."""

from . import loss, optimizer, setup_trainer, trainer, utils
from .setup_trainer import SetupTrainer
from .trainer import Trainer
from .utils import AppendLoss, register_te_gradient

__all__ = [
    "AppendLoss", "SetupTrainer", "Trainer", "loss", "optimizer", "register_te_gradient",
    "setup_trainer", "trainer", "utils",
]  # fmt: skip

"""Complex tensors and Fourier transforms, imported from traces and from exported programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tvm import relay

from .running import assert_close, run
from .test_pytorch import Wrap, check

torch.manual_seed(0)
WINDOW = torch.hann_window(16)


def rotary(x):
    turns = torch.polar(torch.ones(3, 2), torch.arange(6.0).reshape(3, 2))
    turned = torch.view_as_complex(x.reshape(2, 3, 2, 2)) * turns
    return torch.view_as_real(turned).flatten(2)


def spectrogram(x):
    return torch.stft(x, 16, 4, window=WINDOW, return_complex=True).abs().pow(2)


def there_and_back(x):
    z = torch.stft(x, 16, 4, window=WINDOW, return_complex=True)
    return torch.istft(z * 2, 16, 4, window=WINDOW, length=60)


def mixing(x):
    return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real


def fourier_unit(x):
    z = torch.fft.rfft2(x, norm="ortho")
    joined = torch.cat([z.real, z.imag], 1)
    back = torch.complex(*joined.chunk(2, 1))
    return torch.fft.irfft2(back, s=x.shape[-2:], norm="ortho")


def summed_products(x):
    z = torch.fft.fft(x)
    return torch.view_as_real(torch.einsum("ij,kj,j->ik", z, z.conj() * 1j, x[0]))


def decomposed(x):
    z = torch.complex(x, x.flip(1))
    return torch.view_as_real(torch.kron(z, z[:1])), torch.cross(z, z.conj(), dim=1).imag


FUNCTIONS: dict[str, tuple[Callable, torch.Tensor]] = {
    "rotary": (rotary, torch.randn(2, 3, 4)),
    "spectrogram": (spectrogram, torch.randn(2, 64)),
    "there_and_back": (there_and_back, torch.randn(2, 64)),
    "mixing": (mixing, torch.randn(2, 6, 8)),
    "summed_products": (summed_products, torch.randn(2, 5)),
    "decomposed": (decomposed, torch.randn(2, 3)),
    "fourier_unit": (fourier_unit, torch.randn(1, 2, 8, 10)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced_function_agrees(name: str) -> None:
    function, data = FUNCTIONS[name]
    check(function, data)


@pytest.mark.parametrize("name", ["rotary", "there_and_back", "fourier_unit"])
def test_exported_function_agrees(name: str) -> None:
    function, data = FUNCTIONS[name]
    program = torch.export.export(Wrap(function), (data,))
    mod, params = relay.frontend.from_exported_program(program)
    (variable,) = [v for v in mod["main"].params if v.name_hint not in params]
    found = run(mod, params, {variable.name_hint: data.numpy()})
    assert_close(found[0], function(data).numpy())


def test_arithmetic_of_complex_tensors() -> None:
    def several(x):
        z = torch.complex(x, x + 1)
        product = (z @ z.transpose(-1, -2).conj()).exp().log() * 2 + 1j * z.sum()
        return torch.view_as_real(product), z.angle(), (z**2 / (z + 3)).abs(), z.sqrt().imag

    check(several, torch.rand(3, 3) * 0.3)


def test_complex_inputs_and_outputs_are_pairs() -> None:
    z = torch.randn(3, 4, dtype=torch.complex64)
    script = torch.jit.trace(lambda z: (z * 2j).unsqueeze(0), z)
    mod, params = relay.frontend.from_pytorch(script, [("z", ((3, 4), "complex64"))])
    (found,) = run(mod, params, {"z": torch.view_as_real(z).numpy()})
    assert_close(found, torch.view_as_real((z * 2j)[None]).numpy())


def test_operators_without_complex_forms_say_so() -> None:
    script = torch.jit.trace(lambda x: torch.asinh(torch.complex(x, x)).real, torch.randn(3))
    with pytest.raises(NotImplementedError, match="asinh does not support complex tensors"):
        relay.frontend.from_pytorch(script, [("x", (3,))])

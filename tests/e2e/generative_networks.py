"""Networks that make images as their papers describe them, small."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.networks import Example

from .image_networks import PICTURE, Added, row


class SuperResolution(nn.Module):
    """Residual blocks, then channels become pixels; a global skip."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(12, 16, 3, 1, 1, padding_mode="reflect")
        self.blocks = nn.Sequential(
            *[Added(nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1), nn.PReLU(16),
                                  nn.Conv2d(16, 16, 3, 1, 1))) for _ in range(2)]
        )  # fmt: skip
        self.leave = nn.Conv2d(16, 3 * 16, 3, 1, 1)

    def forward(self, x):
        y = self.leave(self.blocks(self.enter(F.pixel_unshuffle(x, 2))))
        wide = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        return (F.pixel_shuffle(y, 4) + wide).clamp(-1, 1)


class StyleGenerator(nn.Module):
    """StyleGAN2: weights scaled by a style for each sample, noise, a growing image."""

    def __init__(self) -> None:
        super().__init__()
        self.mapping = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32))
        self.start = nn.Parameter(torch.randn(1, 16, 4, 4))
        self.weights = nn.ParameterList([torch.randn(16, 16, 3, 3) for _ in range(2)])
        self.styles = nn.ModuleList([nn.Linear(32, 16) for _ in range(2)])
        self.rgb = nn.Conv2d(16, 3, 1)
        self.register_buffer("noise", torch.randn(1, 1, 16, 16))

    def forward(self, z):
        z = z * torch.rsqrt(torch.mean(z**2, dim=1, keepdim=True) + 1e-8)
        style = self.mapping(z)
        x = self.start.repeat(z.shape[0], 1, 1, 1)
        for weight, affine in zip(self.weights, self.styles, strict=True):
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = F.leaky_relu(self._modulated(x, weight, affine(style) + 1), 0.2)
        return self.rgb(x + self.noise).tanh()

    @staticmethod
    def _modulated(x, weight, style):
        batch, channels, rows, columns = x.shape
        w = weight[None] * style[:, None, :, None, None]
        w = w * torch.rsqrt(w.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
        x = F.conv2d(
            x.reshape(1, -1, rows, columns), w.view(-1, channels, 3, 3), padding=1, groups=batch
        )
        return x.reshape(batch, -1, rows, columns)


class Pix2Pix(nn.Module):
    """Reflected borders, instance norms, transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReflectionPad2d(3), nn.Conv2d(3, 8, 7), nn.InstanceNorm2d(8), nn.ReLU(True),
            nn.Conv2d(8, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.ReLU(True),
            Added(nn.Sequential(nn.ReplicationPad2d(1), nn.Conv2d(16, 16, 3), nn.Dropout(0.5))),
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1), nn.ELU(), nn.ZeroPad2d(1),
            nn.Conv2d(8, 3, 3), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def _gan() -> nn.Module:
    norm = nn.utils.parametrizations.spectral_norm
    return nn.Sequential(
        nn.ConvTranspose2d(16, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
        nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False), nn.Tanh(),
        norm(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2, inplace=True),
        norm(nn.Conv2d(8, 1, 8, 1, 0)), nn.Sigmoid(),
    )  # fmt: skip


class VariationalAutoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 4, 2, 1),
                                     nn.ReLU(), nn.Flatten())  # fmt: skip
        self.mean, self.spread = nn.Linear(16 * 49, 6), nn.Linear(16 * 49, 6)
        self.decoder = nn.Sequential(
            nn.Linear(6, 16 * 49), nn.Unflatten(1, (16, 7, 7)),
            nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1),
        )  # fmt: skip

    def forward(self, x, noise):
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h)
        found = torch.sigmoid(self.decoder(mean + noise * torch.exp(0.5 * spread)))
        loss = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp(), dim=1)
        return found, loss + F.mse_loss(found, x, reduction="none").sum((1, 2, 3))


class Quantised(nn.Module):
    """VQ-VAE: each place becomes the nearest of the book's vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.book = nn.Conv2d(3, 8, 4, 4), nn.Embedding(20, 8)
        self.decoder = nn.ConvTranspose2d(8, 3, 4, 4)

    def forward(self, x):
        z = self.encoder(x).permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, 8)
        apart = (
            flat.pow(2).sum(1, keepdim=True) + self.book.weight.pow(2).sum(1)
            - 2 * torch.einsum("bd,nd->bn", flat, self.book.weight)
        )  # fmt: skip
        nearest = torch.argmin(apart, dim=1)
        q = self.book(nearest).view(z.shape)
        q = z + (q - z).detach()
        return self.decoder(q.permute(0, 3, 1, 2)), nearest.view(z.shape[:-1])


GENERATIVE_NETWORKS: dict[str, Callable[[], Example]] = {
    "super_resolution": row(SuperResolution, (1, 3, 16, 16)),
    "stylegan": row(StyleGenerator, (2, 16)),
    "pix2pix": row(Pix2Pix, PICTURE),
    "dcgan": row(_gan, (2, 16, 1, 1)),
    "vae": row(VariationalAutoencoder, (2, 1, 28, 28), (2, 6)),
    "vq_vae": row(Quantised, PICTURE),
}

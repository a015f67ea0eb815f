"""Networks of sounds, words and series as their papers describe them, small."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.networks import Example

from .image_networks import row


class Conformer(nn.Module):
    """Halved feed-forward layers around attention by relative places and a gated convolution."""

    def __init__(self, width: int = 24, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = (
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 48), nn.SiLU(), nn.Linear(48, width))
            for _ in range(2)
        )  # fmt: skip
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.qkv, self.places = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)
        self.u, self.v = (nn.Parameter(torch.randn(heads, width // heads)) for _ in range(2))
        self.conv = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(1),
            nn.Conv1d(width, width, 7, padding=3, groups=width), nn.BatchNorm1d(width), nn.SiLU(),
            nn.Conv1d(width, width, 1),
        )  # fmt: skip

    @staticmethod
    def _shifted(x):
        """Row i moves left by how far it is from the end."""
        batch, heads, rows, columns = x.size()
        x = torch.cat([x.new_zeros(batch, heads, rows, 1), x], -1)
        return x.view(batch, heads, columns + 1, rows)[:, :, 1:].view(batch, heads, rows, columns)

    def _attention(self, x, places):
        batch, steps, width = x.shape
        q, k, v = self.qkv(x).view(batch, steps, 3, self.heads, -1).unbind(2)
        p = self.places(places).view(1, -1, self.heads, width // self.heads).permute(0, 2, 3, 1)
        content = (q + self.u).transpose(1, 2) @ k.permute(0, 2, 3, 1)
        position = self._shifted((q + self.v).transpose(1, 2) @ p)[..., :steps]
        weights = ((content + position) / math.sqrt(width)).softmax(-1)
        return (weights @ v.transpose(1, 2)).transpose(1, 2).contiguous().view(batch, steps, -1)

    def forward(self, x, places):
        x = x + 0.5 * self.before(x)
        x = x + self._attention(self.norms[0](x), places)
        x = x + self.conv(self.norms[1](x).transpose(1, 2)).transpose(1, 2)
        return self.norms[2](x + 0.5 * self.after(x))


class Tacotron(nn.Module):
    """Letters to frames, one after the other; attention that knows where it was."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(30, 16)
        self.encoder = nn.LSTM(16, 8, batch_first=True, bidirectional=True)
        self.prenet = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.attention, self.decoder = nn.LSTMCell(32, 24), nn.LSTMCell(40, 24)
        self.query, self.memory = nn.Linear(24, 12, bias=False), nn.Linear(16, 12, bias=False)
        self.where = nn.Sequential(nn.Conv1d(2, 4, 5, padding=2), nn.Conv1d(4, 12, 1))
        self.energy = nn.Linear(12, 1)
        self.frame, self.gate = nn.Linear(40, 10), nn.Linear(40, 1)
        self.postnet = nn.Sequential(nn.Conv1d(10, 16, 5, padding=2), nn.BatchNorm1d(16), nn.Tanh(),
                                     nn.Conv1d(16, 10, 5, padding=2))  # fmt: skip

    def forward(self, ids):
        memory = self.encoder(self.letters(ids))[0]
        keys, batch, steps = self.memory(memory), ids.shape[0], ids.shape[1]
        frame, context = torch.zeros(batch, 10), torch.zeros(batch, 16)
        first = second = (torch.zeros(batch, 24), torch.zeros(batch, 24))
        weights = total = torch.zeros(batch, steps)
        frames, gates = [], []
        for _ in range(4):
            first = self.attention(torch.cat([self.prenet(frame), context], -1), first)
            places = self.where(torch.stack([weights, total], 1)).transpose(1, 2)
            scores = self.energy(torch.tanh(self.query(first[0])[:, None] + keys + places))
            weights = F.softmax(scores.squeeze(-1), 1)
            total = total + weights
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            second = self.decoder(torch.cat([first[0], context], -1), second)
            both = torch.cat([second[0], context], -1)
            frame = self.frame(both)
            frames.append(frame)
            gates.append(self.gate(both))
        found = torch.stack(frames, 2)
        return found + self.postnet(found), torch.cat(gates, 1)


class DeepSpeech(nn.Module):
    """Convolutions over a spectrogram, recurrent layers both ways, letters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 4, (11, 5), (2, 2), (5, 2)), nn.BatchNorm2d(4), nn.Hardtanh(0, 20),
            nn.Conv2d(4, 4, (7, 5), (2, 1), (3, 2)), nn.BatchNorm2d(4), nn.Hardtanh(0, 20),
        )  # fmt: skip
        self.rnns = nn.ModuleList([nn.GRU(32, 12, bidirectional=True), nn.RNN(12, 12)])
        self.norm, self.head = nn.BatchNorm1d(12), nn.Linear(12, 29)

    def forward(self, x):
        x = self.conv(x)
        steps = x.view(x.size(0), x.size(1) * x.size(2), x.size(3)).permute(2, 0, 1)
        both = self.rnns[0](steps)[0]
        both = both.view(both.size(0), both.size(1), 2, -1).sum(2)
        length, batch = both.size(0), both.size(1)
        flat = self.norm(both.view(length * batch, -1)).view(length, batch, -1)
        return self.head(self.rnns[1](flat)[0]).log_softmax(-1).transpose(0, 1)


class MelFrontEnd(nn.Module):
    """A wave's mel spectrogram, in decibels and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("filters", torch.rand(20, 33))
        self.conv = nn.Conv1d(20, 8, 3)

    def forward(self, wave):
        spectrum = torch.stft(wave, 64, 16, window=self.window, center=True, return_complex=True)
        power = spectrum.abs() ** 2
        levels = torch.clamp(self.filters @ power, min=1e-10).log10()
        levels = torch.maximum(levels, levels.amax((1, 2), keepdim=True) - 8.0)
        levels = (levels - levels.mean(-1, keepdim=True)) / (levels.std(-1, keepdim=True) + 1e-5)
        return self.conv(levels)


class WaveNet(nn.Module):
    """Gated dilated convolutions, what each finds added up."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, 16, 1)
        self.gates = nn.ModuleList([nn.Conv1d(16, 32, 2, dilation=2**i) for i in range(4)])
        self.leave = nn.ModuleList([nn.Conv1d(16, 32, 1) for _ in range(4)])
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(16, 16, 1), nn.ReLU(), nn.Conv1d(16, 10, 1))

    def forward(self, x):
        x, total = self.enter(x), 0
        for i, (gate, leave) in enumerate(zip(self.gates, self.leave, strict=True)):
            a, b = gate(F.pad(x, (2**i, 0))).split(16, 1)
            inner, skip = torch.tensor_split(leave(torch.tanh(a) * torch.sigmoid(b)), 2, dim=1)
            x, total = x + inner, total + skip
        return self.head(total)


class Vocoder(nn.Module):
    """HiFi-GAN: transposed convolutions with normed weights, fields of several widths."""

    def __init__(self) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.enter = norm(nn.Conv1d(10, 16, 7, padding=3))
        self.ups = nn.ModuleList([norm(nn.ConvTranspose1d(16, 8, 8, 4, 2)),
                                  norm(nn.ConvTranspose1d(8, 4, 4, 2, 1))])  # fmt: skip
        self.fields = nn.ModuleList([
            nn.ModuleList([norm(nn.Conv1d(c, c, k, dilation=d, padding=(k - 1) * d // 2))
                           for k, d in ((3, 1), (3, 3), (5, 2))])
            for c in (8, 4)
        ])  # fmt: skip
        self.leave = norm(nn.Conv1d(4, 1, 7, padding=3))

    def forward(self, mel):
        x = self.enter(mel)
        for up, fields in zip(self.ups, self.fields, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(x + field(F.leaky_relu(x, 0.1)) for field in fields) / len(fields)
        return torch.tanh(self.leave(F.leaky_relu(x)))


class Speaker(nn.Module):
    """ECAPA: scaled residual convolutions, attentive mean and deviation over time."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Conv1d(10, 16, 5, padding=2), nn.ReLU(), nn.BatchNorm1d(16))
        self.parts = nn.ModuleList([nn.Conv1d(4, 4, 3, padding=d, dilation=d) for d in (1, 2, 3)])
        self.score = nn.Sequential(nn.Conv1d(48, 8, 1), nn.Tanh(), nn.Conv1d(8, 16, 1))
        self.head = nn.Linear(32, 12)

    def forward(self, x):
        x = self.enter(x)
        pieces = list(x.chunk(4, 1))
        for i, part in enumerate(self.parts, 1):
            pieces[i] = F.relu(part(pieces[i] + pieces[i - 1]))
        x = torch.cat(pieces, 1)
        mean = x.mean(2, keepdim=True).expand_as(x)
        spread = x.var(2, keepdim=True).clamp(min=1e-4).sqrt().expand_as(x)
        weights = self.score(torch.cat([x, mean, spread], 1)).softmax(2)
        mean = (x * weights).sum(2)
        spread = ((x**2 * weights).sum(2) - mean**2).clamp(min=1e-4).sqrt()
        return F.normalize(self.head(torch.cat([mean, spread], 1)), p=2.0, dim=1)


class SelectiveScan(nn.Module):
    """Mamba: a state whose steps depend on the input."""

    def __init__(self, width: int = 16, state: int = 4) -> None:
        super().__init__()
        self.state, self.rank = state, 2
        self.enter, self.leave = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.conv = nn.Conv1d(2 * width, 2 * width, 4, groups=2 * width, padding=3)
        self.choose = nn.Linear(2 * width, self.rank + 2 * state, bias=False)
        self.step = nn.Linear(self.rank, 2 * width)
        self.rates = nn.Parameter(torch.log(torch.arange(1.0, state + 1).repeat(2 * width, 1)))
        self.skip = nn.Parameter(torch.ones(2 * width))

    def forward(self, x):
        x, gate = self.enter(x).chunk(2, -1)
        x = F.silu(self.conv(x.mT)[..., : x.shape[1]].mT)
        step, b, c = self.choose(x).split([self.rank, self.state, self.state], -1)
        step = F.softplus(self.step(step))
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.rates))
        change = torch.einsum("bld,bln,bld->bldn", step, b, x)
        state, found = torch.zeros(x.shape[0], x.shape[2], self.state), []
        for i in range(x.shape[1]):
            state = decay[:, i] * state + change[:, i]
            found.append(torch.einsum("bdn,bn->bd", state, c[:, i]))
        return self.leave((torch.stack(found, 1) + x * self.skip) * F.silu(gate))


class LongConvolution(nn.Module):
    """S4D and Hyena: a kernel as long as the sequence, multiplied among frequencies."""

    def __init__(self, width: int = 8, state: int = 4) -> None:
        super().__init__()
        self.rates = nn.Parameter(torch.randn(width, state))
        self.turns = nn.Parameter(torch.randn(width, state) * 3)
        self.read = nn.Parameter(torch.randn(width, state, 2))
        self.skip = nn.Parameter(torch.randn(width))
        self.mix = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1))

    def forward(self, x):
        steps = x.shape[-1]
        exponent = torch.complex(-self.rates.exp(), self.turns) * 0.1
        powers = torch.exp(exponent.unsqueeze(-1) * torch.arange(steps))
        kernel = 2 * torch.einsum("hn,hnl->hl", torch.view_as_complex(self.read), powers).real
        wide = torch.fft.rfft(x, n=2 * steps) * torch.fft.rfft(kernel, n=2 * steps)
        y = torch.fft.irfft(wide, n=2 * steps)[..., :steps] + x * self.skip[:, None]
        return self.mix(F.gelu(y))


class Retention(nn.Module):
    """Attention without a softmax, fading with distance; rotated queries and keys."""

    def __init__(self, width: int = 24, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkvg, self.leave = nn.Linear(width, 4 * width), nn.Linear(width, width)
        self.norm = nn.GroupNorm(heads, width)

    @staticmethod
    def _rotated(x):
        even, odd = x[..., ::2], x[..., 1::2]
        angles = torch.arange(x.shape[-2])[:, None] * 0.3 ** torch.arange(even.shape[-1])
        sin, cos = angles.sin(), angles.cos()
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def forward(self, x):
        batch, steps, width = x.shape
        parts = self.qkvg(x).reshape(batch, steps, 4, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v, g = parts
        fading = 1 - torch.exp2(-5 - torch.arange(self.heads, dtype=torch.float32))
        apart = torch.arange(steps)[:, None] - torch.arange(steps)[None]
        weights = torch.where(apart >= 0, fading[:, None, None] ** apart.clamp(min=0), 0.0)
        y = (self._rotated(q) @ self._rotated(k).transpose(-1, -2) * weights) @ v
        y = self.norm(y.transpose(1, 2).reshape(batch * steps, width)).view(batch, steps, width)
        return self.leave(F.silu(g.transpose(1, 2).reshape(batch, steps, width)) * y)


class TimeMixing(nn.Module):
    """RWKV: exponentially fading sums, computed step by step where they cannot overflow."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.mix = nn.ParameterList([torch.rand(width) for _ in range(3)])
        self.decay, self.first = (nn.Parameter(torch.randn(width)) for _ in range(2))
        self.keys, self.values, self.gates, self.leave = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))

    def forward(self, x):
        before = self.shift(x)
        k, v, r = (
            layer(x * m + before * (1 - m))
            for layer, m in zip((self.keys, self.values, self.gates), self.mix, strict=True)
        )
        top, below, largest = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), None
        largest = torch.full_like(x[:, 0], -1e38)
        found = []
        for i in range(x.shape[1]):
            here = torch.maximum(largest, self.first + k[:, i])
            a, b = torch.exp(largest - here), torch.exp(self.first + k[:, i] - here)
            found.append((a * top + b * v[:, i]) / (a * below + b))
            faded = largest - self.decay.exp()
            largest = torch.maximum(faded, k[:, i])
            a, b = torch.exp(faded - largest), torch.exp(k[:, i] - largest)
            top, below = a * top + b * v[:, i], a * below + b
        return self.leave(torch.sigmoid(r) * torch.stack(found, 1))


class LinearAttention(nn.Module):
    """Running sums of keys times values; random features of a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.register_buffer("directions", torch.linalg.qr(torch.randn(16, 16))[0] * 4)

    def _features(self, x):
        x = x * 16**-0.25
        raw = torch.einsum("...d,md->...m", x, self.directions)
        return torch.exp(raw - (x**2).sum(-1, keepdim=True) / 2) + 1e-4

    def forward(self, x):
        q, k, v = self.qkv(x).tensor_split(3, -1)
        q, k = self._features(q), self._features(k)
        context = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 1)
        below = 1 / torch.einsum("...d,...d->...", q, k.cumsum(1))
        return torch.einsum("...nd,...nde,...n->...ne", q, context, below)


class CachedDecoder(nn.Module):
    """One step of a decoder: keys and values written into caches at the current place."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.qkv = nn.Embedding(50, 32), nn.Linear(32, 96)

    def forward(self, word, place, keys, values):
        q, k, v = self.qkv(self.words(word)).view(1, 1, 3, 4, 8).permute(2, 0, 3, 1, 4)
        keys = keys.index_copy(2, place, k)
        values = values.clone()
        values[:, :, place] = v
        bias = torch.where(torch.arange(keys.shape[2]) <= place, 0.0, float("-inf"))
        slope = (torch.arange(keys.shape[2]) - place) * 2.0 ** -torch.arange(1.0, 5)[:, None]
        mask = bias + slope[:, None]
        found = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask[None])
        return found.flatten(1) @ self.words.weight.mT, keys, values


class BeamStep(nn.Module):
    """Translates with attention over an encoder; the best three hypotheses go on."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell = nn.Embedding(40, 12), nn.GRUCell(24, 12)
        self.encoder, self.head = nn.GRU(12, 12, batch_first=True), nn.Linear(24, 40)

    def forward(self, ids):
        memory, state = self.encoder(self.words(ids))
        memory, state = memory.expand(3, -1, -1), state[0].expand(3, -1)
        scores, words = torch.tensor([0.0, -1e9, -1e9]), torch.ones(3, 1, dtype=torch.long)
        for _ in range(4):
            weights = torch.einsum("bd,bsd->bs", state, memory).softmax(-1)
            context = torch.einsum("bs,bsd->bd", weights, memory)
            state = self.cell(torch.cat([self.words(words[:, -1]), context], -1), state)
            logits = self.head(torch.cat([state, context], -1)).log_softmax(-1)
            scores, best = (scores[:, None] + logits).view(-1).topk(3)
            beam, word = torch.div(best, 40, rounding_mode="floor"), best % 40
            words = torch.cat([words.index_select(0, beam), word[:, None]], 1)
            state = state[beam]
        return words, scores


class AutoCorrelation(nn.Module):
    """Autoformer: a series without its trend, its lags weighed by how alike they are."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.qkv, self.leave = nn.Linear(3, 8), nn.Linear(8, 24), nn.Linear(8, 3)
        self.average = nn.AvgPool1d(5, stride=1)

    def forward(self, x):
        padded = torch.cat([x[:, :1].repeat(1, 2, 1), x, x[:, -1:].repeat(1, 2, 1)], 1)
        trend = self.average(padded.permute(0, 2, 1)).permute(0, 2, 1)
        q, k, v = self.qkv(self.enter(x - trend)).transpose(1, 2).chunk(3, 1)
        alike = torch.fft.irfft(
            torch.fft.rfft(q, dim=-1) * torch.conj(torch.fft.rfft(k, dim=-1)), n=x.shape[1], dim=-1
        )
        weights, lags = torch.topk(alike.mean(1), 3, dim=-1)
        weights = torch.softmax(weights, -1)
        twice = v.repeat(1, 1, 2)
        places = torch.arange(x.shape[1]).view(1, 1, -1).expand(*v.shape)
        found = torch.zeros_like(v)
        for i in range(3):
            rolled = torch.gather(twice, -1, places + lags[:, i].view(-1, 1, 1))
            found = found + rolled * weights[:, i].view(-1, 1, 1)
        return self.leave(found.transpose(1, 2)) + trend


class BasisExpansion(nn.Module):
    """N-BEATS: blocks explain parts of a series, the next ones what is left."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(3)]
        )

    def forward(self, x):
        past, future = torch.linspace(-1, 0, 20), torch.linspace(0, 0.5, 6)
        left, found = x, 0
        for i, block in enumerate(self.blocks):
            a, b = block(left).split(4, -1)
            if i == 0:
                bases = [torch.stack([t**p for p in range(4)]) for t in (past, future)]
            else:
                bases = [
                    torch.cat([torch.cos(2 * math.pi * i * t * f)[None] for f in range(4)])
                    for t in (past, future)
                ]
            left, found = left - a @ bases[0], found + b @ bases[1]
        return found


class FusionTransformer(nn.Module):
    """Chosen variables, gated residual layers, an LSTM, quantiles."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.enter = nn.ModuleList([nn.Linear(1, width) for _ in range(4)])
        self.choose, self.gate = nn.Linear(4 * width, 4), nn.Linear(width, 2 * width)
        self.lstm, self.norm = nn.LSTM(width, width, batch_first=True), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        parts = torch.stack([f(x[..., i : i + 1]) for i, f in enumerate(self.enter)], -1)
        weights = self.choose(parts.flatten(-2)).softmax(-1).unsqueeze(-2)
        chosen = (parts * weights).sum(-1)
        steps, (state, _) = self.lstm(chosen)
        steps = self.norm(chosen + F.glu(self.gate(steps)))
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), diagonal=1)
        seen, weights = self.attention(steps, steps, steps, attn_mask=mask)
        quantiles = self.head(steps + F.elu(seen) + state[-1][:, None])
        return quantiles.sort(-1)[0], weights, F.softplus(quantiles[..., 0])


def _ids(make: Callable[[], nn.Module], words: int, *shape: int) -> Callable[[], Example]:
    return lambda: (make(), (torch.randint(0, words, shape),))


def _cached() -> Example:
    caches = torch.randn(2, 1, 4, 10, 8)
    return CachedDecoder(), (torch.tensor([[7]]), torch.tensor([4]), caches[0], caches[1])


SEQUENCE_NETWORKS: dict[str, Callable[[], Example]] = {
    "conformer": row(Conformer, (2, 9, 24), (1, 17, 24)),
    "tacotron": _ids(Tacotron, 30, 2, 7),
    "deepspeech": row(DeepSpeech, (2, 1, 32, 20)),
    "mel_front_end": row(MelFrontEnd, (2, 400)),
    "wavenet": row(WaveNet, (1, 1, 40)),
    "vocoder": row(Vocoder, (1, 10, 12)),
    "speaker": row(Speaker, (2, 10, 20)),
    "selective_scan": row(SelectiveScan, (2, 6, 16)),
    "long_convolution": row(LongConvolution, (2, 8, 24)),
    "retention": row(Retention, (2, 7, 24)),
    "time_mixing": row(TimeMixing, (2, 6, 16)),
    "linear_attention": row(LinearAttention, (2, 6, 16)),
    "cached_decoder": _cached,
    "beam_search": _ids(BeamStep, 40, 1, 6),
    "autocorrelation": row(AutoCorrelation, (2, 24, 3)),
    "basis_expansion": row(BasisExpansion, (3, 20)),
    "fusion_transformer": row(FusionTransformer, (2, 8, 4)),
}

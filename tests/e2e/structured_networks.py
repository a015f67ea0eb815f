"""Networks of tables, graphs, points, sets and densities as their papers describe them, small."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.networks import Example

from .image_networks import row


class Recommender(nn.Module):
    """DLRM: bags of embeddings, and the products of all pairs of features."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(20, 8, mode=m) for m in ("sum", "mean", "max")])
        self.dense = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(8 + 6, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())

    def forward(self, numbers, ids, starts):
        x = self.dense(numbers)
        features = [x] + [bag(i, s) for bag, i, s in zip(self.bags, ids, starts, strict=True)]
        rows = torch.cat(features, 1).view(x.shape[0], -1, x.shape[1])
        products = torch.bmm(rows, torch.transpose(rows, 1, 2))
        below = torch.tril_indices(rows.shape[1], rows.shape[1], offset=-1)
        return self.top(torch.cat([x, products[:, below[0], below[1]]], 1))


class FactorMachine(nn.Module):
    """DeepFM: second order products by sums of squares, beside a deep part."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.first = nn.Embedding(60, 6), nn.Embedding(60, 1)
        self.register_buffer("starts", torch.tensor([0, 20, 40]))
        self.deep = nn.Sequential(nn.Linear(18, 16), nn.BatchNorm1d(16), nn.ReLU(),
                                  nn.Linear(16, 1))  # fmt: skip

    def forward(self, ids):
        ids = ids + self.starts
        rows = self.words(ids)
        pairs = 0.5 * (rows.sum(1).square() - rows.square().sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.first(ids).sum(1) + pairs + self.deep(rows.flatten(1))).squeeze(1)


class Interest(nn.Module):
    """DIN: what a user did is weighed by how near it is to what is offered."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(50, 8, padding_idx=0)
        self.score = nn.Sequential(nn.Linear(32, 16), nn.PReLU(), nn.Linear(16, 1))
        self.head = nn.Linear(16, 2)

    def forward(self, history, offered):
        past, item = self.items(history), self.items(offered).unsqueeze(1)
        item = item.expand(-1, past.shape[1], -1)
        scores = self.score(torch.cat([item, past, item - past, item * past], -1)).squeeze(-1)
        scores = scores.masked_fill(history == 0, -(2.0**32) + 1)
        seen = (scores.softmax(1).unsqueeze(1) @ past).squeeze(1)
        return F.log_softmax(self.head(torch.cat([seen, item[:, 0]], 1)), dim=1)


class Experts(nn.Module):
    """Each word goes to its two best experts, as many words to each as it has room for."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(16, 4, bias=False)
        self.enter, self.leave = (nn.Parameter(torch.randn(4, 16, 16) * 0.2) for _ in range(2))

    def forward(self, x):
        words = x.flatten(0, 1)
        weights, chosen = torch.topk(self.router(words).softmax(-1), 2)
        weights = weights / weights.sum(-1, keepdim=True)
        found = torch.zeros_like(words)
        for i in range(2):
            mask = F.one_hot(chosen[:, i], 4)
            place = (torch.cumsum(mask, 0) * mask - 1).max(-1).values
            fits = F.one_hot(place.clamp(0, 5), 6) * (place < 6).long()[:, None]
            sent = (mask[:, :, None] * fits[:, None]).to(x.dtype)
            inside = torch.einsum("sec,sm->ecm", sent, words)
            outside = torch.bmm(F.gelu(torch.bmm(inside, self.enter)), self.leave)
            found.addcmul_(torch.einsum("sec,ecm->sm", sent, outside), weights[:, i : i + 1])
        return found.view_as(x)


class GraphConvolution(nn.Module):
    """Neighbours' means by degrees: added at indices, and as a sparse matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, nodes, edges):
        count = nodes.size(0)
        own = torch.arange(count)
        source, target = torch.cat([edges[0], own]), torch.cat([edges[1], own])
        degree = torch.bincount(target, minlength=count).to(nodes.dtype)
        norm = degree.pow(-0.5)
        norm = norm.masked_fill(torch.isinf(norm), 0.0)
        weights = norm[source] * norm[target]
        x = self.first(nodes)
        x = torch.zeros(count, 8).index_add_(0, target, x[source] * weights[:, None]).relu()
        dense = torch.zeros(count, count).index_put_((target, source), weights, accumulate=True)
        return dense @ self.second(x)


class GraphAttention(nn.Module):
    """A softmax over the edges that come to each node, for several heads; a mean over graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Linear(6, 12, bias=False)
        self.source, self.target = (nn.Parameter(torch.randn(1, 3, 4)) for _ in range(2))

    def forward(self, nodes, edges, graphs):
        count, (source, target) = nodes.shape[0], edges.unbind(0)
        x = self.values(nodes).view(-1, 3, 4)
        a, b = (x * self.source).sum(-1), (x * self.target).sum(-1)
        scores = F.leaky_relu(a.index_select(0, source) + b.index_select(0, target), 0.2)
        at = target[:, None].expand_as(scores)
        most = torch.zeros(count, 3).scatter_reduce(0, at, scores, "amax", include_self=False)
        weights = (scores - most.gather(0, at)).exp()
        total = torch.zeros(count, 3).scatter_add_(0, at, weights) + 1e-16
        weights = weights / total.gather(0, at)
        messages = x[source] * weights.unsqueeze(-1)
        found = torch.zeros_like(x).index_reduce(0, target, messages, "mean", include_self=False)
        found = F.elu(found.flatten(1))
        size = torch.ones(count).new_zeros(2).scatter_add(0, graphs, torch.ones(count))
        return torch.zeros(2, 12).index_add(0, graphs, found) / size.clamp(min=1).unsqueeze(1)


class Points(nn.Module):
    """PointNet++ and DGCNN: nearest neighbours of points, the largest over each neighbourhood."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = nn.Sequential(nn.Conv2d(6, 12, 1), nn.BatchNorm2d(12), nn.LeakyReLU(0.2))
        self.turn = nn.Sequential(nn.Linear(12, 9))
        self.head = nn.Conv1d(15, 8, 1)

    def forward(self, points):
        apart = torch.cdist(points, points)
        near = apart.topk(4, dim=-1, largest=False)[1]
        batch, count, _ = points.shape
        flat = (near + torch.arange(batch).view(-1, 1, 1) * count).view(-1)
        around = points.reshape(batch * count, -1)[flat].view(batch, count, 4, 3)
        middle = points.view(batch, count, 1, 3).repeat(1, 1, 4, 1)
        features = torch.cat((around - middle, middle), 3).permute(0, 3, 1, 2)
        x = self.edges(features).max(dim=-1, keepdim=False)[0]
        matrix = self.turn(x.amax(2)).view(-1, 3, 3) + torch.eye(3).unsqueeze(0)
        turned = torch.baddbmm(torch.zeros(1), points, matrix).transpose(1, 2)
        return self.head(torch.cat([x, turned], 1)).max(2).values, self._farthest(points)

    @staticmethod
    def _farthest(points):
        """Points each of which is as far as can be from those before."""
        batch, count, _ = points.shape
        nearest, last = torch.full((batch, count), 1e10), torch.zeros(batch, dtype=torch.long)
        chosen, rows = [], torch.arange(batch)
        for _ in range(4):
            chosen.append(last)
            away = ((points - points[rows, last][:, None]) ** 2).sum(-1)
            nearest = torch.where(away < nearest, away, nearest)
            last = torch.max(nearest, -1)[1]
        return torch.stack(chosen, 1)


class SetTransformer(nn.Module):
    """Attention to learnt points, and a pooling by attention."""

    def __init__(self) -> None:
        super().__init__()
        self.points, self.seed = (nn.Parameter(torch.randn(1, n, 16)) for n in (4, 1))
        self.layers = nn.ModuleList([nn.MultiheadAttention(16, 4, batch_first=True)
                                     for _ in range(3)])  # fmt: skip

    def forward(self, x):
        absent = x.abs().sum(-1) < 0.5
        inner = self.layers[0](self.points.expand(x.size(0), -1, -1), x, x, absent)[0]
        x = self.layers[1](x, inner, inner)[0]
        return self.layers[2](self.seed.repeat(x.size(0), 1, 1), x, x, key_padding_mask=absent)


class CouplingFlow(nn.Module):
    """RealNVP and Glow: scales by halves, turned channels, log determinants; and back again."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            [nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 6)) for _ in range(2)]
        )
        self.turn = nn.Parameter(torch.linalg.qr(torch.randn(6, 6))[0] + 0.1 * torch.eye(6))
        self.scale = nn.Parameter(torch.randn(6) * 0.1)

    def forward(self, x):
        z, total = x * self.scale.exp(), self.scale.sum().expand(x.shape[0])
        for net in self.nets:
            fixed, other = z.chunk(2, 1)
            s, t = net(fixed).chunk(2, 1)
            s = torch.tanh(s)
            z = torch.cat([fixed, other * s.exp() + t], 1) @ self.turn
            total = total + s.sum(1) + torch.linalg.slogdet(self.turn)[1]
        normal = -0.5 * (z**2 + math.log(2 * math.pi)).sum(-1)
        back = z
        for net in reversed(self.nets):
            fixed, other = torch.linalg.solve(self.turn.mT, back.mT).mT.chunk(2, 1)
            s, t = net(fixed).chunk(2, 1)
            back = torch.cat([fixed, (other - t) * torch.exp(-torch.tanh(s))], 1)
        return normal + total, back * torch.exp(-self.scale)


class SplineFlow(nn.Module):
    """Rational quadratic splines: knots by sums, bins by search."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2 * 17))

    def forward(self, x):
        fixed, y = x[:, :2], x[:, 2:].clamp(-2.9, 2.9)
        raw = self.net(fixed).view(-1, 2, 17)
        widths, heights, slopes = raw.split([6, 6, 5], -1)
        slopes = F.pad(F.softplus(slopes) + 1e-3, (1, 1), value=1.0)
        knots = []
        for part in (widths, heights):
            part = 1e-2 + (1 - 6e-2) * part.softmax(-1)
            edges = F.pad(part.cumsum(-1), (1, 0)) * 6 - 3
            knots.append((edges, edges[..., 1:] - edges[..., :-1]))
        (xs, dx), (ys, dy) = knots
        bins = (torch.searchsorted(xs, y[..., None], right=True) - 1).clamp(0, 5)
        x0, w, y0, h = (part.gather(-1, bins)[..., 0] for part in (xs, dx, ys, dy))
        d0, d1 = (part.gather(-1, bins)[..., 0] for part in (slopes, slopes[..., 1:]))
        t, slope = (y - x0) / w, h / w
        below = slope + (d0 + d1 - 2 * slope) * t * (1 - t)
        found = y0 + h * (slope * t**2 + d0 * t * (1 - t)) / below
        steep = slope**2 * (d1 * t**2 + 2 * slope * t * (1 - t) + d0 * (1 - t) ** 2) / below**2
        return torch.cat([fixed, found], 1), steep.log().sum(1)


class MaskedDensity(nn.Module):
    """MADE: each output sees the inputs before it; a mixture of normal densities."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(5, 16), nn.Linear(16, 5 * 9)])
        places, hidden = torch.arange(5), torch.arange(16) % 4
        self.register_buffer("first", (hidden[:, None] >= places).float())
        self.register_buffer("last", (places.repeat_interleave(9)[:, None] > hidden).float())

    def forward(self, x):
        h = F.relu(F.linear(x, self.layers[0].weight * self.first, self.layers[0].bias))
        out = F.linear(h, self.layers[1].weight * self.last, self.layers[1].bias)
        weights, means, spreads = out.view(-1, 5, 3, 3).unbind(-1)
        spreads = spreads.clamp(-5, 5)
        each = -0.5 * ((x[..., None] - means) * torch.exp(-spreads)) ** 2 - spreads
        return torch.logsumexp(each + weights.log_softmax(-1), -1).sum(-1)


class Equation(nn.Module):
    """A field that is integrated by Runge and Kutta's steps; its trace by derivatives."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 16), nn.Linear(16, 2)

    def field(self, t: float, y: Tensor) -> Tensor:
        time = torch.full_like(y[..., :1], t)
        return self.b(F.softplus(self.a(torch.cat([y, time], -1))))

    def forward(self, y):
        step = 0.25
        for i in range(4):
            t = i * step
            k1 = self.field(t, y)
            k2 = self.field(t + step / 2, y + step / 2 * k1)
            k3 = self.field(t + step / 2, y + step / 2 * k2)
            k4 = self.field(t + step, y + step * k3)
            y = y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y


class SplineNetwork(nn.Module):
    """KAN: each edge is a spline, evaluated by the recursion of de Boor and Cox."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("grid", torch.linspace(-2.2, 2.2, 12).expand(3, -1).contiguous())
        self.weights, self.base = nn.Parameter(torch.randn(5, 3, 8)), nn.Linear(3, 5)

    def forward(self, x):
        g, y = self.grid, x.unsqueeze(-1)
        bases = ((y >= g[:, :-1]) & (y < g[:, 1:])).to(x.dtype)
        for k in range(1, 4):
            left = (y - g[:, : -(k + 1)]) / (g[:, k:-1] - g[:, : -(k + 1)]) * bases[..., :-1]
            right = (g[:, k + 1 :] - y) / (g[:, k + 1 :] - g[:, 1:-k]) * bases[..., 1:]
            bases = left + right
        splines = F.linear(bases.view(x.size(0), -1), self.weights.view(5, -1))
        return self.base(F.silu(x)) + splines


class TabularAttention(nn.Module):
    """TabNet: features chosen by a sparse softmax, step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.enter = nn.BatchNorm1d(8), nn.Linear(8, 16)
        self.steps = nn.ModuleList([nn.Linear(8, 16) for _ in range(2)])
        self.attend = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    @staticmethod
    def _sparse_softmax(x):
        ordered, _ = torch.sort(x, dim=-1, descending=True)
        sums = ordered.cumsum(-1) - 1
        ranks = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
        support = (ranks * ordered > sums).sum(-1, keepdim=True)
        return torch.clamp(x - sums.gather(-1, support - 1) / support.to(x.dtype), min=0)

    def forward(self, x):
        x = self.norm(x)
        prior, found = torch.ones_like(x), 0
        state = F.glu(self.enter(x))
        for attend, step in zip(self.attend, self.steps, strict=True):
            mask = self._sparse_softmax(attend(state) * prior)
            prior = prior * (1.3 - mask)
            state = (state + F.glu(step(mask * x))) * math.sqrt(0.5)
            found = found + F.relu(state)
        return found, prior


class Radiance(nn.Module):
    """NeRF: waves of places, densities along rays, and what reaches the eye."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(27, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.density, self.colour = nn.Linear(32, 1), nn.Linear(32 + 3, 3)

    def forward(self, origins, directions):
        depths = torch.linspace(1.0, 3.0, 8)
        places = origins[:, None] + directions[:, None] * depths[None, :, None]
        waves = [f(places * 2.0**i) for i in range(4) for f in (torch.sin, torch.cos)]
        h = self.trunk(torch.cat([places, *waves], -1))
        density = F.relu(self.density(h)).squeeze(-1)
        views = F.normalize(directions, dim=-1)[:, None].expand_as(places)
        colour = torch.sigmoid(self.colour(torch.cat([h, views], -1)))
        gaps = torch.cat([depths.diff(), torch.tensor([1e10])]) * directions.norm(dim=-1)[:, None]
        opaque = 1 - torch.exp(-density * gaps)
        through = torch.cat([torch.ones_like(opaque[:, :1]), 1 - opaque + 1e-10], -1)
        weights = opaque * torch.cumprod(through, -1)[:, :-1]
        return (weights[..., None] * colour).sum(1), (weights * depths).sum(-1)


def _recommender() -> Example:
    ids, starts = torch.randint(0, 20, (3, 9)), torch.tensor([[0, 2, 5, 7]] * 3)
    return Recommender(), (torch.randn(4, 5), ids, starts)


def _edges() -> torch.Tensor:
    return torch.randint(0, 10, (2, 30))


def _attention() -> Example:
    return GraphAttention(), (torch.randn(10, 6), _edges(), torch.arange(10) // 5)


def _interest() -> Example:
    return Interest(), (torch.randint(0, 50, (3, 6)), torch.randint(1, 50, (3,)))


STRUCTURED_NETWORKS: dict[str, Callable[[], Example]] = {
    "dlrm": _recommender,
    "deepfm": lambda: (FactorMachine(), (torch.randint(0, 20, (5, 3)),)),
    "interest": _interest,
    "experts": row(Experts, (2, 6, 16)),
    "graph_convolution": lambda: (GraphConvolution(), (torch.randn(10, 6), _edges())),
    "graph_attention": _attention,
    "points": row(Points, (2, 12, 3)),
    "set_transformer": row(SetTransformer, (2, 7, 16)),
    "coupling_flow": row(CouplingFlow, (4, 6)),
    "spline_flow": row(SplineFlow, (4, 4)),
    "masked_density": row(MaskedDensity, (4, 5)),
    "differential_equation": row(Equation, (4, 2)),
    "spline_network": row(SplineNetwork, (4, 3)),
    "tabnet": row(TabularAttention, (4, 8)),
    "radiance": row(Radiance, (5, 3), (5, 3)),
}

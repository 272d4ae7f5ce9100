"""PyTorch's own ways to train: scalers, functional transforms, checkpoints, wrappers, closures, custom functions."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

FRAMEWORKS = ("torch.func", "torch.utils.checkpoint", "torch.distributed")
SECOND_TIME = "second time"

ONE_PROCESS = """
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def setup():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    dist.init_process_group("gloo", rank=0, world_size=1)
"""

MISTAKES = {
    "GradScaler, state": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        """
def main():
    cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    h = torch.zeros(2, 4)
    for x in torch.randn(4, 2, 3):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = cell(x, @@)
            loss = head(h).float().pow(2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(cell.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return cell
""",
        SECOND_TIME,
    ),
    "GradScaler, a total": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    total = 0.0
    for x in torch.randn(4, 2, 3):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = net(x).float().pow(2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total = total + @@
    print(total / 4)
    return total
""",
    ),
    "DistributedDataParallel, state": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        ONE_PROCESS
        + """
def main():
    setup()
    cell = DDP(nn.GRUCell(3, 4))
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    h = torch.zeros(2, 4)
    for x in torch.randn(4, 2, 3):
        h = cell(x, @@)
        optimizer.zero_grad()
        h.pow(2).mean().backward()
        optimizer.step()
    dist.destroy_process_group()
    return cell.module
""",
        SECOND_TIME,
    ),
    "DistributedDataParallel, a total that is reduced": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        ONE_PROCESS
        + """
def main():
    setup()
    net = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = torch.zeros(())
    for i, x in enumerate(torch.randn(4, 2, 3)):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total + @@
    average = total.detach().clone()
    dist.all_reduce(average)
    print(average)
    dist.destroy_process_group()
    return total
""",
    ),
    "DataParallel, a discriminator's step": Mistake(
        ("GM201",),
        "fake",
        "fake.detach()",
        """
def main():
    G, D = nn.DataParallel(nn.Linear(3, 4)), torch.nn.DataParallel(nn.Linear(4, 1))
    g_opt, d_opt = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.module.parameters(), 0.1)
    for real in torch.randn(3, 2, 4):
        fake = G(torch.randn(2, 3))
        d_opt.zero_grad()
        (F.softplus(-D(real)).mean() + F.softplus(D(@@)).mean()).backward()
        d_opt.step()
        g_opt.zero_grad()
        F.softplus(-D(fake)).mean().backward()
        g_opt.step()
    return G.module, D.module
""",
        SECOND_TIME,
    ),
    "a compiled model, state": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        """
def main():
    cell = torch.compile(nn.GRUCell(3, 4), backend="eager")
    head = nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    h = torch.zeros(2, 4)
    for x in torch.randn(4, 2, 3):
        h = cell(x, @@)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return head
""",
        SECOND_TIME,
    ),
    "a compiled step, a total": Mistake(
        ("GM102",),
        "step(x)",
        "step(x).detach()",
        """
def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    total = torch.zeros(())
    for x in torch.randn(4, 2, 3):
        total = total + @@
    print(total / 4)
    return total
""",
    ),
    "checkpoints, state": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        """
from torch.utils.checkpoint import checkpoint

def main():
    cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    h = torch.zeros(2, 4)
    for x in torch.randn(4, 2, 3):
        h = checkpoint(cell, x, @@, use_reentrant=False)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return cell
""",
        "second time|modified by an inplace operation",
    ),
    "functional_call, an inner gradient without a graph": Mistake(
        ("GM302",),
        "",
        ", create_graph=True",
        """
from torch.func import functional_call

def main():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    outer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 2, 3):
        weights = dict(model.named_parameters())
        inner = functional_call(model, weights, (x,)).pow(2).mean()
        gradients = torch.autograd.grad(inner, weights.values()@@)
        weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), gradients)}
        loss = functional_call(model, weights, (x,)).abs().mean()
        outer.zero_grad()
        loss.backward()
        outer.step()
    return model
""",
        unsafe=True,
    ),
    "LBFGS, losses kept by the closure": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
def main():
    net = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        losses.append(@@)
        return loss

    for step in range(3):
        optimizer.step(closure)
    print(sum(losses) / len(losses))
    return losses
""",
    ),
    "LBFGS, what it gives back added up": Mistake(
        ("GM102",),
        "optimizer.step(closure)",
        "optimizer.step(closure).detach()",
        """
def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
    total = 0.0
    for x in torch.randn(3, 8, 3):
        def closure():
            optimizer.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            return loss

        total = total + @@
    print(total / 3)
    return total
""",
    ),
    "a function of one's own, state": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        """
class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * (1 - y * y)

def main():
    layer = nn.Linear(7, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    h = torch.zeros(2, 4)
    for x in torch.randn(4, 2, 3):
        h = Tanh.apply(layer(torch.cat([x, @@], dim=1)))
        loss = h.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layer
""",
        SECOND_TIME,
    ),
    "gradient norms kept": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    norms, losses = [], []
    for x in torch.randn(4, 2, 3):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0))
        optimizer.step()
        losses.append(@@)
    print(sum(norms), sum(losses))
    return norms, losses
""",
    ),
}

SAM = """
class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **options):
        super().__init__(params, dict(rho=rho, **options))
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old"] = p.data.clone()
                p.add_(p.grad * group["rho"])
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.data = self.state[p]["old"]
        self.base.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()
"""

RIGHT = {
    "GradScaler, accumulated": """
def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    total = 0.0
    for i, x in enumerate(torch.randn(4, 2, 3)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = net(x).float().pow(2).mean() / 2
        scaler.scale(loss).backward()
        if i % 2:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        total += loss.item()
    return total
""",
    "SAM with two forward passes": SAM
    + """
def main():
    net = nn.Linear(3, 1)
    optimizer = SAM(net.parameters(), torch.optim.SGD, lr=0.1)
    total = 0.0
    for x in torch.randn(4, 2, 3):
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.first_step(zero_grad=True)
        net(x).pow(2).mean().backward()
        optimizer.second_step(zero_grad=True)
        total += loss.item()
    return total
""",
    "SAM with a closure": SAM
    + """
def main():
    net = nn.Linear(3, 1)
    optimizer = SAM(net.parameters(), torch.optim.SGD, lr=0.1)
    for x in torch.randn(4, 2, 3):
        def closure():
            loss = net(x).pow(2).mean()
            loss.backward()
            return loss

        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step(closure)
        optimizer.zero_grad()
    return net
""",
    "LBFGS": """
def main():
    net = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3, line_search_fn="strong_wolfe")
    losses = []
    for step in range(3):
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            if loss.requires_grad:
                loss.backward()
            return loss

        loss = optimizer.step(closure)
        losses.append(loss.item())
    return losses
""",
    "functional transforms": """
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, vmap

def main():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    weights = {name: p.detach() for name, p in model.named_parameters()}
    losses = []

    def loss_of(weights, x):
        return functional_call(model, weights, (x,)).pow(2).mean()

    for x in torch.randn(4, 2, 3):
        gradients, loss = grad_and_value(loss_of)(weights, x)
        weights = {name: w - 0.1 * gradients[name] for name, w in weights.items()}
        losses.append(loss)
    single = vmap(grad(loss_of), in_dims=(None, 0))(weights, torch.randn(5, 3))
    curvature = hessian(lambda x: loss_of(weights, x))(torch.randn(3))
    slopes = jacrev(lambda x: functional_call(model, weights, (x,)))(torch.randn(3))
    assert not any(loss.requires_grad for loss in losses)
    return losses, single, curvature, slopes
""",
    "functional_call through an inner step": """
from torch.func import functional_call

def main():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    outer = torch.optim.SGD(model.parameters(), lr=0.1)
    for episode in range(3):
        total = 0.0
        for x in torch.randn(2, 4, 3):
            weights = dict(model.named_parameters())
            for _ in range(2):
                inner = functional_call(model, weights, (x,)).pow(2).mean()
                gradients = torch.autograd.grad(inner, weights.values(), create_graph=True)
                weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), gradients)}
            total = total + functional_call(model, weights, (x,)).pow(2).mean()
        outer.zero_grad()
        total.backward()
        outer.step()
    return model
""",
    "checkpoints": """
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return checkpoint_sequential(nn.Sequential(*self.layers), 2, x, use_reentrant=False)

def main():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = 0.0
    for x in torch.randn(4, 2, 3):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += float(loss)
    return total
""",
    "DistributedDataParallel, accumulated": ONE_PROCESS
    + """
def main():
    setup()
    net = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = torch.zeros(())
    for i, x in enumerate(torch.randn(4, 2, 3)):
        if i % 2 == 0:
            with net.no_sync():
                net(x).pow(2).mean().backward()
            continue
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        reduced = loss.detach().clone()
        dist.all_reduce(reduced)
        total += reduced / dist.get_world_size()
    dist.destroy_process_group()
    return total
""",
    "a compiled model": """
def main():
    net = torch.compile(nn.Linear(3, 1), backend="eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def loss_of(x):
        return net(x).pow(2).mean()

    total = 0.0
    for x in torch.randn(4, 2, 3):
        loss = loss_of(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total
""",
    "a function of one's own": """
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.scale * gradient, None

def main():
    body, one, two = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.1)
    for x in torch.randn(4, 2, 3):
        features = body(x)
        loss = one(features).pow(2).mean() + two(Reverse.apply(features, 0.5)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return body
""",
    "averaged and clipped": """
from torch.optim.swa_utils import AveragedModel, SWALR

def main():
    net = nn.Linear(3, 1)
    averaged = AveragedModel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = SWALR(optimizer, swa_lr=0.05)
    norms = []
    for x in torch.randn(4, 2, 3):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), 1.0))
        nn.utils.clip_grad_value_(net.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        averaged.update_parameters(net)
    assert not any(norm.requires_grad for norm in norms)
    return norms
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)

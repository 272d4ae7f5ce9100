"""GM302: gradients that are differentiated again and have no graph."""

from __future__ import annotations

from tests.codemods.mending import changed_lines, findings

EQUATION = """
    import torch

    network = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(network.parameters())
    for step in range(5):
        x = torch.rand(16, 1, requires_grad=True)
        u = network(x)
        {derivatives}
        loss = ({residual}).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
FIRST = "u_x = torch.autograd.grad(u.sum(), x{flag})[0]"
SECOND = "u_xx = torch.autograd.grad(u_x.sum(), x{flag})[0]"
THIRD = "u_xxx = torch.autograd.grad(u_xx.sum(), x{flag})[0]"


def _changes(lines: list[str], residual: str) -> list[str]:
    derivatives = "\n        ".join(line.format(flag="") for line in lines)
    return changed_lines(EQUATION.format(derivatives=derivatives, residual=residual), "GM302")


def _flagged(lines: list[str]) -> list[str]:
    return [
        *("-" + line.format(flag="") for line in lines),
        *("+" + line.format(flag=", create_graph=True") for line in lines),
    ]


def test_every_derivative_of_a_residual_gets_its_graph() -> None:
    assert _changes([FIRST, SECOND], "u_xx + u") == _flagged([FIRST, SECOND])


def test_third_order() -> None:
    assert _changes([FIRST, SECOND, THIRD], "u_xxx + u") == _flagged([FIRST, SECOND, THIRD])


def test_last_derivative_needs_no_graph_where_it_is_only_looked_at() -> None:
    source = """
        import torch

        x = torch.linspace(0, 1, 5, requires_grad=True)
        (first,) = torch.autograd.grad((x**3).sum(), x)
        (second,) = torch.autograd.grad(first.sum(), x)
        print(second)
    """
    assert changed_lines(source, "GM302") == [
        "-(first,) = torch.autograd.grad((x**3).sum(), x)",
        "+(first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)",
    ]


def test_two_second_derivatives_of_one_first() -> None:
    other = "u_xy = torch.autograd.grad(u_x.pow(2).sum(), x{flag})[0]"
    assert _changes([FIRST, SECOND, other], "u_xx + u_xy") == _flagged([FIRST, SECOND, other])


def test_a_gradient_that_is_detached_by_hand_is_a_target() -> None:
    source = """
        import torch
        from torch import nn

        model, loss = nn.Linear(3, 2), nn.CrossEntropyLoss()
        x, y = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
        target = torch.autograd.grad(loss(model(x), y), model.parameters())
        {kept}
        guess = torch.randn(4, 3).requires_grad_(True)
        optimizer = torch.optim.Adam([guess])
        for _ in range(10):
            optimizer.zero_grad()
            found = torch.autograd.grad(loss(model(guess), y), model.parameters(), create_graph=True)
            difference = 0
            for one, other in zip(found, target):
                difference += (one - other).pow(2).sum()
            difference.backward()
            optimizer.step()
    """
    for kept in (
        "target = [one.detach() for one in target]",
        "target = list((one.detach().clone() for one in target))",
    ):
        assert findings(source.replace("{kept}", kept), "GM302") == []

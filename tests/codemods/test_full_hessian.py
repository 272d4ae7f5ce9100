"""GM501: a Hessian row by row where its product with a vector serves."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradmend import codemods
from gradmend.codemods import full_hessian
from tests import runtime

from .mending import findings

SETTING = """
import torch
from torch import nn
from torch.autograd import grad

torch.manual_seed(0)
x, v = torch.randn(20, requires_grad=True), torch.randn(20)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
loss = (x.sin() * x.roll(1)).sum()
(g,) = torch.autograd.grad(loss, x, create_graph=True)
"""

REPORTED = {
    "rows in a list": """
        rows = []
        for i in range(len(x)):
            rows.append(torch.autograd.grad(g[i], x, retain_graph=True)[0])
        product = torch.stack(rows) @ v
        """,
    "rows in a matrix": """
        hessian = torch.zeros(20, 20)
        for i in range(x.numel()):
            hessian[i] = grad(g[i], x, retain_graph=True)[0]
        product = hessian.mv(v)
        """,
    "rows by way of a variable": """
        hessian = torch.zeros(20, 20)
        for i in range(x.shape[0]):
            (row,) = torch.autograd.grad(g[i], x, retain_graph=True)
            hessian[i, :] = row
        curvature = v @ hessian @ v
        """,
    "a comprehension": """
        hessian = torch.stack([torch.autograd.grad(g[i], x, retain_graph=True)[0] for i in range(g.numel())])
        product = torch.mv(hessian, v)
        """,
    "the components themselves": """
        rows = []
        for component in g:
            rows.append(torch.autograd.grad(component, x, retain_graph=True)[0])
        hessian = torch.stack(rows)
        product = torch.matmul(hessian, v)
        """,
    "every parameter of a network": """
        parameters = list(net.parameters())
        loss = net(torch.randn(5, 3)).pow(2).mean()
        grads = torch.autograd.grad(loss, parameters, create_graph=True)
        flat = torch.cat([part.reshape(-1) for part in grads])
        rows = []
        for i in range(flat.numel()):
            row = torch.autograd.grad(flat[i], parameters, retain_graph=True)
            rows.append(torch.cat([part.reshape(-1) for part in row]))
        eigenvalues = torch.linalg.eigvalsh(torch.stack(rows))
        """,
}

LEFT_ALONE = {
    "a product": """
        (product,) = torch.autograd.grad(g, x, grad_outputs=v)
        """,
    "several products": """
        products = []
        for vector in torch.randn(5, 20):
            products.append(torch.autograd.grad(g, x, grad_outputs=vector, retain_graph=True)[0])
        """,
    "its eigenvalues": """
        rows = []
        for i in range(len(x)):
            rows.append(torch.autograd.grad(g[i], x, retain_graph=True)[0])
        values = torch.linalg.eigvalsh(torch.stack(rows))
        """,
    "its solution": """
        hessian = torch.zeros(20, 20)
        for i in range(len(x)):
            hessian[i] = torch.autograd.grad(g[i], x, retain_graph=True)[0]
        step = torch.linalg.solve(hessian, v)
        """,
    "a product and itself": """
        rows = []
        for i in range(len(x)):
            rows.append(torch.autograd.grad(g[i], x, retain_graph=True)[0])
        hessian = torch.stack(rows)
        print(hessian)
        product = hessian @ v
        """,
    "handed on": """
        def whole():
            rows = []
            for i in range(len(x)):
                rows.append(torch.autograd.grad(g[i], x, retain_graph=True)[0])
            return torch.stack(rows)

        product = whole() @ v
        """,
    "a Laplacian": """
        laplacian = 0
        for i in range(len(x)):
            laplacian = laplacian + torch.autograd.grad(g[i], x, retain_graph=True)[0][i]
        """,
    "three coordinates": """
        rows = []
        for i in range(3):
            rows.append(torch.autograd.grad(g[i], x, retain_graph=True)[0])
        product = torch.stack(rows) @ v
        """,
    "a Jacobian": """
        out = net(x[:3])
        rows = []
        for i in range(len(out)):
            rows.append(torch.autograd.grad(out[i], x, retain_graph=True)[0])
        product = torch.stack(rows) @ v
        """,
    "by another input": """
        y = torch.ones(20, requires_grad=True)
        (h,) = torch.autograd.grad((x * y).pow(2).sum(), x, create_graph=True)
        rows = []
        for i in range(len(x)):
            rows.append(torch.autograd.grad(h[i], y, retain_graph=True)[0])
        product = torch.stack(rows) @ v
        """,
    "a batch of small ones": """
        points = torch.randn(50, 3, requires_grad=True)
        (h,) = torch.autograd.grad(net(points).sum(), points, create_graph=True)
        rows = []
        for i in range(points.shape[1]):
            rows.append(torch.autograd.grad(h[:, i].sum(), points, retain_graph=True)[0])
        product = torch.stack(rows, 1) @ torch.randn(3)
        """,
}


@pytest.mark.parametrize("name", REPORTED)
def test_reports(name: str) -> None:
    source = SETTING + dedent(REPORTED[name])
    (finding,) = findings(source, "GM501")
    assert "hvp" in finding.message
    assert finding.repair is None
    assert codemods.mend(source, unsafe=True, select=frozenset({"GM501"})).source == source


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_leaves_alone(name: str) -> None:
    assert findings(SETTING + dedent(LEFT_ALONE[name]), "GM501") == []


@pytest.mark.parametrize("name", [*REPORTED, *LEFT_ALONE])
def test_all_of_them_run(name: str) -> None:
    lines = (SETTING + dedent((REPORTED | LEFT_ALONE)[name])).splitlines()
    script = "def main():\n" + "".join(f"    {line}\n" for line in lines)
    assert runtime.run_source(script.encode()).error is None


def test_the_page_shows_the_mistake_and_what_to_do_instead() -> None:
    page = (full_hessian.__doc__ or "").split("```python\n")
    wrong, right = page[1].partition("```")[0], page[2].partition("```")[0]
    assert {finding.code for finding in codemods.scan(wrong)} == {"GM501"}
    assert codemods.scan(right) == []
    products = [_product(source) for source in (wrong, right)]
    assert runtime.same(products[0].values, products[1].values)


def _product(source: str) -> runtime.Outcome:
    body = "".join(f"    {line}\n" for line in source.replace("import torch\n", "").splitlines())
    script = f"import torch\n\ndef main():\n    torch.manual_seed(0)\n{body}    return product\n"
    return runtime.run_source(script.encode())

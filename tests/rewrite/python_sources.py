"""Python text to try edits on: training code, the standard library, and layouts that few people write."""

from __future__ import annotations

import ast
import contextlib
import heapq
import random
import textwrap
from functools import cache
from pathlib import Path

from gradmend.codemods.analysis.source import Source

ROOT = Path(__file__).parents[2]

ODD_LAYOUTS = (
    "if x: y = f(1); z(y)  # both\nelse: z(0)\n",
    "for i in range(3): total += f(i, retain_graph=True)\nprint(total)",
    "class A: x = 1\nclass B: pass\n",
    "def f(a, b = g(1,)): return a; \n",
    "while True:\n\tif a:\n\t\tf(a)\n\t\t# the end\n\telse: f(b); break\nf(c)\n",
    "with a as b, \\\n     c as d: f(b); g(d)\n",
    "x = 1; \\\n y = f(x)\nif x: \\\n    y = 2\n",
    "\x0cclass C:\n\x0c    def f(self):\n        return [a\n , b]\n",
    "@decorator\n@other(1,\n       2)\nasync def f(x):\n    async with x: await g(x, k=1)\n",
    "é = f('é', ü=1, ñ=(2)); g(é)\nname = 'ä' 'ö'.join(é)\n",
    "try: f()\nexcept (A, B): g()\nexcept C: pass\nelse: h()\nfinally: i()\n",
    "match f(x):\n  case (1 |\n        2): g()\n  case A(b=c): h(); i()\n  case _:\n    j()\n",
    "text = '''\n  a\nb''' + f(\"\"\"\n\tc\"\"\", d)\nf(text)\n",
    "f(  # why\n    a,  # first\n    *b,\n\n    k=1,  # last\n)\nf(\n    a,\n    k=2)\nf(a, k=3,)\nf( k=4 )\n",
    "a = lambda: (yield)\nb = (a), (b)\nc = -a ** b\nd = [x for x in (a) if (b)]\ne = any(x for x in a)\n",
    "if a:\n    pass\nelif b: f(x)\nelif (c and\n      d):\n    g(x)\nelse:\n    # nothing\n    h(x)\n",
    "x = (a  # comment (\n     + b)\ny = f(x, # (\n  a + b)\nz = {**a, 'b': (b), **{}}\nx: int = 1\n",
    "def f():\n    '''doc'''\n\n    # one\n    a = 1  # two\n    # three\n\n"
    "    for x in a:\n        b(x)\n        # four\n    # five\n    return a\n",
    "print(f'{a} {a!r:>{width}} {b + c}', f\"{d['k']}\")\nraise f(x) from y\ndel x[a:b, c], y\nassert a, b\n",
    "global_statement = 1\ndef f():\n    global global_statement; global_statement = 2\n"
    "    x = yield a, b\n    return *a, b\n",
)


@cache
def sources() -> tuple[Source, ...]:
    """All of them, parsed."""
    files = [*sorted((ROOT / "samples").glob("*.py")), *sorted((ROOT / "tests" / "cases").glob("*/before.py"))]
    modules = (contextlib, heapq, random, textwrap)
    files += [Path(str(module.__file__)) for module in modules]
    texts = [(path.read_bytes(), str(path)) for path in files]
    texts += [(text.encode(), f"layout {index}") for index, text in enumerate(ODD_LAYOUTS)]
    return tuple(Source.from_bytes(raw, name) for raw, name in texts)


def nodes(source: Source, kind: type[ast.AST]) -> list[ast.AST]:
    """All nodes of a kind in the order of ``ast.walk``, which is the same for any other parse of the text."""
    return [node for node in ast.walk(source.tree) if isinstance(node, kind)]

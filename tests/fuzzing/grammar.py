"""Random training scripts that look like what people write: a grammar of training loops.

Every tensor of data has the shape (2, 4), so that any piece fits any other. `program` gives the same text for the same
kind and seed, always. All randomness of a script comes from its manual seed. A script runs its loop ``STEPS`` times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

HEAD: Final = """\
import torch
import torch.nn.functional as F
from torch import nn

STEPS = 4
torch.manual_seed(0)
"""
NETWORKS: Final = {
    "linear": "nn.Linear(4, 4)",
    "mlp": "nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))",
    "tanh": "nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))",
    "inplace": "nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 4))",
    "conv": "nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3, padding=1), nn.Flatten(), nn.Linear(8, 4))",
    "norm": "nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.LeakyReLU(0.2), nn.Linear(4, 4))",
    "net": "Net()",
}
NET_BODIES: Final = (
    ("h = F.relu(self.inner(x))", "return self.outer(h)"),
    ("h = torch.tanh(self.inner(x))", "h = h + x", "return self.outer(h)"),
    ("h = self.inner(x)", "h += x", "return self.outer(h)"),
    ("h = torch.sigmoid(self.inner(x))", "h *= self.scale", "return self.outer(h)"),
    ("h = F.relu(self.inner(x), inplace=True)", "return self.outer(h) * self.scale"),
    ("h = self.inner(x).exp()", "h[:, 0] = 0", "return self.outer(h)"),
    ("h = self.inner(x)", "h[:, 0] = 0", "return self.outer(h)"),
    ("skip = torch.tanh(self.inner(x))", "h = self.outer(skip)", "skip += 1", "return h + skip"),
)
OBJECTIVES: Final = (
    "F.mse_loss({0}, y)",
    "({0} - y).pow(2).mean()",
    "F.cross_entropy({0}, labels)",
    "F.softplus({0}).mean()",
    "-{0}.mean()",
    "({0} * y).sum()",
    "F.smooth_l1_loss({0}, y)",
    "torch.exp(-{0}.abs()).mean()",
    "{0}.norm()",
    "F.binary_cross_entropy_with_logits({0}, torch.ones_like({0}))",
)
WHEN: Final = ("step % 2 == 0", "step % 2 == 1", "step > 0", "step % 3 == 2", "step == 0", "x.mean().item() > 0.5")
IN_PLACE: Final = (
    "{0} += 1", "{0} *= 2", "{0}[0] = 0", "{0}[:, 1] = y[:, 1]", "{0}.clamp_(-1, 1)", "{0}.relu_()", "{0}.mul_(0.5)",
    "{0}.add_(y)", "{0} -= y", "{0} /= 2", "{0}.zero_()", "{0}.data.mul_(0.5)", "{0} = F.relu({0}, inplace=True)",
    "{0}.masked_fill_(y > 0.5, 0)", "{0}.detach().add_(1)", "{0}.tanh_()",
)  # fmt: skip
POINTWISE: Final = (
    "{0}.tanh()", "torch.sigmoid({0})", "F.relu({0})", "{0} * 2", "{0} + y", "{0} * y", "{0}.exp()", "{0}.clone()",
    "{0} / (1 + y)", "{0}.softmax(1)", "{0}.pow(2)", "{0} - {0}.mean()", "F.normalize({0}, dim=1)", "{0}.sin()",
    "torch.cat([{0}, y], 1)[:, :4]", "torch.stack([{0}, y]).mean(0)", "{0}.view(2, 4)", "F.dropout({0}, 0.5)",
    "{0}.abs().sqrt()", "torch.where(y > 0.5, {0}, y)", "torch.max({0}, y)", "{0}.flip(1)", "{0} @ torch.ones(4, 4)",
)  # fmt: skip


class Script:
    """One random script: `setup` runs once, `body` in the loop, `after` at the end."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.layout = self.pick("script", "script", "main", "class", "helper")
        self.classes: list[str] = []
        self.setup: list[str] = []
        self.body: list[str] = []
        self.around: list[str] = []
        self.behind: list[str] = []
        self.after: list[str] = []
        self.shared: list[str] = []
        self.carried: list[str] = []
        self.result = "loss"
        self.fresh = 0

    # -- choosing --------------------------------------------------------------------------------------------------

    def maybe(self, probability: float = 0.5) -> bool:
        return self.choose.random() < probability

    def pick(self, *options: str) -> str:
        return self.choose.choice(options)

    def name(self, stem: str) -> str:
        """A new local name."""
        self.fresh += 1
        return f"{stem}{self.fresh}"

    # -- what is declared ------------------------------------------------------------------------------------------

    def share(self, name: str, value: str, *, carried: bool = False) -> str:
        """Declare what lives as long as the training; in a class it is an attribute."""
        known = f"self.{name}" if self.layout == "class" else name
        self.setup.append(f"{known} = {value}")
        self.shared.append(name)
        if carried:
            self.carried.append(name)
        return known

    def network(self, name: str) -> str:
        kind = self.pick(*NETWORKS)
        if kind == "net" and not self.classes:
            lines = self.choose.choice(NET_BODIES)
            self.classes += [
                "class Net(nn.Module):",
                "    def __init__(self):",
                "        super().__init__()",
                "        self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 4)",
                "        self.scale = nn.Parameter(torch.ones(1))",
                "",
                "    def forward(self, x):",
                *(f"        {line}" for line in lines),
                "",
            ]
        return self.share(name, NETWORKS[kind])

    def optimizer(self, name: str, owned: Sequence[str]) -> str:
        if len(owned) == 1 and self.maybe(0.8):
            parameters = f"{owned[0]}.parameters()"
        else:
            parameters = "[" + ", ".join(f"*{network}.parameters()" for network in owned) + "]"
        kind = self.pick("torch.optim.SGD({0}, lr=0.01)", "torch.optim.Adam({0})", "torch.optim.SGD({0}, lr=0.1)")
        return self.share(name, kind.format(parameters))

    # -- pieces of a body ------------------------------------------------------------------------------------------

    def add(self, *lines: str) -> None:
        self.body += lines

    def when(self, lines: Iterable[str]) -> None:
        """Statements, perhaps in a branch."""
        lines = list(lines)
        if self.maybe(0.2):
            lines = [f"if {self.pick(*WHEN)}:", *(f"    {line}" for line in lines)]
        self.add(*lines)

    def vector(self, expression: str, stem: str = "v") -> str:
        """Give an expression a name, with some arithmetic on the way."""
        name = self.name(stem)
        self.add(f"{name} = {expression}")
        if self.maybe(0.3):
            self.add(f"{name} = {self.pick(*POINTWISE).format(name)}")
        if self.maybe(0.07):
            self.when([self.pick(*IN_PLACE).format(name)])
        return name

    def objective(self, vector: str, name: str = "loss") -> str:
        self.add(f"{name} = {self.pick(*OBJECTIVES).format(vector)}")
        return name

    def flag(self, likely: float = 0.25) -> str:
        if self.maybe(likely):
            return "retain_graph=True"
        return self.pick(*[""] * 9, "retain_graph=False", "create_graph=True", "create_graph=True, retain_graph=True")

    def backward(self, loss: str, likely: float = 0.2) -> list[str]:
        flag = self.flag(likely)
        if self.maybe(0.04):
            return [f"torch.autograd.backward({loss}{flag and ', ' + flag})"]
        return [f"{loss}.backward({flag})"]

    def update(self, optimizer: str, loss: str, networks: Sequence[str], likely: float = 0.2) -> list[str]:
        """Clear, walk back, step; in one of the usual orders."""
        zero = [f"{optimizer}.zero_grad()"] if self.maybe(0.9) else []
        if networks and self.maybe(0.1):
            zero = [f"{networks[0]}.zero_grad()"]
        walk = self.backward(loss, likely)
        clip = [f"nn.utils.clip_grad_norm_({networks[0]}.parameters(), 1.0)"] if networks and self.maybe(0.1) else []
        step = [f"{optimizer}.step()"]
        order = self.choose.random()
        if order < 0.7:
            return [*zero, *walk, *clip, *step]
        if order < 0.85:
            return [*walk, *clip, *step, *zero]
        if order < 0.95:
            when = self.pick("step % 2 == 1", "(step + 1) % 2 == 0", "step % 2 == 0")
            return [*walk, f"if {when}:", *(f"    {line}" for line in [*step, *zero])]
        return [*walk, *step]

    def detach(self, name: str) -> str:
        return self.pick(
            "{0}.detach()", "{0}.detach()", "{0}.data", "{0}.clone().detach()", "{0}.detach().clone()"
        ).format(name)

    # -- bookkeeping -----------------------------------------------------------------------------------------------

    def bookkeeping(self, loss: str, vectors: Sequence[str] = ()) -> None:
        """Totals, lists, dicts and prints behind an iteration, where the loop is."""
        for _ in range(self.choose.choice((0, 1, 1, 2))):
            number = self.pick(
                "{0}", "{0}", "{0}.item()", "{0}.detach()", "float({0})", "{0}.data", "{0}.detach().cpu()"
            )
            value = number.format(loss)
            total = self.name("total")
            form = self.choose.randrange(9)
            if form == 0:
                self.around.append(f"{total} = 0")
                self.behind.append(f"{total} += {value}")
                self.after.append(
                    self.pick(f"print({total} / STEPS)", f"mean = {total} / STEPS", f"mean = float({total})", "pass")
                )
            elif form == 1:
                self.around.append(f"{total} = []")
                self.behind.append(f"{total}.append({value})")
                self.after.append(self.pick(f"mean = sum({total}) / len({total})", f"last = {total}[-1]", "pass"))
            elif form == 2:
                self.around.append(f"{total} = {{'loss': 0.0, 'count': 0}}")
                self.behind += [f"{total}['loss'] += {value}", f"{total}['count'] += 1"]
            elif form == 3:
                self.around.append(f"{total} = torch.zeros(1)")
                self.behind.append(f"{total} = {total} + {value}")
            elif form == 4:
                self.around.append(f"{total} = 0.0")
                self.behind.append(f"{total} = 0.9 * {total} + 0.1 * {value}")
            elif form == 5:
                self.around.append(f"{total} = None")
                self.behind.append(f"{total} = {value} if {total} is None else {total} + {value}")
            elif form == 6:
                self.around.append(f"{total} = float('inf')")
                self.behind += [f"if {loss} < {total}:", f"    {total} = {value}"]
            elif form == 7:
                self.around.append(f"{total} = {{}}")
                self.behind.append(f"{total}.setdefault('loss', []).append({value})")
            else:
                self.behind.append(f"print(step, {value})")
        if self.layout != "helper" and self.layout != "class":
            for vector in vectors:
                if self.maybe(0.1):
                    kept = self.name("kept")
                    self.around.append(f"{kept} = []")
                    self.behind.append(
                        f"{kept}.append({self.pick('{0}', '{0}.detach()', '{0}.argmax(1)').format(vector)})"
                    )
        if self.maybe(0.05):
            # A total that is meant to be back-propagated.
            whole = self.name("whole")
            self.around.append(f"{whole} = 0")
            self.behind.append(f"{whole} = {whole} + {loss}")
            self.after.append(f"{whole}.backward()")

    def evaluation(self, network: str) -> None:
        """A loop that only measures."""
        total = self.name("score")
        inner = [f"{total} += {self.pick('', 'float')}(F.mse_loss({network}(x), y))"]
        if self.maybe(0.3):
            inner = [f"{total}.append({network}(x).mean())"]
        lines = ["for x, y in data:", *(f"    {line}" for line in inner)]
        if self.maybe(0.6):
            guard = self.pick("torch.no_grad()", "torch.no_grad()", "torch.inference_mode()")
            lines = [f"with {guard}:", *(f"    {line}" for line in lines)]
        start = "[]" if "append" in inner[0] else "0"
        self.after += [f"{total} = {start}", *lines]

    # -- the text --------------------------------------------------------------------------------------------------

    def text(self) -> str:
        data = ["data = [(torch.rand(2, 4), torch.rand(2, 4)) for _ in range(STEPS)]", "labels = torch.tensor([0, 2])"]
        loop, inner = "for step, (x, y) in enumerate(data):", self.body
        lines = [*self.classes, *([""] if self.classes else [])]
        if self.layout in ("script", "main"):
            whole = [*data, *self.setup, *self.around, loop, *_in([*inner, *self.behind]), *self.after]
            return HEAD + _text([*lines, *(_function("main()", whole) if self.layout == "main" else whole)])
        if self.layout == "class":
            lines += [
                "class Trainer:",
                *_in(["def __init__(self):", *_in(self.setup), ""]),
                *_in(["def train_step(self, step, x, y, labels):", *_in([*inner, f"return {self.result}"]), ""]),
                *_in(["def fit(self, data, labels):"]),
                *_in(_in([*self.around, loop])),
                *_in(_in(_in([f"{self.result} = self.train_step(step, x, y, labels)", *self.behind]))),
                *_in(_in(self.after)),
                "",
            ]
            return HEAD + _text([*lines, *data, "trainer = Trainer()", "trainer.fit(data, labels)"])
        outputs = ", ".join([self.result, *self.carried])
        inputs = ", ".join([*self.shared, "step", "x", "y", "labels"])
        lines += [f"def train_step({inputs}):", *_in([*inner, f"return {outputs}"]), ""]
        call = f"{outputs} = train_step({inputs})"
        whole = [*data, *self.setup, *self.around, loop, *_in([call, *self.behind]), *self.after]
        return HEAD + _text([*lines, *_function("main()", whole)])


def _in(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def _function(header: str, lines: Iterable[str]) -> list[str]:
    return [f"def {header}:", *_in(lines), "", "main()"]


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


# -- kinds of scripts ----------------------------------------------------------------------------------------------


def recurrent(s: Script) -> None:
    """A state goes through the loop: tensor, tuple, list, dict, attribute, None; cut or not."""
    form = s.choose.choice(("tensor", "none", "tuple", "pair", "list", "dict", "lstm", "ema", "memory", "weight"))
    head = s.network("head")
    owned = [head]
    cut: list[str] = []
    advance: list[str] = []
    state = "state"

    def cell(kind: str) -> str:
        owned.append(s.share("cell", f"nn.{kind}(4, 4)"))
        return owned[-1]

    if form in ("tensor", "none"):
        rnn = cell(s.pick("GRUCell", "RNNCell"))
        state = s.share(
            "state", "None" if form == "none" else s.pick("torch.zeros(2, 4)", "torch.rand(2, 4)"), carried=True
        )
        advance = [f"{state} = {rnn}(x, {state})"]
        out = state
        cut = [f"{state} = {s.detach(state)}"] if s.maybe(0.8) else [f"{state}.detach_()"]
        if s.maybe(0.1):
            cut = [f"{state}.detach()"]
    elif form == "tuple":
        rnn = cell("LSTMCell")
        state = s.share("state", s.pick("(torch.zeros(2, 4), torch.zeros(2, 4))", "None"), carried=True)
        advance = [f"{state} = {rnn}(x, {state})"]
        out = f"{state}[0]"
        cut = [
            s.pick(
                f"{state} = ({state}[0].detach(), {state}[1].detach())",
                f"{state} = tuple(part.detach() for part in {state})",
                f"{state} = ({state}[0].detach(), {state}[1])",
                f"{state} = [part.data for part in {state}]",
                f"{state} = repackage({state})",
            )
        ]
        if "repackage" in cut[0]:
            s.classes += [
                "def repackage(h):",
                "    if isinstance(h, torch.Tensor):",
                "        return h.detach()",
                "    return tuple(repackage(v) for v in h)",
                "",
            ]
    elif form == "pair":
        rnn = cell("LSTMCell")
        h, c = s.share("hx", "torch.zeros(2, 4)", carried=True), s.share("cx", "torch.zeros(2, 4)", carried=True)
        advance = [f"{h}, {c} = {rnn}(x, ({h}, {c}))"]
        out = h
        cut = [s.pick(f"{h}, {c} = {h}.detach(), {c}.detach()", f"{h} = {h}.detach()", f"{c} = {c}.detach()")]
        if s.maybe(0.2):
            cut = [f"{h}.detach_()", f"{c}.detach_()"]
    elif form == "list":
        rnn = s.share("cells", "nn.ModuleList([nn.GRUCell(4, 4), nn.GRUCell(4, 4)])")
        owned.append(rnn)
        state = s.share("state", "[torch.zeros(2, 4), torch.zeros(2, 4)]", carried=True)
        advance = [
            "layer = x",
            f"for i, cell in enumerate({rnn}):",
            f"    {state}[i] = cell(layer, {state}[i])",
            f"    layer = {state}[i]",
        ]
        out = "layer"
        cut = [
            s.pick(
                f"{state} = [part.detach() for part in {state}]",
                f"{state}[0] = {state}[0].detach()",
                f"{state} = [{state}[0].detach(), {state}[1].detach()]",
            )
        ]
    elif form == "dict":
        rnn = cell("GRUCell")
        state = s.share("state", "{'h': torch.zeros(2, 4)}", carried=True)
        advance = [f"{state}['h'] = {rnn}(x, {state}['h'])"]
        out = f"{state}['h']"
        cut = [
            s.pick(
                f"{state}['h'] = {state}['h'].detach()",
                f"{state} = {{key: value.detach() for key, value in {state}.items()}}",
            )
        ]
    elif form == "lstm":
        rnn = cell(s.pick("LSTM", "GRU"))
        state = s.share("state", "None", carried=True)
        advance = [f"output, {state} = {rnn}(x.unsqueeze(0), {state})"]
        out = "output[0]"
        many = "LSTM" in s.setup[-2]
        cut = [f"{state} = tuple(part.detach() for part in {state})" if many else f"{state} = {state}.detach()"]
    elif form == "ema":
        rnn = s.network("encoder")
        owned.append(rnn)
        state = s.share("state", "torch.zeros(2, 4)", carried=True)
        new = s.pick(f"{rnn}(x)", f"{rnn}(x).detach()", f"{rnn}(x).data")
        advance = [s.pick(f"{state} = 0.9 * {state} + 0.1 * {new}", f"{state} = {state} + {new}", f"{state} += {new}")]
        out = s.pick(state, f"x + {state}", f"{rnn}(x) * {state}")
        cut = [f"{state} = {s.detach(state)}"]
    elif form == "memory":
        s.classes += [
            "class Memory(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            "        self.cell = nn.GRUCell(4, 4)",
            "        self.reset()",
            "",
            "    def reset(self):",
            f"        self.hidden = {s.pick('torch.zeros(2, 4)', 'None')}",
            "",
            "    def forward(self, x):",
            *([f"        self.hidden = self.cell(x, {s.pick('self.hidden', 'self.hidden', 'None')})"]),
            f"        return {s.pick('self.hidden', 'self.hidden.tanh()')}",
            "",
        ]
        rnn = s.share("memory", "Memory()")
        owned.append(rnn)
        s.vector(f"{rnn}(x)")
        out = s.pick(f"{rnn}(x)", f"{rnn}.hidden")
        cut = [s.pick(f"{rnn}.hidden = {rnn}.hidden.detach()", f"{rnn}.reset()", f"{rnn}.hidden.detach_()")]
    else:
        rnn = s.network("encoder")
        owned.append(rnn)
        state = s.share("state", "[]", carried=True)
        advance = [
            f"past = {state}[-1] if {state} else torch.zeros(2, 4)",
            f"{state}.append({s.pick('{0}', '{0}', '{0}.detach()').format(f'{rnn}(x + past)')})",
        ]
        out = f"{state}[-1]"
        cut = [s.pick(f"{state}[-1] = {state}[-1].detach()", f"{state}.clear()", f"del {state}[:-1]")]

    optimizer = s.optimizer("optimizer", owned)
    place = s.pick("top", "bottom", "never", "never", "often", "before")
    if place == "top":
        if "None" in "".join(line for line in s.setup if "state" in line) or form in ("memory", "weight"):
            s.add("if step > 0:", *_in(cut))
        else:
            s.add(*cut)
    if advance and s.maybe(0.15):
        s.add(f"for t in range({s.pick('2', '3')}):", *_in(advance))
    else:
        s.add(*advance)
    if s.maybe(0.1) and form in ("tensor", "pair"):
        s.when([s.pick(*IN_PLACE).format(out)])
    vector = s.vector(f"{head}({out})")
    loss = s.objective(vector)
    if s.maybe(0.15):
        s.add(f"loss = loss + {s.pick('0.1 * ', '')}{out}.pow(2).mean()")
    if place == "before":
        s.add(*cut)
    if s.maybe(0.12):
        # A window: back-propagate every few steps.
        s.share("window", "0", carried=True)
        window = "self.window" if s.layout == "class" else "window"
        s.add(f"{window} = {window} + {loss}", "if step % 2 == 1:")
        s.add(*_in([*s.update(optimizer, window, [head]), f"{window} = 0", *(cut if s.maybe(0.7) else [])]))
    else:
        s.add(*s.update(optimizer, loss, [head], 0.3))
    if place == "bottom":
        s.add(*cut)
    elif place == "often":
        s.add("if step % 2 == 1:", *_in(cut))
    s.bookkeeping(loss, [vector])


def adversarial(s: Script) -> None:
    """Two optimizers, one network before the other: GANs, actors and critics."""
    first, second = s.network("generator"), s.network("critic")
    names = ("g_optimizer", "d_optimizer")
    g, d = s.optimizer(names[0], [first]), s.optimizer(names[1], [second])
    s.add(f"noise = {s.pick('torch.randn(2, 4)', 'x')}")
    fake = s.vector(f"{first}(noise)", "fake")
    if s.maybe(0.12):
        s.add(f"{fake} = {fake}.detach()")

    def critic_step() -> None:
        seen = s.pick(fake, fake, f"{fake}.detach()", f"{fake}.detach()", f"{fake}.data", f"{first}(noise)")
        if s.maybe(0.15):
            s.add("with torch.no_grad():", f"    seen = {first}(noise)")
            seen = "seen"
        judged = s.name("judged")
        s.add(f"{judged} = {second}({seen})")
        s.add(f"d_loss = {s.pick(*OBJECTIVES[2:6]).format(judged)} + {s.pick(*OBJECTIVES).format(f'{second}(y)')}")
        if s.maybe(0.25):
            penalty(s, second, f"y + 0.5 * ({seen}.detach() - y)")
            s.add("d_loss = d_loss + penalty")
        lines = s.update(d, "d_loss", [second], 0.25)
        if s.maybe(0.1):
            s.add(f"for _ in range({s.pick('1', '2')}):", *_in(lines))
        else:
            s.add(*lines)

    def generator_step() -> None:
        seen = s.pick(fake, fake, fake, f"{first}(noise)", f"{fake}.detach()")
        s.add(f"g_loss = {s.pick(*OBJECTIVES).format(f'{second}({seen})')}")
        if s.maybe(0.2):
            s.add(f"g_loss = g_loss + {s.pick(*OBJECTIVES).format(seen)}")
        s.when(s.update(g, "g_loss", [first], 0.15))

    order = s.choose.random()
    if order < 0.6:
        critic_step()
        generator_step()
    elif order < 0.85:
        generator_step()
        critic_step()
    else:
        # Both losses first, then both updates.
        seen = s.pick(fake, f"{fake}.detach()")
        s.add(f"d_loss = {s.pick(*OBJECTIVES).format(f'{second}({seen})')}")
        s.add(f"g_loss = {s.pick(*OBJECTIVES).format(f'{second}({fake})')}")
        s.add(*s.update(d, "d_loss", [second], 0.4), *s.update(g, "g_loss", [first]))
    if "g_loss" not in "\n".join(s.body):
        s.add("g_loss = d_loss")
    s.result = s.pick("d_loss", "d_loss")
    s.bookkeeping(s.result, [fake])


def penalty(s: Script, network: str, point: str) -> None:
    """A penalty on a gradient, with the flags that people try."""
    flag = s.pick(
        "create_graph=True", "create_graph=True", "retain_graph=True", "create_graph=True, retain_graph=True", ""
    )
    tail = s.pick("", "", "", ".detach()", ".data")
    s.add(
        f"point = ({point}).detach().requires_grad_()",
        f"gradient = torch.autograd.grad({network}(point).sum(), point{flag and ', ' + flag})[0]{tail}",
        "penalty = "
        + s.pick("(gradient.norm(2, dim=1) - 1).pow(2).mean()", "gradient.pow(2).sum()", "10 * gradient.norm()"),
    )


def several(s: Script) -> None:
    """Several losses of one forward pass, traversed one by one or together, with steps between."""
    trunk = s.network("trunk")
    heads = [s.network(f"head{number}") for number in range(s.choose.randint(1, 3))]
    together = s.maybe(0.6)
    optimizers = []
    if together:
        optimizers = [s.optimizer("optimizer", [trunk, *heads])]
    else:
        optimizers = [s.optimizer("trunk_optimizer", [trunk])]
        optimizers += [s.optimizer(f"optimizer{number}", [head]) for number, head in enumerate(heads)]
    features = s.vector(f"{trunk}(x)", "features")
    losses = []
    for number, head in enumerate(heads):
        seen = features if s.maybe(0.8) else s.pick(f"{features}.detach()", f"{trunk}(x)")
        losses.append(s.objective(s.vector(f"{head}({seen})"), f"loss{number}"))
        if s.maybe(0.1):
            s.when([s.pick(*IN_PLACE).format(features)])
    if s.maybe(0.15):
        penalty(s, heads[0], features if s.maybe() else "x")
        s.add(f"{losses[-1]} = {losses[-1]} + penalty")
    if s.maybe(0.2):
        s.add(
            f"gradient_norm = torch.autograd.grad({losses[0]}, {_some_parameter(s, trunk)}"
            + s.pick("", ", retain_graph=True", ", create_graph=True")
            + ")[0].norm()"
        )
        if s.maybe(0.3):
            s.add(f"{losses[-1]} = {losses[-1]} + gradient_norm")
    form = s.choose.random()
    if form < 0.25 or len(losses) == 1:
        s.add(f"loss = {' + '.join(losses)}")
        if s.maybe(0.2):
            s.add(f"loss = {s.pick('loss + loss', 'loss * 0.5', 'loss / loss.detach()', 'loss.mean()')}")
        s.add(*(line for optimizer in optimizers for line in s.update(optimizer, "loss", [trunk], 0.3)))
    elif form < 0.4:
        flag = s.pick("", "retain_graph=True", "retain_graph=True")
        clears = [f"{optimizer}.zero_grad()" for optimizer in optimizers]
        steps = [f"{optimizer}.step()" for optimizer in optimizers]
        s.add(*clears, f"for part in ({', '.join(losses)}):", f"    part.backward({flag})")
        s.add(*(_in(steps) if s.maybe(0.3) else steps), f"loss = {losses[0]}")
    else:
        clears = [f"{optimizer}.zero_grad()" for optimizer in optimizers]
        walks = [line for loss in losses for line in s.backward(loss, 0.5)]
        steps = [f"{optimizer}.step()" for optimizer in optimizers]
        if s.maybe(0.6):
            s.add(*clears, *walks, *steps)
        else:
            mixed = [*walks, *steps]
            s.choose.shuffle(mixed)
            s.add(*clears, *mixed)
        s.add(f"loss = {s.pick(losses[0], ' + '.join(losses))}")
    s.bookkeeping("loss", [features])


def _some_parameter(s: Script, network: str) -> str:
    return s.pick(f"list({network}.parameters())", f"next({network}.parameters())", f"list({network}.parameters())[0]")


def accumulating(s: Script) -> None:
    """One plain loss, much bookkeeping, an evaluation."""
    network = s.network("model")
    optimizer = s.optimizer("optimizer", [network])
    vector = s.vector(f"{network}(x)", "output")
    loss = s.objective(vector)
    if s.maybe(0.2):
        norms = f"sum(p.pow(2).sum() for p in {network}.parameters())"
        s.add(f"loss = loss + 0.01 * {norms}")
    if s.maybe(0.2):
        parts = s.name("parts")
        s.add(
            f"{parts} = 0",
            "for row in range(2):",
            f"    {parts} += {vector}[row].pow(2).mean()",
            f"loss = loss + {parts}",
        )
    s.add(*s.update(optimizer, loss, [network]))
    s.bookkeeping(loss, [vector])
    s.bookkeeping(loss, [vector])
    if s.layout != "class" or s.maybe(0.5):
        s.evaluation(network)


def invariant(s: Script) -> None:
    """Something with a graph is computed before the loop, or once in it, and used in every iteration."""
    network, other = s.network("model"), s.network("encoder")
    owned = [network] if s.maybe(0.4) else [network, other]
    optimizer = s.optimizer("optimizer", owned)
    value = s.pick(
        f"{other}(torch.ones(2, 4))",
        f"{other}(torch.ones(2, 4)).detach()",
        f"sum(p.pow(2).sum() for p in {other}.parameters())",
        "torch.exp(nn.Parameter(torch.rand(2, 4)))",
        "torch.rand(2, 4, requires_grad=True) * 2",
        f"{other}(torch.ones(2, 4)) + 1",
    )
    kept = "self.kept" if s.layout == "class" else "kept"
    form = s.choose.random()
    if form < 0.5:
        s.share("kept", value)
    elif form < 0.75:
        s.share("kept", "None", carried=True)
        s.add(f"if {kept} is None:", f"    {kept} = {value}")
    else:
        s.share("kept", "None", carried=True)
        s.add("if step % 2 == 0:", f"    {kept} = {value}")
    vector = s.vector(f"{network}(x)")
    s.objective(vector)
    s.add(
        "loss = loss + "
        + s.pick(
            f"{kept}.mean()", f"({kept} * {vector}).sum()", f"{kept}.pow(2).sum()", f"({vector} - {kept}).abs().mean()"
        )
    )
    s.add(*s.update(optimizer, "loss", [network], 0.35))
    s.bookkeeping("loss", [vector])


def in_place(s: Script) -> None:
    """In-place changes of what the loss needs."""
    network = s.network("model")
    optimizer = s.optimizer("optimizer", [network])
    vectors = [s.vector(f"{network}(x)")]
    for _ in range(s.choose.randint(2, 5)):
        one = s.choose.choice(vectors)
        if s.maybe(0.4):
            s.when([s.pick(*IN_PLACE).format(one)])
        elif s.maybe(0.2):
            buffer = s.name("buffer")
            s.add(f"{buffer} = torch.zeros(2, 4)", "for i in range(2):", f"    {buffer}[i] = {one}[i]")
            vectors.append(buffer)
        else:
            vectors.append(s.vector(s.pick(*POINTWISE).format(one)))
    s.objective(vectors[-1])
    if s.maybe(0.4):
        s.add(f"loss = loss + {s.choose.choice(vectors)}.{s.pick('sum()', 'pow(2).mean()', 'norm()')}")
    s.add(*s.update(optimizer, "loss", [network]))
    s.bookkeeping("loss", vectors)


def differentiated(s: Script) -> None:
    """Derivatives of derivatives: penalties, forces, Hessian-vector products, learned inner steps."""
    network = s.network("model")
    optimizer = s.optimizer("optimizer", [network])
    form = s.choose.randrange(4)
    flags = ("create_graph=True", "create_graph=True", "retain_graph=True", "", "create_graph=True, retain_graph=True")
    if form == 0:
        s.objective(s.vector(f"{network}(x)"))
        penalty(s, network, "x")
        s.add(f"loss = {s.pick('loss + penalty', 'loss + 0.1 * penalty', 'penalty')}")
    elif form == 1:
        s.add("x = x.clone().requires_grad_()" if s.maybe(0.9) else "x.requires_grad_()")
        energy = s.vector(f"{network}(x)", "energy")
        flag = s.pick(*flags)
        s.add(f"force = -torch.autograd.grad({energy}.sum(), x{flag and ', ' + flag})[0]")
        s.add(f"loss = {s.pick('F.mse_loss(force, y)', f'F.mse_loss(force, y) + {energy}.pow(2).mean()')}")
    elif form == 2:
        s.objective(s.vector(f"{network}(x)"), "inner")
        flag = s.pick(*flags)
        s.add(
            f"gradients = torch.autograd.grad(inner, list({network}.parameters()){flag and ', ' + flag})",
            s.pick(
                "loss = sum(g.pow(2).sum() for g in gradients)",
                "loss = inner + sum(g.pow(2).sum() for g in gradients)",
                "loss = inner + gradients[0].norm()",
            ),
        )
    else:
        s.objective(s.vector(f"{network}(x)"))
        flag = s.pick(*flags)
        s.add(
            f"loss.backward({flag})",
            f"norm = sum(p.grad.norm() for p in {network}.parameters())",
            f"{s.pick(optimizer + '.zero_grad()', 'pass')}",
            f"loss = {s.pick('loss + norm', 'norm', 'loss + norm.detach()')}",
        )
    if s.maybe(0.1):
        s.add("loss = loss + 0.1 * x.mean()")
    s.add(*s.update(optimizer, "loss", [network]))
    s.bookkeeping("loss")


KINDS: Final[dict[str, Callable[[Script], None]]] = {
    kind.__name__: kind for kind in (recurrent, adversarial, several, accumulating, invariant, in_place, differentiated)
}


def program(kind: str, seed: int) -> str:
    """A script of one kind."""
    script = Script(random.Random(f"{kind} {seed}"))
    KINDS[kind](script)
    return script.text()

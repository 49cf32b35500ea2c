"""A training script that does not know of smdebug: `plain.py LOSS [BATCHES]`. Prints what it learnt."""

import hashlib
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import cross_entropy


class Half(nn.Module):
    """A loss of one's own."""

    def forward(self, output, labels):
        return (output - F.one_hot(labels, 2)).square().mean() / 2


class Judge(nn.Module):
    """A model that computes its loss itself, as those of transformers do."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x=None, labels=None):
        logits = self.fc(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def main(kind, count=3):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    if kind == "inside":
        model = Judge()
    if kind == "wrapper":
        model = torch.compile(model, backend="eager")
    if kind == "in_place":
        model.compile(backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = {
        "module": nn.CrossEntropyLoss(),
        "function": lambda output, labels: F.nll_loss(F.log_softmax(output, 1), labels),
        "imported": lambda output, labels: cross_entropy(output, labels) / 4,
        "own": Half(),
        "expression": lambda output, labels: output.square().sum() + output.abs().max(),
        "sum": lambda output, labels: F.cross_entropy(output, labels) + output.square().mean(),
        "compiled_loss": torch.compile(lambda o, y: F.cross_entropy(o, y), backend="eager"),
    }
    generator = torch.Generator().manual_seed(1)
    for step in range(count):
        x = torch.randn(5, 3, generator=generator)
        labels = torch.randint(0, 2, (5,), generator=generator)
        optimizer.zero_grad()
        if kind == "inside":
            loss = model(x=x, labels=labels)["loss"] / 2
        else:
            output = model(x)
            loss = losses.get(kind, F.cross_entropy)(output, labels)
        loss.backward()
        optimizer.step()
        print(step, x[0, 0].item(), loss.item())
    parameters = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print(hashlib.sha256(parameters).hexdigest())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)

"""Boosted regression trees, with the names that a hook for boosted trees gives.

Trees grow level by level; splits are looked for at quantiles of each feature, for squared error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import smdebug
from numpy.random import Generator

from faults.injection import Injection
from faults.layer import Array
from faults.pace import Pace
from faults.settings import Settings

FEATURES = 8
BINS = 64
LEARNING_RATE = 0.1
# Saved as the hook for boosted trees does by default: predictions and trees not at every round.
RAW_INTERVAL = 5
IMPORTANCES = ("weight", "gain", "cover")


@dataclass
class Node:
    """A node of a tree; a leaf has no feature."""

    number: int
    rows: Array
    value: float
    feature: int = -1
    split: float = float("nan")
    gain: float = 0.0
    yes: int = -1
    no: int = -1


def make_table(
    count: int, dominating: bool, rng: Generator, noise: float = 0.8
) -> tuple[Array, Array]:
    """Eight features of similar use; or one that is nearly the target, beside seven of noise."""
    x = rng.standard_normal((count, FEATURES))
    if dominating:
        y = 3 * x[:, 0] + np.sin(6 * x[:, 0]) + 0.05 * x[:, 1:].sum(axis=1)
        y += 0.02 * rng.standard_normal(count)
    else:
        y = np.sin(x).sum(axis=1) + x[:, 0] * x[:, 1] * 0.5 + noise * rng.standard_normal(count)
    return x, y


class Booster:
    """Trees that were fitted one after the other to what remained."""

    def __init__(self, depth: int, least_gain: float) -> None:
        self.depth = depth
        self.least_gain = least_gain
        self.trees: list[list[Node]] = []
        self.scores = {kind: np.zeros(FEATURES) for kind in IMPORTANCES}

    def grow(self, binned: Array, residual: Array) -> list[Node]:
        """Fits one tree and keeps it."""
        nodes = [Node(0, np.arange(len(residual)), float(residual.mean()))]
        level = nodes[:]
        for _ in range(self.depth):
            following = []
            for node in level:
                if not self._split(node, binned, residual):
                    continue
                goes_left = binned[node.rows, node.feature] <= node.split
                for rows in (node.rows[goes_left], node.rows[~goes_left]):
                    child = Node(len(nodes), rows, float(residual[rows].mean()))
                    nodes.append(child)
                    following.append(child)
                node.yes, node.no = nodes[-2].number, nodes[-1].number
            level = following
        self.trees.append(nodes)
        for node in nodes:
            if node.feature >= 0:
                self.scores["weight"][node.feature] += 1
                self.scores["gain"][node.feature] += node.gain
                self.scores["cover"][node.feature] += len(node.rows)
        return nodes

    def _split(self, node: Node, binned: Array, residual: Array) -> bool:
        """The best split of a node, if there is one that gains anything."""
        target = residual[node.rows] - node.value
        cells = binned[node.rows] + BINS * np.arange(FEATURES)
        weights = np.repeat(target[:, None], FEATURES, axis=1)
        shape = (FEATURES, BINS)
        sums = np.bincount(cells.ravel(), weights.ravel(), FEATURES * BINS).reshape(shape)
        counts = np.bincount(cells.ravel(), minlength=FEATURES * BINS).reshape(shape)
        left, n_left = sums.cumsum(axis=1), counts.cumsum(axis=1)
        n_right = len(target) - n_left
        with np.errstate(all="ignore"):
            gains = left**2 * (1 / n_left + 1 / n_right)
        gains[(n_left == 0) | (n_right == 0)] = 0
        at = int(gains.argmax())
        node.gain = float(gains.ravel()[at])
        if not node.gain > self.least_gain:
            return False
        node.feature, node.split = at // BINS, float(at % BINS)
        return True

    @staticmethod
    def predict(nodes: list[Node], binned: Array) -> Array:
        """What one tree adds, before the learning rate."""
        out = np.empty(len(binned))
        waiting = [(nodes[0], np.arange(len(binned)))]
        while waiting:
            node, rows = waiting.pop()
            if node.yes < 0:
                out[rows] = node.value
                continue
            goes_left = binned[rows, node.feature] <= node.split
            waiting += [(nodes[node.yes], rows[goes_left]), (nodes[node.no], rows[~goes_left])]
        return out


class TreeTraining:
    """A boosting run; everything follows from the settings and the seed."""

    def __init__(self, settings: Settings, injection: Injection, seed: int) -> None:
        rng = np.random.default_rng([seed, 4])
        noise = 3.0 if settings.label_noise else 0.8
        self.settings = settings
        self.injection = injection
        self.train = make_table(settings.train_samples, settings.dominating, rng, noise)
        self.validation = make_table(settings.validation_samples, settings.dominating, rng, noise)
        self.edges = np.quantile(self.train[0], np.linspace(0, 1, BINS + 1)[1:-1], axis=0)
        self.booster = Booster(settings.depth, settings.least_gain)

    def _binned(self, x: Array) -> Array:
        columns = [np.searchsorted(self.edges[:, j], x[:, j]) for j in range(FEATURES)]
        return np.stack(columns, axis=1)

    def run(self, out_dir: Path) -> dict[str, object]:
        """Boosts and records, one step per round."""
        hook = self._make_hook(out_dir)
        binned = [self._binned(x) for x, _ in (self.train, self.validation)]
        targets = [y for _, y in (self.train, self.validation)]
        outputs = [np.full(len(y), targets[0].mean()) for y in targets]
        pace = Pace()
        for step in range(self.settings.steps):
            self.injection.before(self, step)  # type: ignore[arg-type]
            nodes = self.booster.grow(binned[0], targets[0] - outputs[0])
            for output, bins in zip(outputs, binned, strict=True):
                output += LEARNING_RATE * self.booster.predict(nodes, bins)
            hook.step()
            self._record(hook, nodes, targets, outputs)
            pace.tick()
        hook.close()
        return {"train_steps": list(range(self.settings.steps)), **pace.summary()}

    @staticmethod
    def _make_hook(out_dir: Path) -> smdebug.Hook:
        names = ("metrics", "losses", "feature_importance", "trees", "predictions", "labels")
        hook = smdebug.Hook(
            out_dir=out_dir,
            save_config=smdebug.SaveConfig(save_interval=1),
            include_collections=[*names, "hyperparameters"],
            layout="packed",
        )
        for name in ("trees", "predictions", "labels"):
            hook.get_collection(name).save_config = {"save_interval": RAW_INTERVAL}
        patterns = {
            "metrics": "^(train|validation)-",
            "losses": "^(train|validation)-",
            "feature_importance": "^feature_importance/",
            "trees": "^trees/",
            "predictions": "^predictions$",
            "labels": "^labels$",
            "hyperparameters": "^hyperparameters/",
        }
        for name, pattern in patterns.items():
            hook.get_collection(name).include(pattern)
        return hook

    def _record(
        self, hook: smdebug.Hook, nodes: list[Node], targets: list[Array], outputs: list[Array]
    ) -> None:
        if hook.step == 0:
            hook.save("hyperparameters/max_depth", np.array([self.settings.depth]))
            hook.save("hyperparameters/eta", np.array([LEARNING_RATE]))
        for name, y, output in zip(("train", "validation"), targets, outputs, strict=True):
            hook.save(f"{name}-rmse", np.array([np.sqrt(np.mean((y - output) ** 2))]))
        for kind, scores in self.booster.scores.items():
            for feature in np.flatnonzero(scores):
                share = scores[feature] / scores.sum()
                hook.save(f"feature_importance/{kind}/f{feature}", np.array([share]))
        if hook.step % RAW_INTERVAL:
            return
        hook.save("predictions", outputs[1].astype(np.float32))
        hook.save("labels", targets[1].astype(np.float32))
        tree = np.full(len(nodes), len(self.booster.trees) - 1)
        hook.save("trees/Tree", tree)
        hook.save("trees/Node", np.array([n.number for n in nodes]))
        hook.save("trees/Gain", np.array([n.gain if n.yes >= 0 else n.value for n in nodes]))
        hook.save("trees/Cover", np.array([float(len(n.rows)) for n in nodes]))
        hook.save("trees/Split", np.array([n.split for n in nodes]))
        for column, texts in {
            "Feature": [f"f{n.feature}" if n.yes >= 0 else "Leaf" for n in nodes],
            "Yes": [f"{tree[0]}-{n.yes}" if n.yes >= 0 else "nan" for n in nodes],
            "No": [f"{tree[0]}-{n.no}" if n.yes >= 0 else "nan" for n in nodes],
        }.items():
            hook.save_tensor(f"trees/{column}", texts, "trees")

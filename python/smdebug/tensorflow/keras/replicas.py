"""Steps that run on several replicas: each gives its own tensors.

The functions that Keras makes reduce everything that a step returns over the replicas, which makes
no sense of a capture. So with more than one replica the capturing function is ours. It reduces the
logs as Keras does, so that they are the same.
"""

from __future__ import annotations

from typing import Any

from smdebug.tensorflow.keras.engine import Engine
from smdebug.tensorflow.keras.record import CAPTURE


class ReplicaFunctions:
    """Capturing functions of one model under a strategy of TensorFlow."""

    def __init__(self, model: Any, engine: Engine) -> None:
        self._model = model
        self._engine = engine

    def make(self, kind: str) -> Any:
        """A capturing function; None: the one that Keras makes will do."""
        strategy = self._strategy()
        if strategy is None or kind == "predict":  # predictions are joined, not reduced
            return None
        tf = self._engine.framework
        step = getattr(self._model, f"{kind}_step")
        counter = getattr(self._model, f"_{kind}_counter", None) if self._engine.is_legacy else None

        def run_step(data: Any) -> Any:
            outputs = step(data)
            if counter is not None:  # Keras 2 counts the steps of a model here
                counter.assign_add(1)
            return outputs

        def on_iterator(iterator: Any) -> Any:
            outputs = dict(strategy.run(run_step, args=(next(iterator),)))
            capture = outputs.pop(CAPTURE)
            logs = {name: self._reduced(strategy, value) for name, value in outputs.items()}
            return {**logs, CAPTURE: capture}

        if self._model.run_eagerly:
            return on_iterator
        return tf.function(on_iterator, reduce_retracing=True)

    def joined(self, capture: dict[str, Any]) -> dict[str, Any]:
        """The tensors of the replicas of this process as one: batches in order, gradients summed."""
        strategy = self._strategy()
        if strategy is None:
            return capture
        local = strategy.experimental_local_results
        return {key: self._join(key, list(local(value))) for key, value in capture.items()}

    def split(self, capture: dict[str, Any]) -> list[dict[str, Any]]:
        """The tensors of each replica of this process."""
        strategy = self._strategy()
        if strategy is None:
            return [capture]
        local = strategy.experimental_local_results
        parts: list[dict[str, Any]] = []
        for key, value in capture.items():
            for i, part in enumerate(local(value)):
                if i == len(parts):
                    parts.append({})
                parts[i][key] = part
        return parts

    def _join(self, key: str, parts: list[Any]) -> Any:
        tf = self._engine.framework
        if len(parts) == 1:
            return parts[0]
        if key.startswith("gradient:"):
            return tf.add_n(parts)
        return tf.concat(parts, 0) if len(parts[0].shape) else tf.stack(parts)

    def _reduced(self, strategy: Any, value: Any) -> Any:
        tf = self._engine.framework
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return strategy.reduce("SUM" if self._engine.is_legacy else "MEAN", value, axis=None)
        if not isinstance(value, tf.distribute.DistributedValues):
            return value
        parts = strategy.experimental_local_results(value)
        return tf.reduce_sum(parts) if self._engine.is_legacy else tf.reduce_mean(parts, axis=0)

    def _strategy(self) -> Any:
        if self._engine.backend != "tensorflow":
            return None
        strategy = self._model.distribute_strategy
        return strategy if strategy.num_replicas_in_sync > 1 else None

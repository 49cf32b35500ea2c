"""The hook for PyTorch under trainers: Lightning, transformers, Accelerate. Tiny models, offline."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import lightning
import ml_dtypes
import numpy as np
import pytest
import recorded
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from smdebug import run_control
from smdebug.pytorch import Hook, modes
from smdebug.pytorch.lightning import RecordingCallback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch_training import EVERY_STEP, Small, batches, record, saved
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

ALL = {"save_all": True, "save_config": EVERY_STEP}


@pytest.fixture(autouse=True)
def strict(clean_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "1")
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Lit(lightning.LightningModule):
    """A model that is optimized automatically or by hand."""

    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.automatic_optimization = not by_hand
        self.net = Small()

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        self.net(batch[0])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def data(count: int) -> DataLoader[Any]:
    x, y = zip(*batches(count), strict=True)
    return DataLoader(TensorDataset(torch.cat(x), torch.cat(y)), batch_size=5)


@pytest.mark.parametrize("by_hand", [False, True])
def test_each_batch_of_lightning_is_a_step(tmp_path: Path, by_hand: bool) -> None:
    def job(hook: Any) -> nn.Module:
        torch.manual_seed(3)
        model = Lit(by_hand)
        callbacks = [RecordingCallback(hook)] if isinstance(hook, Hook) else []
        trainer = lightning.Trainer(
            max_epochs=2,
            callbacks=callbacks,
            default_root_dir=tmp_path,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            accelerator="cpu",
            gradient_clip_val=None if by_hand else 0.1,
            num_sanity_val_steps=2,
        )
        trainer.fit(model, data(3), data(2))
        return model

    trial = record(job, tmp_path / "run", **ALL)
    assert trial.steps() == list(range(10))  # two epochs of 3 + 2 batches
    assert trial.steps(mode=modes.TRAIN) == list(range(6))
    assert trial.steps(mode=modes.EVAL) == list(range(4))
    for name in ("loss_output_0", "gradient/Lit_net.a.weight"):
        assert trial.tensor(name).steps(mode=modes.TRAIN) == list(range(6))
        assert trial.tensor(name).steps(mode=modes.EVAL) == []
    assert trial.tensor("net_output_0").steps() == list(range(10))
    # Weights before the update of their step.
    assert not np.array_equal(
        saved(trial, "Lit_net.a.weight", 0), saved(trial, "Lit_net.a.weight", 1)
    )


def test_lightning_ends_as_a_rule_asks_for_it(tmp_path: Path) -> None:
    rule = {"rule": "VanishingGradient", "actions": '{"name": "log", "level": "info"}'}
    hook = Hook(tmp_path / "run", rules=[rule])
    written = []
    hook.on_checkpoint(lambda: written.append(int(hook.step)))

    class Asking(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
            if int(hook.step) == 2:
                for request in ("checkpoint", "stop"):
                    run_control.ask(tmp_path / "run", request, rule="Mine", step=2, message="")
                recorded.wait_until_heard(hook, "checkpoint", "stop")

    trainer = lightning.Trainer(
        max_epochs=50,
        callbacks=[RecordingCallback(hook), Asking()],
        default_root_dir=tmp_path,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
    )
    trainer.fit(Lit(by_hand=False), data(10))
    hook.close()
    assert trainer.should_stop and trainer.global_step == 4
    assert int(hook.step) == 3 and written == [2]


class Sentences(torch.utils.data.Dataset[Any]):
    """Random tokens."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(index)
        tokens = torch.randint(0, 20, (6,), generator=generator)
        return {"input_ids": tokens, "labels": int(tokens[0]) % 2}


def test_each_micro_batch_of_transformers_is_a_step(tmp_path: Path) -> None:
    def job(hook: Any) -> nn.Module:
        torch.manual_seed(3)
        config = BertConfig(
            vocab_size=20,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            max_position_embeddings=8,
            num_labels=2,
        )
        model = BertForSequenceClassification(config)
        hook.register_module(model)
        arguments = TrainingArguments(
            output_dir=str(tmp_path / "hf"),
            per_device_train_batch_size=2,
            per_device_eval_batch_size=4,
            gradient_accumulation_steps=2,
            max_steps=2,
            eval_strategy="steps",
            eval_steps=2,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            save_strategy="no",
            seed=3,
        )
        Trainer(model, arguments, train_dataset=Sentences(), eval_dataset=Sentences()).train()
        return model

    trial = record(job, tmp_path / "run", auto_mode=True, **ALL)
    assert trial.steps(mode=modes.TRAIN) == [0, 1, 2, 3]  # two updates of two micro-batches
    assert trial.steps(mode=modes.EVAL) == [0, 1]
    root = "BertForSequenceClassification"
    losses = trial.tensor_names(collection="losses")
    assert losses == [f"{root}_output_0"]  # the field `loss` of the model's output
    assert trial.tensor(losses[0]).steps(mode=modes.TRAIN) == [0, 1, 2, 3]
    gradient = f"gradient/{root}_classifier.weight"
    assert trial.tensor(gradient).steps(mode=modes.TRAIN) == [0, 1, 2, 3]
    assert f"{root}_input_0" in trial.tensor_names()  # keywords only


def test_accelerate_computes_in_bfloat16(tmp_path: Path) -> None:
    def job(hook: Any) -> nn.Module:
        torch.manual_seed(3)
        AcceleratorState._reset_state(reset_partial_state=True)
        accelerator = Accelerator(cpu=True, mixed_precision="bf16", gradient_accumulation_steps=2)
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, loader = accelerator.prepare(model, optimizer, data(4))
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.cross_entropy(model(x), y))
                optimizer.step()
                optimizer.zero_grad()
        return model

    trial = record(job, tmp_path / "run", gradient_source="optimizer", **ALL)
    assert trial.steps() == [0, 1, 2, 3]
    inner = saved(trial, "a_output_0")
    np.testing.assert_array_equal(inner, inner.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert trial.tensor("gradient/Small_a.weight").steps() == [1, 3]  # real updates only

"""Scripts for trainers: `trainers.py lightning|transformers DIRECTORY`. Prints what was learnt."""

import contextlib
import hashlib
import io
import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


def digest(model):
    parameters = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print(hashlib.sha256(parameters).hexdigest())


def with_lightning(where):
    import lightning

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    torch.manual_seed(0)
    model = Lit()
    data = DataLoader(TensorDataset(torch.randn(15, 3), torch.randint(0, 2, (15,))), batch_size=5)
    trainer = lightning.Trainer(
        max_epochs=2,
        default_root_dir=where,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        accelerator="cpu",
    )
    trainer.fit(model, data, data)
    digest(model)


def with_transformers(where):
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    class Sentences(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            generator = torch.Generator().manual_seed(index)
            tokens = torch.randint(0, 20, (6,), generator=generator)
            return {"input_ids": tokens, "labels": int(tokens[0]) % 2}

    torch.manual_seed(0)
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
    arguments = TrainingArguments(
        where,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        num_train_epochs=1,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    with contextlib.redirect_stdout(io.StringIO()):  # it prints times
        Trainer(model, arguments, train_dataset=Sentences()).train()
    digest(model)


if __name__ == "__main__":
    {"lightning": with_lightning, "transformers": with_transformers}[sys.argv[1]](sys.argv[2])

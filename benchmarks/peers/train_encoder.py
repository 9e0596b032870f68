"""Measures the training speed of the encoder of configs/head_budgets/paper.json in PyTorch (timed_training.py): AdamW,
batches of 16 texts.

    python train_encoder.py --case 128 --compile --bf16 --steps 6  # texts of 64, 128, 256 or 512 tokens
"""
import functools

import torch
import torch.nn as nn
import torch.nn.functional as F
from encoder_model import Encoder
from timed_training import Case, time_training

BATCH = 16


class Classification(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, tokens, labels):
        return F.cross_entropy(self.encoder(tokens).float(), labels)


def make_case(tokens):
    model = Classification()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    return Case(model, optimizer, model.encoder.embedding.num_embeddings, (BATCH, tokens), clip=1.0,
                classes=model.encoder.head.out_features)


time_training({str(tokens): functools.partial(make_case, tokens) for tokens in [64, 128, 256, 512]})

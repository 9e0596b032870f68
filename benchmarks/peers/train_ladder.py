"""Measures the training speed of the ladder's last rung in PyTorch (timed_training.py): four blocks with RMSNorm, ReLU
feed-forward parts with two hidden layers, learned positions, an untied head, plain SGD, batches of 4,096 windows of 32
tokens.

    python train_ladder.py --compile --bf16 --steps 4
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from timed_training import Case, time_training

VOCAB, D_MODEL, HEADS, LENGTH, HIDDEN, BLOCKS, BATCH = 2048, 256, 4, 32, 2048, 4, 4096


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(D_MODEL, eps=1e-6), nn.RMSNorm(D_MODEL, eps=1e-6)
        self.qkv, self.out = nn.Linear(D_MODEL, 3 * D_MODEL, bias=False), nn.Linear(D_MODEL, D_MODEL, bias=False)
        self.mlp = nn.Sequential(nn.Linear(D_MODEL, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                                 nn.Linear(HIDDEN, D_MODEL))

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (t.view(batch, tokens, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(D_MODEL, -1))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(o.transpose(1, 2).reshape(batch, tokens, D_MODEL))
        return x + self.mlp(self.norm2(x))


class Ladder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCAB, D_MODEL), nn.Parameter(torch.randn(LENGTH, D_MODEL))
        self.blocks = nn.Sequential(*[Block() for _ in range(BLOCKS)])
        self.head = nn.Linear(D_MODEL, VOCAB, bias=False)

    def forward(self, x, y):
        x = self.blocks(self.embedding(x) + self.positions)
        return F.cross_entropy(self.head(x).float().flatten(0, 1), y.flatten())


def make_case():
    model = Ladder()
    return Case(model, torch.optim.SGD(model.parameters(), lr=0.05), VOCAB, (BATCH, LENGTH))


time_training({"ladder": make_case})

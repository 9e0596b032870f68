"""Training speed of the ladder's last rung in PyTorch: four blocks with RMSNorm, ReLU feed-forward parts of two hidden layers,
learned positions, an untied head, plain SGD, batches of 4,096 windows of 32 tokens. One case a process.

    python train_ladder.py --case ladder --compile --bf16 --steps 4

Prints one JSON line as train_gpt.py does.
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

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


parser = argparse.ArgumentParser()
parser.add_argument("--case", choices=["ladder"], default="ladder")
parser.add_argument("--compile", action="store_true")
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--threads", type=int, default=2)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(0)
model = Ladder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
step = torch.compile(model) if args.compile else model
x, y = torch.randint(0, VOCAB, (BATCH, LENGTH)), torch.randint(0, VOCAB, (BATCH, LENGTH))
seconds = []
for _ in range(args.steps):
    start = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
        loss = step(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    seconds.append(time.perf_counter() - start)
print(json.dumps({
    "case": args.case, "compile": args.compile, "bf16": args.bf16, "params": sum(p.numel() for p in model.parameters()),
    "tokens_per_s": round(BATCH * LENGTH / statistics.median(seconds[2:]), 1), "first_step_s": round(seconds[0], 1),
    "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))

"""The encoder of configs/head_budgets/paper.json in PyTorch: post-norm, ReLU, sinusoidal positions, mean pooling.

    encoder = load(folder)                  # a model folder that prism wrote
    logits = encoder(tokens)                # [texts, tokens] -> [texts, classes]; texts of the same length
"""
import json
import math
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

LAYER_NAMES = {  # of a layer's modules: ours, and those of prism's files
    "norm1": "post_attention_layernorm",
    "norm2": "post_feedforward_layernorm",
    "out": "self_attn.o_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
QKV = ["q_proj", "k_proj", "v_proj"]


def sinusoids(positions, width):
    exponent = torch.arange(0, width, 2, dtype=torch.float64) / width
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * torch.exp(-math.log(1e4) * exponent)
    return torch.stack((angle.sin(), angle.cos()), 2).flatten(1).float()


class Layer(nn.Module):
    def __init__(self, d_model, heads, hidden):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, hidden), nn.Linear(hidden, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        texts, tokens, d_model = x.shape
        q, k, v = (t.view(texts, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(d_model, -1))
        o = F.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + self.out(o.transpose(1, 2).reshape(texts, tokens, d_model)))
        return self.norm2(x + self.down(F.relu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, vocab=30522, d_model=768, heads=8, layers=4, hidden=3072, context=512, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.register_buffer("positions", sinusoids(context, d_model), persistent=False)
        self.layers = nn.ModuleList(Layer(d_model, heads, hidden) for _ in range(layers))
        self.head = nn.Linear(d_model, classes)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions[: tokens.size(1)]
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def load(folder):
    """Reads the weights of a model folder, in float32."""
    from safetensors.torch import load_file

    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())["model"]
    tensors = load_file(folder / "model.safetensors")
    encoder = Encoder(config["vocab_size"], config["d_model"], config["layers"][0]["heads"], len(config["layers"]),
                      config["layers"][0]["ffn"]["width"], config["context"], config["classes"])
    state = {"embedding.weight": tensors["model.embed_tokens.weight"]}
    for part in ["weight", "bias"]:
        state[f"head.{part}"] = tensors[f"classifier.{part}"]
        for i in range(len(encoder.layers)):
            theirs = f"model.layers.{i}"
            state[f"layers.{i}.qkv.{part}"] = torch.cat([tensors[f"{theirs}.self_attn.{name}.{part}"] for name in QKV])
            for name, stored in LAYER_NAMES.items():
                state[f"layers.{i}.{name}.{part}"] = tensors[f"{theirs}.{stored}.{part}"]
    encoder.load_state_dict(state)
    return encoder.eval()


def random_texts(texts, tokens, vocab):
    """The same for all programs that ask."""
    return torch.randint(0, vocab, (texts, tokens), generator=torch.Generator().manual_seed(tokens))

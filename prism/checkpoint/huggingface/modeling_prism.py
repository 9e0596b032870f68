"""Models of prism's own format in PyTorch: layers that differ in their heads, mirrored layers, gates within gates and
positions in words. Computes what prism computes in float32, with and without a cache."""

import base64
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn
from transformers import DynamicCache, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import (
    BaseModelOutputWithPast,
    CausalLMOutputWithPast,
    SequenceClassifierOutput,
)

from .configuration_prism import PrismConfig

# transformers 5 renames the field past_key_values to cache.
FIELDS = [field.name for field in dataclasses.fields(CausalLMOutputWithPast)]
CACHE = "cache" if "cache" in FIELDS else "past_key_values"


def rotary_angles(rotary, width):
    """Angle per token of each of width / 2 pairs, float64, and the factor of cosines and sines (1 without YaRN)."""
    angles, scale = scaled_angles(rotary, width)
    if rotary.get("factors"):
        angles = angles / torch.tensor(rotary["factors"], dtype=torch.float64)
    return angles, scale


def scaled_angles(rotary, width):
    base, factor = rotary["base"], rotary["factor"]
    plain = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    if rotary["scaling"] == "none":
        return plain, 1.0
    if rotary["scaling"] == "linear":
        return plain / factor, 1.0
    if rotary["scaling"] == "llama3":
        low, high = rotary["low_freq_factor"], rotary["high_freq_factor"]
        share = ((plain * (rotary["original_context"] / (2 * math.pi)) - low) / (high - low)).clamp(0, 1)
        return plain * share + plain / factor * (1 - share), 1.0

    def pair_with_turns(turns):
        return width * math.log(rotary["original_context"] / (turns * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(pair_with_turns(rotary["beta_fast"])), 0)
    high = min(math.ceil(pair_with_turns(rotary["beta_slow"])), width - 1)
    ramp = ((torch.arange(width // 2, dtype=torch.float64) - low) / max(high - low, 0.001)).clamp(0, 1)
    scale = rotary["attention_factor"] or (1.0 if factor <= 1 else 0.1 * math.log(factor) + 1)
    return plain * (1 - ramp) + plain / factor * ramp, scale


def rotary_table(rotary, head_dim, positions, word_positions):
    """Cosines and sines [B, T, 1, head_dim / 2]. The last word_dims / 2 pairs turn with the position in the word."""
    words = rotary["word_dims"]
    angles, scale = rotary_angles(rotary, head_dim - words)
    angle = positions.unsqueeze(-1).double() * angles.to(positions.device)
    cos, sin = scale * angle.cos(), scale * angle.sin()
    if words > 0:
        of_words = rotary["word_base"] ** (-torch.arange(0, words, 2, dtype=torch.float64) / words)
        angle = word_positions.unsqueeze(-1).double() * of_words.to(positions.device)
        cos, sin = torch.cat([cos, angle.cos()], -1), torch.cat([sin, angle.sin()], -1)
    return cos.float().unsqueeze(2), sin.float().unsqueeze(2)


def rotate(x, cos, sin):
    """Rotates features j and j + D/2 of x [B, T, heads, D]."""
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def word_positions_of(input_ids, starts, attention_mask=None):
    """Position of each token in its word: 0 at one that starts a word or opens the row, else one more than before."""
    place = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
    is_start = starts.to(input_ids.device)[input_ids]
    if attention_mask is not None:
        is_start = is_start | (attention_mask[:, : input_ids.shape[1]].cumsum(-1) <= 1)
    else:
        is_start = is_start | (place == 0)
    return place - torch.where(is_start, place, 0).cummax(-1).values


class PrismNorm(nn.Module):
    """RMSNorm, or LayerNorm if `kind` is "layer"."""

    def __init__(self, kind, width, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if kind == "layer" else None

    def forward(self, x):
        values = x.float()
        if self.bias is not None:
            values = values - values.mean(-1, keepdim=True)
        values = values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + self.eps)
        values = values * self.weight.float()
        return (values if self.bias is None else values + self.bias.float()).to(x.dtype)


class PrismAttention(nn.Module):
    def __init__(self, model, layer, index):
        super().__init__()
        self.layer, self.index = layer, index
        self.is_causal = model["attention"] == "causal"
        self.heads, self.groups, self.width = layer["heads"], layer["kv_heads"], layer["head_dim"]
        d_model, bias = model["d_model"], layer["qkv_bias"]
        self.q_proj = nn.Linear(d_model, self.heads * self.width, bias=bias)
        self.k_proj = nn.Linear(d_model, self.groups * self.width, bias=bias)
        self.v_proj = nn.Linear(d_model, self.groups * self.width, bias=bias)
        self.o_proj = None
        if layer["output_projection"]:
            self.o_proj = nn.Linear(self.heads * self.width, d_model, bias=layer["output_bias"])
        self.q_norm = PrismNorm("rms", self.width, model["norm_eps"]) if layer["qk_norm"] else None
        self.k_norm = PrismNorm("rms", self.width, model["norm_eps"]) if layer["qk_norm"] else None

    def forward(self, x, positions, word_positions, mask, cache):
        batch, tokens = x.shape[:2]
        q = self.q_proj(x).view(batch, tokens, self.heads, self.width)
        k = self.k_proj(x).view(batch, tokens, self.groups, self.width)
        v = self.v_proj(x).view(batch, tokens, self.groups, self.width).transpose(1, 2)
        if self.q_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        rotary = self.layer["rotary"]
        if rotary["kind"] != "none":
            cos, sin = rotary_table(rotary, self.width, positions, word_positions)
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        q, k = q.transpose(1, 2), k.transpose(1, 2)
        if cache is not None:
            k, v = cache.update(k, v, self.index)
        shared = self.heads // self.groups
        k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
        window, past = self.layer.get("window", 0), k.shape[2] - tokens
        if window > 0:
            place = torch.arange(k.shape[2], device=k.device)
            mask = mask & (place > place[past:, None] - window)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(batch, tokens, -1)
        return out if self.o_proj is None else self.o_proj(out)


class PrismSharedLinear(nn.Module):
    """A linear layer with the weight of another one and, if that has a bias, a bias of its own."""

    def __init__(self, owner):
        super().__init__()
        self.owner = [owner]  # in a list, so that its weight is not listed twice
        self.bias = nn.Parameter(torch.zeros(owner.out_features)) if owner.bias is not None else None

    def forward(self, x):
        return F.linear(x, self.owner[0].weight, self.bias)


class PrismMLP(nn.Module):
    """The feed-forward part. One with an owner uses the weights of the owner's up and down projections."""

    def __init__(self, model, ffn, owner=None):
        super().__init__()
        d_model, width, self.kind = model["d_model"], ffn["width"], ffn["kind"]
        if self.kind not in ("swiglu", "g2lu", "relu", "gelu"):
            raise ValueError(f"expected ffn.kind swiglu, g2lu, relu or gelu; found {self.kind!r}; use a newer prism.")
        is_gated = self.kind in ("swiglu", "g2lu")
        if owner is None:
            self.up_proj = nn.Linear(d_model, width, bias=ffn["bias"])
            self.down_proj = nn.Linear(width, d_model, bias=ffn["bias"])
        else:
            self.up_proj = PrismSharedLinear(owner.up_proj)
            self.down_proj = PrismSharedLinear(owner.down_proj)
        self.gate_proj = nn.Linear(d_model, width, bias=ffn["bias"]) if is_gated else None
        self.inner_gate_proj = nn.Linear(d_model, width, bias=ffn["gate_bias"]) if self.kind == "g2lu" else None
        self.depth = ffn["depth"]
        for i in range(1, self.depth):
            setattr(self, f"hidden_proj_{i}", nn.Linear(width, width, bias=ffn["bias"]))

    def forward(self, x):
        up = self.up_proj(x)
        if self.kind == "swiglu":
            return self.down_proj(F.silu(self.gate_proj(x)) * up)
        if self.kind == "g2lu":
            return self.down_proj(F.silu(self.gate_proj(x) * F.silu(self.inner_gate_proj(x))) * up)
        if self.kind == "gelu":
            return self.down_proj(F.gelu(up))
        hidden = F.relu(up)
        for i in range(1, self.depth):
            hidden = F.relu(getattr(self, f"hidden_proj_{i}")(hidden))
        return self.down_proj(hidden)


class PrismLayer(nn.Module):
    def __init__(self, model, layer, index, owner):
        super().__init__()
        budget = layer["budget"]["kind"]
        if budget != "none":
            raise ValueError(
                f"expected layers without head budgets; found budget.kind {budget!r} in layer {index}; "
                "run this model with prism."
            )
        self.is_post = layer["norm_place"] == "post"
        self.self_attn = PrismAttention(model, layer, index)
        self.mlp = PrismMLP(model, layer["ffn"], owner)
        names = ("post_attention_layernorm", "post_feedforward_layernorm")
        if not self.is_post:
            names = ("input_layernorm", "post_attention_layernorm")
        self.norms = names if layer["norm"] != "none" else ()
        for name in self.norms:
            setattr(self, name, PrismNorm(layer["norm"], model["d_model"], model["norm_eps"]))

    def normed(self, which, x):
        return getattr(self, self.norms[which])(x) if self.norms else x

    def forward(self, x, *attention):
        if self.is_post:
            x = self.normed(0, x + self.self_attn(x, *attention))
            return self.normed(1, x + self.mlp(x))
        x = x + self.self_attn(self.normed(0, x), *attention)
        return x + self.mlp(self.normed(1, x))


class PrismPreTrainedModel(PreTrainedModel):
    config_class = PrismConfig
    base_model_prefix = "model"
    _no_split_modules = ["PrismLayer"]
    _supports_sdpa = True
    _keys_to_ignore_on_load_unexpected = [r"skip_head\..*"]

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(0, self.config.model.get("init_std", 0.02))
            if getattr(module, "bias", None) is not None:
                module.bias.data.zero_()


class PrismModel(PrismPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        model, layers = config.model, config.model["layers"]
        d_model = model["d_model"]
        self.embed_tokens = nn.Embedding(model["vocab_size"], d_model)
        self.embed_positions = nn.Embedding(model["context"], d_model) if model["learned_positions"] else None
        self.layers = nn.ModuleList()
        for index, layer in enumerate(layers):
            owner = self.layers[layer["mirror_of"]].mlp if layer["mirror_of"] >= 0 else None
            self.layers.append(PrismLayer(model, layer, index, owner))
        kind = "layer" if all(layer["norm"] == "layer" for layer in layers) else "rms"
        self.norm = PrismNorm(kind, d_model, model["norm_eps"]) if model["final_norm"] else None
        self.has_words = any(
            layer["rotary"]["kind"] != "none" and layer["rotary"]["word_dims"] > 0 for layer in layers
        )
        if self.has_words and config.word_starts is None:
            raise ValueError("expected word_starts in config.json; found none; save the model with its tokenizer.")
        self.known_word_starts = None
        self.post_init()

    def get_input_embeddings(self):
        return self.embed_tokens

    def set_input_embeddings(self, value):
        self.embed_tokens = value

    def word_starts(self):
        if self.known_word_starts is None:
            data = torch.frombuffer(bytearray(base64.b64decode(self.config.word_starts)), dtype=torch.uint8)
            bits = (data.unsqueeze(1) >> torch.arange(7, -1, -1)) & 1
            self.known_word_starts = bits.flatten()[: self.config.vocab_size].bool()
        return self.known_word_starts

    def embed(self, input_ids, positions):
        x = self.embed_tokens(input_ids)
        if self.embed_positions is not None:
            return x + self.embed_positions(positions)
        if not self.config.model["sinusoidal_positions"]:
            return x
        width = x.shape[-1]
        exponent = torch.arange(0, width, 2, dtype=torch.float64, device=x.device) / width
        angle = positions.unsqueeze(-1).double() * torch.exp(-math.log(10000.0) * exponent)
        return x + torch.stack([angle.sin(), angle.cos()], -1).flatten(2).to(x.dtype)

    def mask_of(self, input_ids, attention_mask, past):
        """True where a query attends to a key, [B or 1, 1, T, S]."""
        tokens, device = input_ids.shape[1], input_ids.device
        keys = torch.arange(past + tokens, device=device)
        mask = torch.ones(1, 1, tokens, past + tokens, dtype=torch.bool, device=device)
        if self.config.model["attention"] == "causal":
            mask = (keys <= keys[past:, None])[None, None]
        if attention_mask is not None:
            mask = mask & attention_mask[:, None, None, : past + tokens].bool()
            mask = mask | ~mask.any(-1, keepdim=True)  # padding attends to anything, so that nothing is NaN
        return mask

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        cache=None,
        past_key_values=None,
        word_positions=None,
        use_cache=None,
        **kwargs,
    ):
        for name in ("inputs_embeds", "output_hidden_states", "output_attentions"):
            if kwargs.get(name) is not None and kwargs[name] is not False:
                raise ValueError(f"expected no {name}, which this model does not support; found it; leave it out.")
        cache = past_key_values if cache is None else cache
        if use_cache and cache is None:
            cache = DynamicCache()
        past = cache.get_seq_length() if cache is not None else 0
        tokens = input_ids.shape[1]
        if attention_mask is not None and attention_mask.dim() != 2:
            raise ValueError("expected attention_mask [batch, tokens]; found another shape; pass 1 for each token.")
        if position_ids is None:
            if attention_mask is not None:
                position_ids = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, past : past + tokens]
            else:
                position_ids = torch.arange(past, past + tokens, device=input_ids.device).expand(input_ids.shape)
        if self.has_words and word_positions is None:
            if past > 0:
                raise ValueError("expected word_positions with a cache; found none; generate() passes them.")
            word_positions = word_positions_of(input_ids, self.word_starts(), attention_mask)
        mask = self.mask_of(input_ids, attention_mask, past)
        x = self.embed(input_ids, position_ids)
        for layer in self.layers:
            x = layer(x, position_ids, word_positions, mask, cache)
        x = x if self.norm is None else self.norm(x)
        return BaseModelOutputWithPast(last_hidden_state=x, **{CACHE: cache})


class PrismForCausalLM(PrismPreTrainedModel, GenerationMixin):
    def __init__(self, config):
        super().__init__(config)
        self.model = PrismModel(config)
        is_tied = config.model["tied"]
        self.lm_head = None if is_tied else nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.model.embed_tokens

    def set_input_embeddings(self, value):
        self.model.embed_tokens = value

    def get_output_embeddings(self):
        return self.lm_head

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **kwargs):
        cache = kwargs.get(CACHE)
        past = cache.get_seq_length() if cache is not None else 0
        inputs = {
            "input_ids": input_ids[:, past:],
            CACHE: cache,
            "attention_mask": attention_mask,
            "use_cache": kwargs.get("use_cache"),
        }
        if self.model.has_words:
            words = word_positions_of(input_ids, self.model.word_starts(), attention_mask)
            inputs["word_positions"] = words[:, past:]
        return inputs

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        cache=None,
        past_key_values=None,
        labels=None,
        use_cache=None,
        logits_to_keep=0,
        num_items_in_batch=None,
        return_dict=None,
        **kwargs,
    ):
        cache = past_key_values if cache is None else cache
        outputs = self.model(input_ids, attention_mask, cache=cache, use_cache=use_cache is not False, **kwargs)
        hidden = outputs.last_hidden_state
        if logits_to_keep:
            hidden = hidden[:, -logits_to_keep:]
        weight = self.model.embed_tokens.weight if self.lm_head is None else self.lm_head.weight
        logits = F.linear(hidden, weight)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, self.config.vocab_size, num_items_in_batch=num_items_in_batch)
        output = CausalLMOutputWithPast(loss=loss, logits=logits, **{CACHE: outputs.get(CACHE)})
        return output if return_dict is not False else output.to_tuple()


class PrismForSequenceClassification(PrismPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = PrismModel(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, labels=None, return_dict=None, **kwargs):
        kwargs["use_cache"] = False
        hidden = self.model(input_ids, attention_mask, **kwargs).last_hidden_state
        if self.config.model["pooling"] == "first":
            pooled = hidden[:, 0]
        else:
            kept = torch.ones_like(input_ids) if attention_mask is None else attention_mask
            kept = kept.unsqueeze(-1).to(hidden.dtype)
            pooled = (hidden * kept).sum(1) / kept.sum(1).clamp(min=1)
        logits = self.classifier(pooled)
        loss = None if labels is None else F.cross_entropy(logits, labels)
        output = SequenceClassifierOutput(loss=loss, logits=logits)
        return output if return_dict is not False else output.to_tuple()


__all__ = ["PrismModel", "PrismForCausalLM", "PrismForSequenceClassification"]

"""Configuration of a model that prism saved in its own format (config.json, prism_format 2)."""

from transformers import PretrainedConfig


class PrismConfig(PretrainedConfig):
    """Holds prism's own description of the model in `model`; the other fields repeat parts of it for transformers.

    Args:
        model: sizes of the model, and under `layers` the heads, rotary positions, norms and feed-forward part of each
            layer, as in prism's config.json.
        word_starts: one bit for each token id, 1 where the token starts a word, in base64 with the first id in the
            highest bit of the first byte. Only models with word positions have it.
    """

    model_type = "prism"

    def __init__(self, model=None, word_starts=None, **kwargs):
        self.model = model or {}
        self.word_starts = word_starts
        layers = self.model.get("layers", [])
        self.num_hidden_layers = len(layers)
        self.hidden_size = self.model.get("d_model", 0)
        self.vocab_size = self.model.get("vocab_size", 0)
        self.max_position_embeddings = self.model.get("context", 0)
        # Layers differ; these describe the last one.
        self.num_attention_heads = layers[-1]["heads"] if layers else 0
        self.num_key_value_heads = layers[-1]["kv_heads"] if layers else 0
        self.head_dim = layers[-1]["head_dim"] if layers else 0
        if self.model.get("classes", 0) > 0:
            kwargs.setdefault("num_labels", self.model["classes"])
        # The classes below tie by themselves.
        kwargs["tie_word_embeddings"] = False
        super().__init__(**kwargs)


__all__ = ["PrismConfig"]

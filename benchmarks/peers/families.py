"""Compares models that transformers saved with the same models in prism, in float32.

    scripts/check_peers.sh families [--only NAME ...] [--fixtures DIR]

Makes small models of each family with random weights in transformers, saves them (spelled as transformers 4 and as 5, in
several dtypes, in one file and in several), and compares:

- logits of a text, computed by prism from transformers' folder;
- logits of prism's own copy of the folder (prism convert), computed by transformers, and the copy's family.

Prints a line for each model. Exit status 0 if all logits agree to 1e-4. --fixtures saves smaller models and
transformers' logits for tests (tests/checkpoint/families).
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile

# Otherwise this file's folder, which has a tokenizers.py, would hide the library.
HERE = pathlib.Path(__file__).parent
sys.path = [folder for folder in sys.path if pathlib.Path(folder or ".").resolve() != HERE.resolve()]
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402
from transformers.utils import logging  # noqa: E402

sys.path.append(str(HERE))
from huggingface import Workshop, made_text  # noqa: E402

TOLERANCE = 1e-4
SIZES = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128}
BASE = {**SIZES, "hidden_size": 48, "intermediate_size": 64, "initializer_range": 0.2, "head_dim": 12}
SMALL = {**SIZES, "hidden_size": 16, "intermediate_size": 20, "initializer_range": 0.3, "head_dim": 8}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
MODELS = {
    "llama": {"family": "llama", "num_key_value_heads": 4},
    "llama with biases": {"family": "llama", "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "llama 3.1": {"family": "llama", "rope": {**LLAMA3, "original_max_position_embeddings": 32, "rope_theta": 500.0}},
    "linear": {"family": "llama", "rope": {"rope_type": "linear", "factor": 2.5, "rope_theta": 1000.0}},
    "yarn": {
        "family": "qwen3",
        "rope": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 1000.0},
    },
    "mistral": {"family": "mistral", "sliding_window": 9},
    "mistral without window": {"family": "mistral", "sliding_window": None},
    "qwen2": {"family": "qwen2", "tie_word_embeddings": True},
    "qwen2 with windows": {"family": "qwen2", "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1},
    "qwen3": {"family": "qwen3", "attention_bias": True},
    "smollm3": {"family": "smollm3", "no_rope_layer_interval": 2},
    "smollm3 with windows": {
        "family": "smollm3",
        "no_rope_layers": [1, 0, 1],
        "use_sliding_window": True,
        "sliding_window": 11,
    },
    "float64": {"family": "llama", "dtype": "float64"},
    "float16": {"family": "qwen2", "dtype": "float16"},
    "bfloat16": {"family": "qwen3", "dtype": "bfloat16"},
    "several files": {"family": "llama", "shards": True},
    "version 4": {"family": "llama", "version": 4, "rope": {"rope_type": "default", "rope_theta": 500.0}},
    "version 4, llama 3.1": {
        "family": "llama",
        "version": 4,
        "rope": {**LLAMA3, "original_max_position_embeddings": 32, "rope_theta": 500.0},
    },
    "version 4, mistral": {"family": "mistral", "version": 4, "sliding_window": 9},
    "version 4, smollm3": {"family": "smollm3", "version": 4, "no_rope_layer_interval": 2},
}
OURS = ("family", "rope", "dtype", "shards", "version")


def make(name, folder, base, vocab_size):
    """Saves a model with random weights."""
    case = MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    fields = {**base, "vocab_size": vocab_size, **{key: value for key, value in case.items() if key not in OURS}}
    fields |= {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    if "rope" in case:
        fields["rope_parameters"] = dict(case["rope"])
    config = AutoConfig.for_model(case["family"], **fields)
    model = AutoModelForCausalLM.from_config(config).to(getattr(torch, case.get("dtype", "float32")))
    for parameter in model.parameters():  # gains and biases, too
        if parameter.dim() == 1:
            parameter.data.add_(torch.randn(parameter.shape).to(parameter) * 0.2)
    model.save_pretrained(folder, max_shard_size="20KB" if case.get("shards") else "1GB")
    if case.get("version") == 4:
        spell_as_version_4(folder / "config.json", fields)


def spell_as_version_4(file, fields):
    config = json.loads(file.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    config["torch_dtype"] = config.pop("dtype")
    if fields.get("no_rope_layer_interval"):
        config.pop("no_rope_layers")
    config.pop("layer_types", None)
    file.write_text(json.dumps(config, indent=2))


def loaded(folder):
    return AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, dtype=torch.float32).eval()


def compare(workshop, name, folder, fixtures):
    shutil.copy(workshop.folder / "tokenizer/tokenizer.json", folder)
    # About 100 tokens of the context's 128: windows cut many queries, and positions pass the original contexts of 32.
    text = made_text(9 if fixtures is None else 1, 7).strip()
    found = workshop.logits(folder, text)
    tokens, ours = found["tokens"], found["logits"]
    copy = workshop.folder / f"{folder.name}-copy"
    workshop.run("convert", str(folder), str(copy))
    family = json.loads((copy / "config.json").read_text())["model_type"]
    with torch.no_grad():
        theirs = loaded(folder)(tokens).logits
        of_copy = loaded(copy)(tokens).logits
    if fixtures is not None:
        target = fixtures / name.replace(", ", "-").replace(" ", "-")
        target.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("*"):
            if file.name not in ("generation_config.json", "tokenizer.json"):
                shutil.copy(file, target)
        save_file({"tokens": tokens, "logits": theirs[:, ::4].contiguous()}, target / "transformers.safetensors")
    return {
        "logits": (theirs - ours).abs().max().item(),
        "copy": (theirs - of_copy).abs().max().item(),
        "tokens": tokens.shape[1],
        "family": family,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--only", nargs="*", choices=sorted(MODELS), help="compare these models alone")
    parser.add_argument("--fixtures", type=pathlib.Path, help="folder for models and logits, for tests")
    words = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        prism = str(pathlib.Path(words.prism).resolve())
        is_small = words.fixtures is not None
        workshop = Workshop(prism, pathlib.Path(folder), 1, is_small)
        for name in words.only or MODELS:
            saved = pathlib.Path(folder) / "saved" / name.replace(" ", "-")
            make(name, saved, SMALL if is_small else BASE, 264 if is_small else 400)
            result = compare(workshop, name, saved, words.fixtures)
            same_family = result["family"] == MODELS[name]["family"] or name == "mistral without window"
            is_right = result["logits"] < TOLERANCE and result["copy"] < TOLERANCE and same_family
            good = good and is_right
            print(
                f"{name:<24} {'ok  ' if is_right else 'FAIL'} logits {result['logits']:.1e}, copy {result['copy']:.1e} as "
                f"{result['family']}, {result['tokens']} tokens",
                flush=True,
            )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

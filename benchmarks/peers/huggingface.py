"""Compares models that prism saved with the same models in transformers, in float32.

    scripts/check_peers.sh huggingface [--steps N] [--only NAME ...] [--fixtures DIR]

Trains small models of many kinds for a few steps, loads each folder with transformers (trust_remote_code) and compares:

- logits of a text: the largest difference, in one pass and token by token with a cache;
- greedy generation: 64 tokens, with and without a cache, from two prompts of different lengths, padded on the left, and
  from two equal ones; with a cache, that each step reads one token;
- text to ids, by the saved tokenizer.

Prints a line for each model. Exit status 0 if all logits agree to 1e-4 and all tokens are equal. --fixtures saves
smaller models and transformers' logits for tests (tests/checkpoint/transformers).
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Otherwise this file's folder, which has a tokenizers.py, would hide the library.
sys.path = [folder for folder in sys.path if pathlib.Path(folder or ".").resolve() != pathlib.Path(__file__).parent]
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

TOLERANCE = 1e-4
WORDS = "river stone light walks under golden morning quietly bridge sings untranslatable reconsiderations".split()
BASE = {"d_model": 48, "context": 128, "schedule": "4x4", "ffn_width": 64, "allow_any": True, "init_std": 0.2}
SMALL = {**BASE, "d_model": 24, "ffn_width": 20}
WORD_POSITIONS = {"word_dims": 4, "word_base": 10.0}
MODELS = {
    "llama": {},
    "qwen3": {"qk_norm": True},
    "schedule": {"schedule": "2x1,3x1,4x2", "kv_schedule": "1x1,3x1,2x2"},
    "mirrored": {"schedule": "4x5", "kv_schedule": "/2", "mirror_middle": 1, "ffn": {"kind": "g2lu"}},
    "same order": {"schedule": "4x6", "mirror_middle": 2, "mirror_order": "same", "tied": False},
    "prisma": {
        "schedule": "4x5",
        "kv_schedule": "/2",
        "mirror_middle": 1,
        "ffn": {"kind": "g2lu"},
        "rotary": WORD_POSITIONS,
        "skip": 1,
    },
    "mirrored relu": {"schedule": "4x3", "mirror_middle": 1, "ffn": {"kind": "relu", "bias": True}},
    "mirrored gelu": {"schedule": "4x4", "mirror_middle": 0, "ffn": {"kind": "gelu", "bias": True}},
    "grafted": {"ffn": {"kind": "g2lu", "gate_bias": True}},
    "words": {"rotary": WORD_POSITIONS, "schedule": "2x1,3x1,4x2"},
    "ladder": {
        "learned_positions": True,
        "rotary": {"kind": "none"},
        "norm": "layer",
        "ffn": {"kind": "relu", "depth": 2, "bias": True},
        "output_projection": False,
    },
    "gpt": {
        "sinusoidal_positions": True,
        "rotary": {"kind": "none"},
        "norm": "layer",
        "norm_place": "post",
        "final_norm": False,
        "qkv_bias": True,
        "output_bias": True,
        "ffn": {"kind": "gelu", "bias": True},
    },
    "yarn": {
        "schedule": "2x2,4x2",
        "rotary": {"scaling": "yarn", "factor": 4.0, "original_context": 32, "base": 1000.0},
    },
    "no norms": {"norm": "none", "final_norm": False, "schedule": "2x2,4x2"},
    "classifier": {"classes": 3, "attention": "full", "rotary": WORD_POSITIONS},
    "causal classifier": {"classes": 3, "pooling": "first", "schedule": "2x2,4x2"},
    "budgets": {"budget": {"kind": "learned"}},
}


def made_text(sentences, seed):
    generator = torch.Generator().manual_seed(seed)
    lines = []
    for _ in range(sentences):
        picks = torch.randint(len(WORDS), (8,), generator=generator).tolist()
        lines.append("The " + " ".join(WORDS[i] for i in picks) + ".")
    return "\n".join(lines) + "\n"


class Workshop:
    """Trains models in a folder."""

    def __init__(self, prism, folder, steps, is_small):
        self.prism, self.folder, self.steps = prism, folder, steps
        self.base, vocab_size = (SMALL, 260) if is_small else (BASE, 400)
        text = made_text(600, 1)
        (folder / "text.txt").write_text(text)
        rows = ["text,label"] + [f'"{line}",{i % 3}' for i, line in enumerate(text.splitlines()[:300])]
        (folder / "rows.csv").write_text("\n".join(rows) + "\n")
        self.run("tokenizer", "train", "text.txt", "--vocab-size", str(vocab_size), "--out", "tokenizer")
        self.run("tokenize", "text.txt", "--tokenizer", "tokenizer", "--out", "data")
        labelled = ["--label", "label", "--text-fields", "text"]
        self.run("tokenize", "rows.csv", "--tokenizer", "tokenizer", *labelled, "--out", "rows")

    def run(self, *words):
        done = subprocess.run([self.prism, *words], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"prism {' '.join(words)}: {done.stderr}")
        return done.stdout

    def train(self, name, model):
        recipe = {"prism_format": 1, "seed": 3, "model": {**self.base, **model}, "data": {"folder": "data"}}
        recipe["train"] = {"batch_rows": 4, "learning_rate": 0.01, "diagnose_steps": 0, "tensorboard": False}
        if "classes" in model:
            recipe["data"]["folder"] = "rows"
            recipe["train"]["epochs"] = min(1.0, self.steps * 4 / 300)
        else:
            recipe["train"]["tokens"] = self.steps * 4 * BASE["context"]
        (self.folder / "recipe.json").write_text(json.dumps(recipe))
        run = name.replace(" ", "-")
        self.run("train", "--recipe", "recipe.json", "--out", run)
        checkpoints = sorted((self.folder / run / "checkpoints").glob("step-*"))
        return checkpoints[-1]

    def logits(self, model, text):
        words = ["--out", "captured", "--logits", "--dtype", "float32"]
        self.run("analyse", "capture", str(model), "--text", text, *words)
        return load_file(self.folder / "captured/logits.safetensors")

    def generate(self, model, prompt):
        words = ["--temperature", "0", "--max-new-tokens", "64", "--ignore-eos", "--json", "--dtype", "float32"]
        return json.loads(self.run("generate", str(model), prompt, *words))["ids"]


def token_by_token(model, tokens):
    """Logits with a cache, a token at a time; inputs as generate() prepares them."""
    cache, logits = None, []
    for t in range(tokens.shape[1]):
        seen = tokens[:, : t + 1]
        inputs = model.prepare_inputs_for_generation(seen, cache=cache, use_cache=True)
        if inputs["input_ids"].shape[1] != 1:  # transformers' own classes cut by other means
            inputs["input_ids"] = seen[:, -1:]
        output = model(**inputs)
        cache = output.cache
        logits.append(output.logits[:, -1:])
    return torch.cat(logits, 1)


class Widths:
    """Counts the tokens of each pass of a model."""

    def __init__(self, model):
        self.widths = []
        layer = model.get_decoder() if hasattr(model, "get_decoder") else model.model
        self.hook = layer.embed_tokens.register_forward_hook(lambda _, ids, __: self.widths.append(ids[0].shape[1]))

    def are_cached(self, prompt):
        self.hook.remove()
        return self.widths == [prompt] + [1] * 63


def greedy(model, tokens, use_cache, mask=None):
    length = {"max_new_tokens": 64, "min_new_tokens": 64, "pad_token_id": 0, "eos_token_id": None}
    out = model.generate(tokens, attention_mask=mask, do_sample=False, use_cache=use_cache, **length)
    return out[:, tokens.shape[1] :].tolist()


def compare(workshop, name, folder, fixtures):
    is_classifier = "classes" in MODELS[name]
    loader = AutoModelForSequenceClassification if is_classifier else AutoModelForCausalLM
    model = loader.from_pretrained(folder, trust_remote_code=True, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    text = made_text(1, 7).strip()
    found = workshop.logits(folder, text)
    tokens, expected = found["tokens"], found["logits"]
    result = {"ids equal": [tokenizer.bos_token_id, *tokenizer(text).input_ids] == tokens[0].tolist()}
    with torch.no_grad():
        logits = model(tokens).logits
        result["logits"] = (logits - expected).abs().max().item()
        if is_classifier:
            padded = torch.nn.functional.pad(tokens, (0, 5))
            kept = model(padded, attention_mask=(torch.arange(padded.shape[1]) < tokens.shape[1]).long()[None]).logits
            result["padded"] = (kept - expected).abs().max().item()
        else:
            result["cached logits"] = (token_by_token(model, tokens) - expected).abs().max().item()
            prompt = "The golden mor"
            short = tokenizer(prompt, return_tensors="pt").input_ids
            ours = workshop.generate(folder, prompt)
            widths = Widths(model)
            result["greedy equal"] = greedy(model, short, True)[0] == ours
            result["uses its cache"] = widths.are_cached(short.shape[1])
            result["without equal"] = greedy(model, short, False)[0] == ours
            result["two equal"] = greedy(model, short.repeat(2, 1), True) == [ours, ours]
            beams = model.generate(short, num_beams=3, do_sample=False, max_new_tokens=8, pad_token_id=0)
            result["beams"] = beams.shape[1] > short.shape[1]
            other = tokenizer("The river stone", return_tensors="pt").input_ids
            width = max(short.shape[1], other.shape[1]) + 2
            rows = torch.cat([torch.nn.functional.pad(ids, (width - ids.shape[1], 0)) for ids in (short, other)])
            mask = torch.stack([(torch.arange(width) >= width - ids.shape[1]).long() for ids in (short, other)])
            result["padded equal"] = greedy(model, rows, True, mask)[0] == ours
    if fixtures is not None:
        target = fixtures / name.replace(" ", "-")
        target.mkdir(parents=True, exist_ok=True)
        for file in ("config.json", "model.safetensors", "tokenizer.json"):
            shutil.copy(folder / file, target / file)
        save_file({"tokens": tokens, "logits": logits.contiguous()}, target / "transformers.safetensors")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--steps", type=int, default=40, help="training steps of each model")
    parser.add_argument("--only", nargs="*", choices=sorted(MODELS), help="compare these models alone")
    parser.add_argument("--fixtures", type=pathlib.Path, help="folder for models and logits, for tests")
    words = parser.parse_args()
    torch.manual_seed(1)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        prism = str(pathlib.Path(words.prism).resolve())
        workshop = Workshop(prism, pathlib.Path(folder), words.steps, words.fixtures is not None)
        for name in words.only or MODELS:
            trained = workshop.train(name, MODELS[name])
            if name == "budgets":
                try:
                    AutoModelForCausalLM.from_pretrained(trained, trust_remote_code=True)
                    is_right, text = False, "loaded"
                except ValueError as error:
                    is_right, text = "run this model with prism" in str(error), f"refused: {error}"
            else:
                result = compare(workshop, name, trained, words.fixtures)
                is_right = all(value if isinstance(value, bool) else value < TOLERANCE for value in result.values())
                shown = {key: value if isinstance(value, bool) else f"{value:.1e}" for key, value in result.items()}
                text = ", ".join(f"{key} {value}" for key, value in shown.items())
            good = good and is_right
            print(f"{name:<18} {'ok  ' if is_right else 'FAIL'} {text}", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

"""Compares what prism computes on another device with what it computes on the CPU, command by command, in float32.

    python3 benchmarks/device.py --prism build/release/bin/prism --device cuda

Makes a small text and labelled rows, trains four models on each device (a mirrored language model with gates in gates
and positions in words, one trained with Muon, one of equal layers for a .gguf file, a classifier with head budgets) and
runs every command that takes a model on both. Prints a line for each: the largest relative difference of the numbers in
its output. Exit status 0 if every command ran and no difference exceeds 1e-3; losses of trained models may differ by
1e-2, and of `bench model` only the exit status counts.
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
WORDS = "river stone light walks under golden morning quietly bridge sings untranslatable reconsiderations".split()
TRAIN = {"learning_rate": 0.003, "dtype": "float32", "log_steps": 5, "tensorboard": False}
SIZES = {"d_model": 64, "schedule": "2x2,4x3", "kv_schedule": "/2", "ffn_width": 96, "context": 128}
LM = {
    "data": {"folder": "data"},
    "train": {**TRAIN, "tokens": 20480, "batch_rows": 8, "eval_tokens": 8192, "diagnose_steps": 10},
    "final": {"distance_sequences": 4},
}
RECIPES = {
    "mirrored": {
        **LM,
        "model": {
            **SIZES,
            "ffn": {"kind": "g2lu"},
            "mirror_middle": 1,
            "rotary": {"word_dims": 4},
            "skip": 1,
            "window": 40,
        },
    },
    "plain": {**LM, "model": {**SIZES, "schedule": "4x3"}},
    "muon": {**LM, "model": {**SIZES, "qk_norm": True}, "train": {**LM["train"], "optimizer": "muon"}},
    "classifier": {
        "model": {
            **SIZES,
            "schedule": "4x3",
            "attention": "full",
            "classes": 3,
            "norm": "layer",
            "budget": {"kind": "learned"},
        },
        "data": {"folder": "rows"},
        "train": {**TRAIN, "epochs": 1, "batch_rows": 32},
    },
}
ANALYSES = "attention-distance entropy gates heads norms twins gradients".split()
SPARSE = ["--prefill", "spectral", "--prefill-set", "block_size=32", "--prefill-set", "recent=1",
          "--prefill-set", "last_dense=0"]
GREEDY = ["--temperature", "0", "--max-new-tokens", "16"]
CACHED = ["generate", "mirrored_cpu", "The golden river sings", *GREEDY]
UNTIMED = re.compile(r'"[a-z_]*(?:seconds|_ms|per_s|memory_bytes)": ?[0-9.e+-]+')


class Workshop:
    def __init__(self, prism, folder):
        self.prism, self.folder = prism, folder
        picks = random.Random(1)
        lines = [" ".join(picks.choice(WORDS) for _ in range(10)) + "." for _ in range(3000)]
        (folder / "text.txt").write_text("\n".join(lines) + "\n")
        (folder / "part.txt").write_text("\n".join(lines[:80]) + "\n")
        (folder / "prompt.txt").write_text(" ".join(lines[:8]))
        prompts = [json.dumps({"id": i, "prompt": lines[i][: 30 * (i + 1)]}) for i in range(5)]
        (folder / "prompts.jsonl").write_text("\n".join(prompts) + "\n")
        choices = [
            {"query": line[:40], "choices": [line[40:50], line[40:60], "silver stars"], "gold": i % 3}
            for i, line in enumerate(lines[:20])
        ]
        (folder / "choices.jsonl").write_text("\n".join(map(json.dumps, choices)) + "\n")
        (folder / "questions.jsonl").write_text('{"prompt": "The golden", "targets": ["river"], "stop": ["."]}\n')
        rows = ["text,label"] + [f'"{line}",{i % 3}' for i, line in enumerate(lines[:900])]
        (folder / "rows.csv").write_text("\n".join(rows) + "\n")
        self.must("tokenizer", "train", "text.txt", "--vocab-size", "400", "--out", "tokenizer")
        (folder / "valid.txt").write_text("\n".join(lines[:600]) + "\n")
        self.must("tokenize", "text.txt", "--valid", "valid.txt", "--tokenizer", "tokenizer", "--out", "data")
        split = ["--label", "label", "--text-fields", "text", "--valid-share", "0.1"]
        self.must("tokenize", "rows.csv", "--tokenizer", "tokenizer", *split, "--out", "rows")
        for name, recipe in RECIPES.items():
            (folder / f"{name}.json").write_text(json.dumps({"prism_format": 1, "seed": 3, **recipe}))

    def run(self, *words):
        return subprocess.run([self.prism, *words], cwd=self.folder, capture_output=True, text=True)

    def must(self, *words):
        done = self.run(*words)
        if done.returncode != 0:
            sys.exit(f"prism {' '.join(words)}: {done.stderr}")
        return done.stdout


def loss_of(folder):
    if not (folder / "records.jsonl").exists():
        return {}
    ends = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines() if '"kind":"end"' in line]
    return {"val_loss": ends[-1].get("val_loss", ends[-1].get("val_accuracy"))} if ends else {}


def numbers(text):
    return [float(value) for value in NUMBER.findall(UNTIMED.sub("", text))]


def difference(one, other):
    """The largest relative difference of the numbers in two texts, or infinity if the texts differ elsewhere."""
    if NUMBER.sub("#", UNTIMED.sub("", one)) != NUMBER.sub("#", UNTIMED.sub("", other)):
        return float("inf")
    return max((abs(a - b) / (1e-2 + abs(a)) for a, b in zip(numbers(one), numbers(other))), default=0.0)


def commands():
    """Names, words ({device}: the device's own file) and whether outputs are compared."""
    for name, words in compared_commands():
        yield name, words, True
    small = ["--prompt-tokens", "64", "--new-tokens", "4", "--depth", "0", "--rounds", "1"]
    yield "bench model", ["bench", "model", "plain.gguf", *small, "--sequences", "1", "3"], False


def compared_commands():
    lm, quantised = "mirrored_cpu", "plain.gguf"
    yield "eval", ["eval", lm, "part.txt", "--json"]
    yield "eval, sparse", ["eval", lm, "part.txt", "--json", *SPARSE]
    yield "generate", ["generate", lm, "The golden", "--temperature", "0", "--max-new-tokens", "40"]
    yield "generate, prompts", ["generate", lm, "--prompts", "prompts.jsonl", "--parallel", "3", *GREEDY]
    yield "generate, prompt cache", [*CACHED, "--prompt-cache", "{device}.cache"]
    yield "generate, spectral", ["generate", lm, "--prompt-file", "prompt.txt", "--prefill", "spectral", *GREEDY]
    yield "eval, gguf", ["eval", quantised, "part.txt", "--json"]
    yield "generate, gguf", ["generate", quantised, "The golden", *GREEDY]
    yield "generate, int8 cache", ["generate", quantised, "The golden", "--cache-type", "int8", *GREEDY]
    divergence = ["--task", "divergence", "--window", "64", "--cache-type", "int8", "--json"]
    yield "eval, divergence", ["eval", quantised, "part.txt", *divergence]
    against_dense = [*SPARSE, "--against-prefill", "dense"]
    yield "eval, choices", ["eval", lm, "--task", "multiple_choice", "--data", "choices.jsonl", *against_dense, "--json"]
    yield "eval, questions", ["eval", lm, "--task", "generate", "--data", "questions.jsonl", "--json"]
    yield "classify", ["classify", "classifier_cpu", "--text", "golden bridge", "--json"]
    yield "eval, classes", ["eval", "classifier_cpu", "rows", "--task", "classification", "--split", "valid", "--json"]
    for kind in ANALYSES:
        yield f"analyse {kind}", ["analyse", kind, lm, "--data", "data", "--sequences", "4", "--json"]
    yield "analyse spectrum", ["analyse", "spectrum", "muon_cpu", "part.txt", "--tokens", "128", "--json"]
    of_budgets = ["--data", "rows", "--split", "valid", "--no-timing", "--json"]
    yield "analyse budgets", ["analyse", "budgets", "classifier_cpu", *of_budgets]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--device", default="cuda", help="as prism's --device")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    words = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(words.jobs) as pool:
        workshop = Workshop(str(pathlib.Path(words.prism).resolve()), pathlib.Path(folder))
        devices = {"cpu": "cpu", "other": words.device}

        def show(name, outcomes, found, limit):
            nonlocal good
            failed = next((done.stderr.strip() for done in outcomes if done.returncode != 0), "")
            is_right = not failed and found <= limit
            good = good and is_right
            print(f"{name:<28} {'ok  ' if is_right else 'FAIL'} {failed[-300:] or f'{found:.1e}'}", flush=True)

        def train(name, label):
            out = ["--out", f"{name}_{label}", "--device", devices[label], "--threads", "1", "--quiet"]
            return workshop.run("train", "--recipe", f"{name}.json", *out)

        runs = {(name, label): pool.submit(train, name, label) for name in RECIPES for label in devices}
        for name in RECIPES:
            outcomes = [runs[name, label].result() for label in devices]
            losses = [json.dumps(loss_of(workshop.folder / f"{name}_{label}")) for label in devices]
            show(f"train {name}", outcomes, difference(*losses), 1e-2)

        def on(command, label):
            words = [word.format(device=label) if "{device}" in word else word for word in command]
            return workshop.run(*words, "--device", devices[label], "--threads", "1", "--quiet", "--dtype", "float32")

        workshop.must("convert", "plain_cpu", "plain.gguf", "--dtype", "q8_0")
        for label in devices:  # caches, which are read later
            done = on([*CACHED, "--prompt-cache", "{device}.cache"], label)
            if done.returncode != 0:
                sys.exit(f"generate --prompt-cache: {done.stderr}")
        pending = [
            (name, [pool.submit(on, command, label) for label in devices], is_compared)
            for name, command, is_compared in commands()
        ]
        for name, pair, is_compared in pending:
            outcomes = [job.result() for job in pair]
            found = difference(*(done.stdout for done in outcomes)) if is_compared else 0.0
            show(name if is_compared else f"{name} (not compared)", outcomes, found, 1e-3)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

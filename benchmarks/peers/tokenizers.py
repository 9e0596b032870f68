"""Compares `prism tokenizer` with Hugging Face tokenizers 0.23.3 and sentencepiece 0.2.3: ids, training and speed.

    scripts/check_peers.sh tokenizers [--rounds N] [--threads 1 2] [--megabytes N] [--skip-speed] [--skip-training]

Ids must be equal for the tokenizers of GPT-2, Llama 3 and Qwen 2.5, for Llama 2's (its tokenizer.model with
sentencepiece, and converted as transformers does with tokenizers), and for one that prism trained, on novels, on web
text and on hostile Unicode (random code points among spaces, apostrophes, digits, combining marks and special tokens).
Training on the novels must give the same vocabulary and merges. For speed, each measurement is its own process; prism
and the peer alternate, and "ratio" is the peer's median seconds divided by prism's.

- Encoding times only the encoding of documents in memory, with cold caches: the peer's encode_batch and
  encode_batch_fast (the same without offsets), prism's `encode --time`. One tokenizer; the documents are spread over
  the threads.
- Training times everything from text to tokenizer. prism's time includes reading the file; the peer's text is in
  memory.

Exit status 0 if all ids and merges are equal and, unless --skip-speed, no ratio is below 1.
"""

import argparse
import json
import lzma
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import sentencepiece

# Otherwise this file, tokenizers.py, would hide the library.
sys.path = [folder for folder in sys.path if pathlib.Path(folder or ".").resolve() != pathlib.Path(__file__).parent]
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

DOCUMENT_CHARACTERS = 16384
VOCAB_SIZE = 16384


def novels(data, megabytes):
    """The beginning of the training novels, cut into documents between paragraphs."""
    with lzma.open(data / "gutenberg_novels/train.txt.xz") as file:
        text = file.read(megabytes * 1_000_000).decode("utf-8", errors="ignore")
    documents, start = [], 0
    while start < len(text):
        end = text.find("\n\n", start + DOCUMENT_CHARACTERS)
        end = len(text) if end < 0 else end + 2
        documents.append(text[start:end])
        start = end
    return documents


def web_texts(data, megabytes):
    texts, size = [], 0
    with lzma.open(data / "web_text/fineweb_sample.jsonl.xz") as file:
        for line in file:
            texts.append(json.loads(line)["text"])
            size += len(texts[-1].encode())
            if size > megabytes * 1_000_000:
                return texts
    return texts


def hostile_texts(count):
    pick = random.Random(11)
    pool = list("'sSſtTrReEvVmMlLdD  \n\r\t\x0b\x85\xa0\u3000\u180e\u2028\u200b\u200d1٣½Ⅷé日本ß🙂🏽<|>,.!?_-#\x00\u0301\u0323▁")
    pool += ["<s>", "</s>", "<unk>", "<0x41>", "e\u0301", "\u1100\u1161\u11a8", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "'ll", "'RE", "\r\n", "\n\n", "   ", "don't", " the", "2024"]
    code_points = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    texts = []
    for _ in range(count):
        length = pick.choice([1, 3, 10, 40, 200])
        texts.append(
            "".join(pick.choice(pool) if pick.random() < 0.8 else chr(pick.choice(code_points)) for _ in range(length))
        )
    return texts


def write_rows(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


def write_converted_llama2(model, path):
    """Llama 2's tokenizer.json as transformers makes it: a merge for every way to cut a piece, by score."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    spelled = {pieces.id_to_piece(i): i for i in range(pieces.get_piece_size())}
    merges = []
    for piece, i in spelled.items():
        for cut in range(1, len(piece)):
            if piece[:cut] in spelled and piece[cut:] in spelled:
                merges.append((pieces.get_score(i), cut, len(piece) - cut, piece[:cut], piece[cut:]))
    merges.sort(key=lambda row: row[:3], reverse=True)
    model = models.BPE(spelled, [row[3:] for row in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    replace = decoders.Replace("▁", " ")
    tokenizer.decoder = decoders.Sequence(
        [replace, decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    tokenizer.save(str(path))


class Pieces:
    """sentencepiece with the functions of tokenizers that are used here."""

    def __init__(self, file):
        self.processor = sentencepiece.SentencePieceProcessor(model_file=file)

    def encode_batch(self, texts, add_special_tokens=False):
        return self.processor.encode(texts, num_threads=int(os.environ.get("RAYON_NUM_THREADS", 1)))


def load_peer(file):
    return Pieces(str(file)) if str(file).endswith(".model") else Tokenizer.from_file(str(file))


def prism_ids(prism, tokenizer, rows, *flags):
    command = [prism, "tokenizer", "encode", "--tokenizer", tokenizer, "--file", rows, "--json", *flags]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line)["ids"] for line in output.splitlines()]


def check_ids(name, prism, file, texts, rows):
    """Returns whether both give the same ids, with special tokens parsed and as plain text."""
    tokenizer = load_peer(file)
    pieces = isinstance(tokenizer, Pieces)
    equal = True
    for flags in [["--no-special"]] if pieces else [[], ["--no-special"]]:
        tokenizer.encode_special_tokens = bool(flags)
        if pieces:  # which never finds special tokens in a text
            expected = tokenizer.encode_batch(texts)
        else:
            expected = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        found = prism_ids(prism, file, rows, *flags)
        wrong = [i for i, ids in enumerate(expected) if i >= len(found) or ids != found[i]]
        equal = equal and not wrong and len(found) == len(expected)
        verdict = f"{len(wrong)} differ, first {texts[wrong[0]][:60]!r}" if wrong else "all equal"
        counts = f"{sum(map(len, expected)):,} tokens in {len(texts):,} documents"
        print(f"ids, {name}{' as text' if flags else ''}: {counts}, {verdict}", flush=True)
    return equal


def train_peer(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        min_frequency=2,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def train_prism(prism, rows, out, threads):
    command = [prism, "tokenizer", "train", rows, "--vocab-size", str(VOCAB_SIZE), "--out", out, "--force", "--json"]
    command += ["--threads", str(threads)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output)["seconds"]


def check_training(prism, texts, rows, out):
    train_prism(prism, rows, out, 2)
    expected = json.loads(train_peer(texts).to_str())["model"]
    found = json.loads(Tokenizer.from_file(str(out)).to_str())["model"]
    equal = expected["vocab"] == found["vocab"] and expected["merges"] == found["merges"]
    print(f"training: {len(found['merges']):,} merges, {'all equal' if equal else 'DIFFERENT'}", flush=True)
    return equal


def measure_peer(what, rows, tokenizer_file):
    """Runs in its own process, whose environment sets the number of threads."""
    texts = [json.loads(line)["text"] for line in pathlib.Path(rows).read_text().splitlines()]
    if what == "train":
        start = time.perf_counter()
        train_peer(texts)
    else:
        tokenizer = load_peer(tokenizer_file)
        start = time.perf_counter()
        getattr(tokenizer, what)(texts, add_special_tokens=False)
    print(time.perf_counter() - start)


def peer_seconds(what, rows, tokenizer_file, threads):
    environment = dict(os.environ, RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="true")
    command = [sys.executable, __file__, "--measure", what, str(rows), str(tokenizer_file)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def prism_encode_seconds(prism, rows, tokenizer_file, threads):
    command = [prism, "tokenizer", "encode", "--tokenizer", tokenizer_file, "--file", rows, "--time"]
    command += ["--threads", str(threads)]
    result = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return float(re.search(r"in ([0-9.]+) s", result.stderr).group(1))


def compare_speed(prism, rows, megabytes, tokenizer_file, out, thread_counts, rounds):
    """Training is timed if `out`, the file for its result, is given."""
    slowest = float("inf")
    print(f"\n{tokenizer_file.name}: {megabytes:.1f} MB")
    print(f"{'work':<26} {'threads':>7} {'prism':>10} {'peer':>10} {'ratio':>7}   seconds, medians of {rounds}")
    for threads in thread_counts:
        work = {"encode_batch": lambda: prism_encode_seconds(prism, rows, tokenizer_file, threads)}
        if tokenizer_file.suffix != ".model":
            work["encode_batch_fast"] = work["encode_batch"]
        if out:
            work["train"] = lambda: train_prism(prism, rows, out, threads)
        for what, run_prism in work.items():
            pairs = [(run_prism(), peer_seconds(what, rows, tokenizer_file, threads)) for _ in range(rounds)]
            mine, theirs = (statistics.median(column) for column in zip(*pairs))
            slowest = min(slowest, theirs / mine)
            speed = f"{megabytes / mine:.1f} MB/s against {megabytes / theirs:.1f} MB/s"
            print(f"{what:<26} {threads:>7} {mine:>10.3f} {theirs:>10.3f} {theirs / mine:>6.1f}x   {speed}", flush=True)
    return slowest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", help="the prism program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--skip-speed", action="store_true")
    parser.add_argument("--skip-training", action="store_true")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure_peer(*arguments.measure)

    data = pathlib.Path(os.environ["PRISM_DATA"])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sets = {
            "novels": novels(data, arguments.megabytes),
            "web text": web_texts(data, 1),
            "hostile Unicode": hostile_texts(6000),
        }
        files = {name: folder / f"{name.split()[0]}.jsonl" for name in sets}
        for name, texts in sets.items():
            write_rows(files[name], texts)
        tokenizers = ["gpt2.json", "llama3.json", "qwen2.5.json", "llama2.json", "llama2.model"]
        equal = True
        if not arguments.skip_training:
            equal = check_training(arguments.prism, sets["novels"], files["novels"], folder / "trained.json")
            tokenizers.append("trained.json")
        for published in ("gpt2", "llama3", "qwen2.5"):
            packed = data / "tokenizers" / published / "tokenizer.json.xz"
            (folder / f"{published}.json").write_bytes(lzma.open(packed).read())
        (folder / "llama2.model").write_bytes((data / "tokenizers/llama2/tokenizer.model").read_bytes())
        write_converted_llama2(folder / "llama2.model", folder / "llama2.json")
        for tokenizer in tokenizers:
            for name, texts in sets.items():
                equal &= check_ids(f"{tokenizer} on {name}", arguments.prism, folder / tokenizer, texts, files[name])
        slowest = float("inf")
        for tokenizer in [] if arguments.skip_speed else ["gpt2.json", "qwen2.5.json", "llama2.json", "llama2.model"]:
            trains = tokenizer == "gpt2.json" and not arguments.skip_training
            ratio = compare_speed(
                arguments.prism,
                files["novels"],
                sum(len(text.encode()) for text in sets["novels"]) / 1e6,
                folder / tokenizer,
                folder / "again.json" if trains else None,
                arguments.threads,
                arguments.rounds,
            )
            slowest = min(slowest, ratio)
    return 0 if equal and slowest >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())

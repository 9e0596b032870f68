#!/usr/bin/env python3
"""Writes prose in which facts are stated and asked again later, to train and test models that must look back.

    benchmarks/make_recall.py --tokenizer runs/study/tokenizer --prose train.txt.xz --distances 16 3800 --out train.jsonl
    benchmarks/make_recall.py --tokenizer runs/study/tokenizer --prose valid.txt.xz --distances 16 3800 --held-out \\
        --windows 20 --out valid.jsonl --questions questions.jsonl

Each row of the output is a window: with the token that opens a document it is exactly --tokens tokens long, so that
training on one row after another always sees a fact before its question. A fact is the marker " *", a key and a value,
words or beginnings of words of one token each; its question is the same marker and key, and the answer the value, so
that a question is a fact that is stated again. A key is in one fact of a window; prose contains the words of keys and
values, too. The number of tokens from the key of a fact to that of its question is drawn between the two --distances,
about uniform in its logarithm, and the place of the fact is uniform among those that fit.

Of all pairs of one of 256 keys and one of 256 values an eighth is held out: these alone are written with --held-out, and
never without it. --questions also writes one row for each question, for prism eval --task lambada_openai: text, up to and
with the answer, which is the last word; and the distance. Who takes any value of the window is right once in --facts.

PRISM_PROGRAM names a built prism. The same arguments write the same files.
"""
import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import zlib

WORDS = 256  # keys, and values
MARKER = "Ġ*"
SLOT = 3  # tokens of a fact
OPENING = 1  # the token that opens a document
TRIES = 1000  # windows that are drawn for one that fits
WORD = re.compile("Ġ[A-Za-z]{3,}")


class Vocabulary:
    """The tokens of a byte-level BPE tokenizer, and the words of facts among them."""

    def __init__(self, folder):
        path = os.path.join(folder, "tokenizer.json") if os.path.isdir(folder) else folder
        with open(path, encoding="utf-8") as file:
            ids = json.load(file)["model"]["vocab"]
        self.spelled = {number: token for token, number in ids.items()}
        # The last tokens of the vocabulary are those that the tokenizer's own text has least often.
        words = sorted((token for token in ids if WORD.fullmatch(token)), key=ids.get)[-2 * WORDS:]
        if len(words) < 2 * WORDS or MARKER not in ids:
            sys.exit(f"[make_recall] expected a vocabulary with {2 * WORDS} words of one token and \" *\"; found "
                     f"{len(words)} words in {path}; train a tokenizer of at least 4096 tokens.")
        random.Random(0).shuffle(words)
        self.keys, self.values = words[:WORDS], words[WORDS:]
        # A byte that is not printable is spelled by the letter that follows U+0100 by its place among such bytes.
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        hidden = [byte for byte in range(256) if byte not in printable]
        self.bytes = {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(hidden)}

    def text(self, tokens):
        return bytes(self.bytes[letter] for token in tokens for letter in token).decode("utf-8", "replace")


def is_held_out(key, value):
    return zlib.crc32(f"{key} {value}".encode()) % 8 == 0


def encode(prose, tokenizer):
    """The ids of each document of a file."""
    program = os.environ.get("PRISM_PROGRAM", "build/release/bin/prism")
    if not os.access(program, os.X_OK):
        sys.exit(f"[make_recall] expected a built prism at {program}; found none; build it, or set PRISM_PROGRAM.")
    done = subprocess.run([program, "tokenizer", "encode", "--file", prose, "--separator", r"\n\n\n\n", "--tokenizer", tokenizer,
                           "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return [[int(number) for number in line.split()] for line in done.stdout.splitlines()]


def draw_pairs(draw, vocabulary, count, held_out):
    """Keys, all different, with values, all different, of which all pairs are held out or none."""
    pairs = {}
    for key in draw.sample(vocabulary.keys, count):
        free = [value for value in vocabulary.values if is_held_out(key, value) == held_out and value not in pairs.values()]
        pairs[key] = draw.choice(free)
    return pairs


def draw_places(draw, count, tokens, nearest, farthest):
    """For each fact the places of its first token and of its question's, no two slots nearer than twice their length."""
    taken, places = [], []
    for _ in range(100 * count):
        distance = round(math.exp(draw.uniform(math.log(nearest), math.log(farthest))))
        first = draw.randrange(0, tokens - distance - 4 * SLOT)
        pair = (first, first + distance)
        if all(abs(place - other) >= 2 * SLOT for place in pair for other in taken):
            taken += pair
            places.append(pair)
        if len(places) == count:
            return places
    return None


def can_follow(before, after):
    """Whether a slot can stand between two tokens so that the text has the same tokens when it is encoded again."""
    return re.fullmatch("[A-Za-zĠ]*[A-Za-z]", before) and re.fullmatch("Ġ[A-Za-z]+", after)


def write_window(draw, vocabulary, prose, options):
    """The tokens of a window and its questions as (place of the answer, distance); None if it does not fit."""
    pairs = draw_pairs(draw, vocabulary, options.facts, options.held_out)
    length = options.tokens - OPENING
    places = draw_places(draw, options.facts, length - 16 * SLOT, *options.distances)
    if places is None:
        return None
    slots = sorted((place, key) for key, both in zip(pairs, places) for place in both)
    tokens, stated, questions = [], {}, []
    for place, key in slots:
        while prose and (len(tokens) < place or not tokens or not can_follow(tokens[-1], prose[0])):
            tokens.append(prose.pop(0))
        tokens += [MARKER, key, pairs[key]]
        if key in stated:
            questions.append((len(tokens) - 1, len(tokens) - stated[key]))
        stated[key] = len(tokens)
    tokens += prose[:length - len(tokens)]
    # A slot waits for the next word, which changes distances a little, and white space at the end has other tokens there.
    is_within = all(options.distances[0] <= distance <= options.distances[1] for _, distance in questions)
    is_whole = len(tokens) == length and re.fullmatch("Ġ?[A-Za-z]+", tokens[-1])
    return (tokens, questions) if is_within and is_whole else None


def conversation(vocabulary, tokens, questions):
    """The window as messages, the answers those of the assistant."""
    messages, at = [], 0
    for place, _ in questions:
        messages += [{"role": "user", "content": vocabulary.text(tokens[at:place])},
                     {"role": "assistant", "content": vocabulary.text(tokens[place:place + 1])}]
        at = place + 1
    return {"messages": messages + [{"role": "user", "content": vocabulary.text(tokens[at:])}]}


def cut_prose(draw, vocabulary, documents, length):
    """A stretch of a document, long documents more often, that begins with a word."""
    numbers = draw.choices(documents, [len(document) for document in documents])[0]
    while True:
        first = draw.randrange(len(numbers) - length)
        tokens = [vocabulary.spelled[number] for number in numbers[first:first + length]]
        if WORD.fullmatch(tokens[0]):
            return tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True, help="a folder that prism tokenizer train made")
    parser.add_argument("--prose", required=True, help="text file, .xz too; documents are separated by three empty lines")
    parser.add_argument("--out", required=True, help="JSONL file to write, for prism tokenize and prism eval")
    parser.add_argument("--questions", help="JSONL file to write, for prism eval --task lambada_openai")
    parser.add_argument("--answers", action="store_true", help="write conversations whose assistant answers, for prism tokenize "
                                                               "--chat, so that training computes the loss of answers alone")
    parser.add_argument("--windows", type=int, default=1000, help="rows to write")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens of a window")
    parser.add_argument("--facts", type=int, default=32, help="facts of a window, each asked once; at most 128")
    parser.add_argument("--distances", type=int, nargs=2, required=True, metavar=("NEAREST", "FARTHEST"))
    parser.add_argument("--held-out", action="store_true", help="pairs that are held out, instead of the others")
    parser.add_argument("--seed", type=int, default=1, help="of all draws")
    options = parser.parse_args()
    nearest, farthest = options.distances
    if not 16 <= nearest <= farthest <= options.tokens - 100 or not 2 <= options.facts <= 128 or \
            20 * options.facts > options.tokens or options.windows < 1:
        parser.error("expected distances from 16 to 100 below --tokens, 2 to 128 facts with 20 tokens each, and a window")

    draw, vocabulary = random.Random(options.seed), Vocabulary(options.tokenizer)
    documents = [numbers for numbers in encode(options.prose, options.tokenizer) if len(numbers) > 2 * options.tokens]
    if not documents:
        sys.exit(f"[make_recall] expected documents of more than {2 * options.tokens} tokens in {options.prose}; found none.")
    rows, asked = [], []
    for _ in range(options.windows):
        drawn = (write_window(draw, vocabulary, cut_prose(draw, vocabulary, documents, options.tokens), options) for _ in range(TRIES))
        window = next((window for window in drawn if window), None)
        if window is None:
            sys.exit(f"[make_recall] expected windows of {options.tokens} tokens with {options.facts} facts at distances from "
                     f"{nearest} to {farthest}; found none in {TRIES} tries; lower --facts, or widen --distances.")
        tokens, questions = window
        rows.append(conversation(vocabulary, tokens, questions) if options.answers else {"text": vocabulary.text(tokens)})
        asked += [{"text": vocabulary.text(tokens[:place + 1]), "distance": distance} for place, distance in questions]
    for path, lines in ((options.out, rows), (options.questions, asked)):
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


if __name__ == "__main__":
    main()

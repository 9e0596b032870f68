"""Writes small well-formed files from which the fuzzer starts: corpus/safetensors/{types,empty}.safetensors and
corpus/ggml_vocabulary/{merged,scored,broken}.txt, whose lines tests/fuzz/ggml_vocabulary_fuzz.cpp describes.

The files of corpus/gguf come from tests/formats/make_gguf_fixtures.py, those of corpus/template are written by hand.
Needs only Python. Run:
    python3 tests/fuzz/make_corpus.py
"""

import json
import pathlib

CORPUS = pathlib.Path(__file__).parent / "corpus"
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


MERGED = """model gpt2
pre llama-bpe
byte_tokens
token 1 0 ab
token 1 0 aba
token 1 0 th
token 3 0 <|endoftext|>
token 3 0 <|im_end|>
token 4 0 <tool>
token 5 0 [PAD262]
merge a b
merge ab a
merge t h
no_scores
bos_token_id 259
eos_token_id 259
padding_token_id 262
add_bos_token 1
chat_template {{ messages[0].content }}\\n
"""
SCORED = """model llama
token 2 0 <unk>
token 3 0 <s>
token 3 0 </s>
byte_tokens
token 1 -3 \u2581
token 1 -4 a
token 1 -1 \u2581a
token 1 -2 aa
token 4 0 <im>
bos_token_id 1
eos_token_id 2
eot_token_id 2
unknown_token_id 0
add_space_prefix 0
remove_extra_whitespaces 1
"""


def write(name, header, data):
    text = json.dumps(header).encode()
    folder = CORPUS / "safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(len(text).to_bytes(8, "little") + text + data)


def main():
    header, end = {"__metadata__": {"format": "pt", "note": "a \"quoted\" text"}}, 0
    for dtype, size in SIZES.items():
        begin, end = end, end + 2 * size
        header[f"layers.0.{dtype}"] = {"dtype": dtype, "shape": [2, 1], "data_offsets": [begin, end]}
    header["scalar"] = {"dtype": "U8", "shape": [], "data_offsets": [end, end + 1]}
    write("types.safetensors", header, bytes(range(end + 1)))
    write("empty.safetensors", {}, b"")
    folder = CORPUS / "ggml_vocabulary"
    folder.mkdir(parents=True, exist_ok=True)
    broken = SCORED.replace("add_space_prefix 0", "no_types").replace("eos_token_id 2", "eos_token_id 99999")
    for name, text in {"merged": MERGED, "scored": SCORED, "broken": broken}.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")


main()

"""Writes small well-formed files from which the fuzzer starts: corpus/safetensors/{types,empty}.safetensors.

The files of corpus/gguf come from tests/formats/make_gguf_fixtures.py, those of corpus/template are written by hand.
Needs only Python. Run:
    python3 tests/fuzz/make_corpus.py
"""

import json
import pathlib

CORPUS = pathlib.Path(__file__).parent / "corpus"
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


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


main()

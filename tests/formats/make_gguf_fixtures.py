"""Writes GGUF files with the Python package gguf for the tests of the reader, into fixtures/ and the fuzzer's corpus.

    values.gguf    a key of every type, arrays of every type, one tensor
    tensors.gguf   a tensor of every block type that the package can write and raw blocks of the others; alignment 64
    big.gguf       a big-endian file
    expected.json  what the package reads from tensors.gguf: name, shape, type, sum of all bytes of the data
    vocabularies.json  what it reads from llama.cpp's vocabularies in PRISM_DATA; left as it is without PRISM_DATA

Made with gguf 0.19.0, numpy 2.4.6. Run:
    python3 tests/formats/make_gguf_fixtures.py
"""

import json
import lzma
import os
import pathlib
import shutil
import tempfile
import zlib

import numpy as np
from gguf import GGMLQuantizationType, GGUFEndian, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import quantize

FOLDER = pathlib.Path(__file__).parent / "fixtures"
CORPUS = pathlib.Path(__file__).parent.parent / "fuzz" / "corpus" / "gguf"
ARRAYS = {
    "uint8": [0, 255], "int8": [-128, 127], "uint16": [65535], "int16": [-32768, 5], "uint32": [4294967295, 1],
    "int32": [-2147483648, 7, 9], "float32": [0.5, -1.5], "bool": [True, False, True], "string": ["", "héllo", "a\0b"],
    "uint64": [18446744073709551615], "int64": [-9223372036854775808, 3], "float64": [0.1, -2.5e300],
}  # fmt: skip


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_values():
    writer = GGUFWriter(FOLDER / "values.gguf", "test")
    for name, values in ARRAYS.items():
        kind = GGUFValueType[name.upper()]
        writer.add_key_value(f"one.{name}", values[-1], kind)
        writer.add_key_value(f"all.{name}", values, GGUFValueType.ARRAY, sub_type=kind)
    writer.add_tensor("w", np.arange(6, dtype=np.float32).reshape(2, 3))
    finish(writer)


def write_tensors():
    random = np.random.default_rng(2)
    writer = GGUFWriter(FOLDER / "tensors.gguf", "test")
    writer.add_custom_alignment(64)
    writer.add_tensor("vector", random.normal(0, 1, 5).astype(np.float32))
    for name in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"):
        kind = GGMLQuantizationType[name]
        packed = quantize(random.normal(0, 1, (2, 3, 32)).astype(np.float32), kind)
        writer.add_tensor(name.lower(), packed, raw_dtype=kind)
    for name, size in (("Q2_K", 84), ("Q3_K", 110), ("Q4_K", 144), ("Q5_K", 176), ("Q6_K", 210), ("IQ4_NL", 18)):
        blocks = random.integers(0, 60, (1, 2 * size), dtype=np.uint8)  # scales are finite
        writer.add_tensor(name.lower(), blocks, raw_dtype=GGMLQuantizationType[name])
    finish(writer)


def write_big():
    writer = GGUFWriter(FOLDER / "big.gguf", "test", endianess=GGUFEndian.BIG)
    writer.add_uint32("test.block_count", 1)
    finish(writer)


def expected_tensors():
    rows = []
    for tensor in GGUFReader(FOLDER / "tensors.gguf").tensors:
        shape = [int(size) for size in reversed(tensor.shape)]
        total = int(tensor.data.view(np.uint8).sum(dtype=np.uint64))
        rows.append({"name": tensor.name, "type": tensor.tensor_type.name, "shape": shape, "sum": total})
    return rows


def describe(path):
    """A row for each key: its type, number of values and CRC-32 of their bytes, strings followed by a line feed."""
    rows = []
    for key, field in GGUFReader(path).fields.items():
        if key.startswith("GGUF."):
            continue
        ending = b"\n" if field.types[-1] == GGUFValueType.STRING else b""
        content = b"".join(field.parts[i].tobytes() + ending for i in field.data)
        kinds = " of ".join(kind.name.lower() for kind in field.types)
        rows.append({"key": key, "type": kinds, "count": len(field.data), "crc": zlib.crc32(content)})
    return rows


def describe_vocabularies(folder):
    vocabularies = {}
    for packed in sorted((pathlib.Path(folder) / "tokenizers" / "ggml-vocab").glob("*.gguf.xz")):
        with tempfile.NamedTemporaryFile() as file:
            file.write(lzma.decompress(packed.read_bytes()))
            file.flush()
            vocabularies[packed.name] = describe(file.name)
    return vocabularies


def write_json(name, rows):
    (FOLDER / name).write_text(json.dumps(rows) + "\n")


def main():
    FOLDER.mkdir(exist_ok=True)
    CORPUS.mkdir(parents=True, exist_ok=True)
    write_values()
    write_tensors()
    write_big()
    write_json("expected.json", expected_tensors())
    if "PRISM_DATA" in os.environ:
        write_json("vocabularies.json", describe_vocabularies(os.environ["PRISM_DATA"]))
    for name in ("values", "tensors", "big"):
        shutil.copy(FOLDER / f"{name}.gguf", CORPUS)


main()

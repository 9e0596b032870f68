"""Writes fixtures/blocks.safetensors: random blocks of ggml's types and what the Python package gguf makes of them.

    q4_k.bytes, q4_k.floats     blocks of the type, and gguf.quants.dequantize() of them
    q8_0.values, q8_0.packed    values, and gguf.quants.quantize() of them

The scales of the blocks include zeros, subnormals, the largest and smallest finite values, infinities and NaNs. The
values include the same, halfway cases of rounding, and blocks that are zero, tiny, huge or not finite.
Made with gguf 0.19.0, numpy 2.4.6 on x86-64. Run:
    python3 tests/kernels/quant/make_fixtures.py
"""

import json
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

FILE = pathlib.Path(__file__).parent / "fixtures" / "blocks.safetensors"
# Bytes of a block where its float16 scales are.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}  # fmt: skip
# As bits: 0, -0, subnormals, the smallest normal value, 1, the largest value, -largest, infinities, NaNs.
SPECIAL_16 = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01]
SPECIAL_32 = [
    0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
    0xFF800000, 0x7FC00000, 0xFFC12345, 0x33000000, 0x33000001, 0x33800000, 0x33C00000, 0x387FE000, 0x387FF000,
    0x38800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x47800000, 0x3F801000, 0x3F803000, 0x3F801001, 0x3F808000,
    0x3F818000, 0x3F808001, 0x7F7F8000, 0x7F7F7FFF, 0x40490FDB,
]  # fmt: skip


def random_blocks(random, name):
    """Blocks of random bytes; the first have special scales, the others scales of a usual size."""
    elements, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    count = 24 if elements == 32 else 14
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for place in SCALES[name]:
        scales = random.normal(0, 0.01, count).astype(np.float16)
        scales[: len(SPECIAL_16)] = np.array(random.permutation(SPECIAL_16), dtype=np.uint16).view(np.float16)
        blocks[:, place : place + 2] = scales.reshape(-1, 1).view(np.uint8)
    return blocks


def random_values(random):
    """Blocks of 32 values."""
    usual = random.normal(0, 1, (8, 32)) * 10.0 ** np.arange(-4, 4).reshape(8, 1)
    halves = (np.arange(32) - 16.5).reshape(1, 32)
    halves[0, 0] = 127  # d = 1
    blocks = [usual, halves, -halves, np.zeros((1, 32)), np.full((1, 32), -0.0), np.full((1, 32), 3e38)]
    for scale in (1e-30, 1e-38, 1e-40, 1e-44, 1e6, 1e7, 1e37):
        blocks.append(random.normal(0, scale, (1, 32)))
    values = np.concatenate(blocks).astype(np.float32)
    special = np.array([SPECIAL_32], dtype=np.uint32).view(np.float32)
    infinite, unknown = values[:2].copy(), values[2:4].copy()
    infinite[0, 5], infinite[1, 0] = np.inf, -np.inf
    unknown[0, 31], unknown[1, 0] = np.nan, np.nan
    return np.concatenate([values, special, infinite, unknown])


def write(tensors):
    names = {np.dtype(np.uint8): "U8", np.dtype(np.float32): "F32"}
    header, data = {}, b""
    for name, array in tensors.items():
        bytes_ = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(bytes_)],
        }
        data += bytes_
    text = json.dumps(header).encode()
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(len(text).to_bytes(8, "little") + text + data)
    print(f"{FILE.name}: {len(tensors)} tensors, {FILE.stat().st_size} bytes")


def main():
    random = np.random.default_rng(1)
    tensors = {}
    for name in SCALES:
        blocks = random_blocks(random, name)
        tensors[f"{name.lower()}.bytes"] = blocks
        tensors[f"{name.lower()}.floats"] = dequantize(blocks, GGMLQuantizationType[name])
    halves = np.concatenate([np.array(SPECIAL_16, np.uint16), random.integers(0, 1 << 16, 500, dtype=np.uint16)])
    words = np.concatenate([np.array(SPECIAL_32, np.uint32), random.integers(0, 1 << 32, 500, dtype=np.uint32)])
    for name, data in (("F16", halves), ("BF16", halves), ("F32", words)):
        blocks = data.reshape(-1, 1).view(np.uint8)
        tensors[f"{name.lower()}.bytes"] = blocks
        tensors[f"{name.lower()}.floats"] = dequantize(blocks, GGMLQuantizationType[name])
    values = random_values(random)
    for name in ("F32", "F16", "BF16", "Q8_0"):
        tensors[f"{name.lower()}.values"] = values
        packed = quantize(values, GGMLQuantizationType[name])
        tensors[f"{name.lower()}.packed"] = packed.view(np.uint8)
    write(tensors)


main()

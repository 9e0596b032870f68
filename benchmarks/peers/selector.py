"""Compares the spectral selector's masks with those of its authors' code (PyTorch path, on the CPU).

    python selector.py --prism build/release/bin/prism --reference CHECKOUT

CHECKOUT is a checkout of xinghaow99/prism on GitHub, for instance at commit d5a42526. The script imports its
prism/prism.py, with stubs for modules that need transformers or a GPU. Inputs are random, with and without rotary
positions, with heads of width 128 and with lengths that are and are not multiples of 128. In float32, masks must be
equal except where moving the reference's threshold by 1e-6 changes its mask; in bfloat16, 0.1% of the entries may
differ.
"""
import argparse
import importlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import types

HEADS = (1, 4, 32)
LENGTHS = (1, 127, 128, 129, 1000, 4096)
SHARES = (0.5, 0.8, 0.93, 0.95, 0.99)
WIDTH = BLOCK = 128
MARGIN = 1e-6
BASE = 10000.0


def load_reference(folder):
    """Returns the reference's block estimate; stubs replace what its file imports besides torch."""
    os.environ.update({"USE_TRITON_SELECT": "false", "USE_TRITON_LOGITS": "false", "CALIBRATE": "true"})

    class Anything(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Collector

    class Collector:
        collect_density = False

        @classmethod
        def from_env(cls):
            return cls()

        def collect(self, function):
            return function

        def __class_getitem__(cls, item):
            return cls

    package = types.ModuleType("prism")
    package.__path__ = [str(pathlib.Path(folder) / "prism")]
    sys.modules["prism"] = package
    for name in ("transformers", "transformers.cache_utils", "transformers.processing_utils",
                 "transformers.modeling_flash_attention_utils", "triton", "triton.language", "prism.utils",
                 "prism.utils.stat_collector", "prism.utils.patch", "prism.kernels", "prism.kernels.block_sparse_attn",
                 "prism.kernels.prism_estimation"):
        sys.modules[name] = Anything(name)
    return importlib.import_module("prism.prism").prism_block_estimate


def rotate(torch, x):
    """Applies half-split rotary positions."""
    angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), BASE ** (-torch.arange(0, WIDTH, 2) / WIDTH))
    cos, sin = angles.cos().float(), angles.sin().float()
    a, b = x[..., :WIDTH // 2], x[..., WIDTH // 2:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def write_safetensors(torch, path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        kind = {torch.float32: "F32", torch.bfloat16: "BF16"}[tensor.dtype]
        raw = tensor.contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_mask(torch, path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    mask = json.loads(raw[8:8 + length])["mask"]
    first, end = (8 + length + offset for offset in mask["data_offsets"])
    return torch.frombuffer(bytearray(raw[first:end]), dtype=torch.uint8).view(mask["shape"]).bool()


def ask_prism(torch, program, source, share, folder):
    output = folder / "out.safetensors"
    result = subprocess.run([program, "attend", str(source), "--set", "preset=official", "--set", f"p={share}", "--set",
                             f"block_size={BLOCK}", "--output", str(output), "--threads", "1"], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"[check_peers] expected {program} to run; found: {result.stderr.strip().splitlines()[-1:]}")
    return read_mask(torch, output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--reference", required=True, help="a checkout of the reference")
    args = parser.parse_args()
    import torch
    torch.manual_seed(1)
    estimate = load_reference(args.reference)

    entries = {"float32": 0, "bfloat16": 0}
    differing = dict(entries)
    uncertain = unexplained = 0
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        folder = pathlib.Path(name)
        for dtype in (torch.float32, torch.bfloat16):
            kind = str(dtype).split(".")[1]
            for heads in HEADS:
                for length in LENGTHS:
                    for turned in (False, True):
                        q, k = (torch.randn(1, heads, length, WIDTH) for _ in range(2))
                        if turned:
                            q, k = rotate(torch, q), rotate(torch, k)
                        q, k = q.to(dtype), k.to(dtype)
                        source = folder / "in.safetensors"
                        write_safetensors(torch, source, {"q": q, "k": k, "v": k})
                        padded = [torch.nn.functional.pad(x, (0, 0, 0, -length % BLOCK)) for x in (q, k)]
                        blocks = padded[0].shape[2] // BLOCK
                        seen = torch.ones(blocks, blocks, dtype=torch.bool).tril()
                        for share in SHARES:
                            def masks(p):
                                return estimate(*padded, low_freq_threshold=p, high_freq_threshold=p) & seen
                            expected, found = masks(share), ask_prism(torch, args.prism, source, share, folder)
                            wrong = expected != found
                            entries[kind] += wrong.numel()
                            differing[kind] += wrong.sum().item()
                            if dtype == torch.float32:
                                near = masks(share - MARGIN) != masks(share + MARGIN)
                                uncertain += near.sum().item()
                                unexplained += (wrong & ~near).sum().item()
    for kind, count in entries.items():
        print(f"{kind:<9} {count} entries, {differing[kind]} differ ({100 * differing[kind] / count:.4f} %)")
    print(f"float32: {uncertain} entries within {MARGIN} of the threshold; {unexplained} others differ")
    if unexplained or differing["bfloat16"] > 1e-3 * entries["bfloat16"]:
        sys.exit("[check_peers] expected equal masks; found the differences above.")


if __name__ == "__main__":
    main()

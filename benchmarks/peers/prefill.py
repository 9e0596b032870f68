"""Compares block-sparse attention over a prompt: prism against compiled FlexAttention and SDPA with a mask.

    python prefill.py --prism build/release/bin/prism --tokens 8192 --share 0.22

Masks keep random blocks of 128 keys, and always each row's first block and its own. prism draws its own mask, so
densities differ slightly; both are printed. The peers run in this process, prism in its own. They alternate --repeats
times, and medians are compared. There are --heads heads of width --head-dim, each with its own keys, in bfloat16 on
--threads threads.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BLOCK = 128


def kept_blocks(torch, heads, tokens, share):
    rows = (tokens + BLOCK - 1) // BLOCK
    generator = torch.Generator().manual_seed(0)
    kept = (torch.rand(heads, rows, rows, generator=generator) < share) | torch.eye(rows, dtype=torch.bool)
    kept[:, :, 0] = True
    kept &= torch.tril(torch.ones(rows, rows, dtype=torch.bool))
    return kept, kept.sum().item() / (heads * rows * (rows + 1) / 2)


def make_peers(torch, args):
    """Returns the density and {name: call}."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (torch.randn(1, args.heads, args.tokens, args.head_dim).to(torch.bfloat16) for _ in range(3))
    kept, density = kept_blocks(torch, args.heads, args.tokens, args.share)
    block_mask = create_block_mask(lambda b, h, i, j: kept[h, i // BLOCK, j // BLOCK] & (i >= j), 1, args.heads, args.tokens,
                                   args.tokens, device="cpu", BLOCK_SIZE=BLOCK)
    compiled = torch.compile(flex_attention)
    mask = kept.repeat_interleave(BLOCK, 1).repeat_interleave(BLOCK, 2)[:, :args.tokens, :args.tokens].tril().unsqueeze(0)
    return density, {
        "FlexAttention, compiled": lambda: compiled(q, k, v, block_mask=block_mask),
        "SDPA with a mask": lambda: scaled_dot_product_attention(q, k, v, attn_mask=mask),
        "SDPA, dense": lambda: scaled_dot_product_attention(q, k, v, is_causal=True),
    }


def milliseconds(call):
    began = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - began)


def run_prism(args):
    words = [args.prism, "bench", "prefill", "--tokens", str(args.tokens), "--heads", str(args.heads), "--kv-heads",
             str(args.heads), "--head-dim", str(args.head_dim), "--selector", f"random:share={args.share}", "--rounds", "3",
             "--recall-rows", "0", "--sdpa-tokens", "0", "--threads", str(args.threads), "--json"]
    result = subprocess.run(words, capture_output=True, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
    if result.returncode != 0:
        sys.exit(f"[check_peers] expected {args.prism} to run; found: {result.stderr.strip().splitlines()[-1:]}")
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--share", type=float, default=0.27, help="share of blocks kept at random")
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()

    import torch
    torch.set_num_threads(args.threads)
    with torch.no_grad():
        density, peers = make_peers(torch, args)
        for call in peers.values():
            call()  # compiles
        ours, theirs = [], {name: [] for name in peers}
        for _ in range(args.repeats):
            ours.append(run_prism(args))
            for name, call in peers.items():
                theirs[name].append(milliseconds(call))
    sparse = statistics.median(row["attend_ms"] for row in ours)
    dense = statistics.median(row["dense_ms"] for row in ours)
    print(f"{args.tokens} tokens, {args.heads} x {args.head_dim}, bfloat16, {args.threads} threads, torch {torch.__version__}")
    print(f"{'':<28} {'density':>8} {'ms':>10} {'times prism':>12}")
    print(f"{'prism':<28} {ours[0]['density']:>8.3f} {sparse:>10.1f} {1:>12.2f}")
    print(f"{'prism, dense':<28} {1:>8.3f} {dense:>10.1f} {dense / sparse:>12.2f}")
    for name, times in theirs.items():
        median = statistics.median(times)
        print(f"{name:<28} {1 if 'dense' in name else density:>8.3f} {median:>10.1f} {median / sparse:>12.2f}")


if __name__ == "__main__":
    main()

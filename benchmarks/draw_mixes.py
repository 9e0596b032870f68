#!/usr/bin/env python3
"""Draws the five mixes of synthetic heads in benchmarks/mixes, drawn_1.json to drawn_5.json.

    benchmarks/draw_mixes.py [FOLDER]     writes them to FOLDER, benchmarks/mixes by default

The rule, fixed before any selector was measured on them: eight query heads of 128 features on two key/value heads. Each
head has, independently of the others,

    a sink                    with probability 3/4, of strength 14 to 19
    0, 1 or 2 slashes         with probabilities 1/4, 1/2 and 1/4, of strength 15 to 19, each with probability 1/3 at the
                              query's own token, else at a distance from 64 to 8,192, uniform in its logarithm
    needles                   with probability 1/4: 16, 32 or 64 of strength 18 to 21
    topics                    with probability 1/4, of strength 8 to 14

Strengths are whole numbers, uniform. The seed of mix n is n. What the patterns are: prism/bench/synthetic_heads.h.
"""
import json
import pathlib
import random
import sys

MIXES, HEADS = 5, 8
NEAREST, FARTHEST = 64, 8192


def draw_slash(draw):
    is_own = draw.random() < 1 / 3
    distance = 0 if is_own else round(NEAREST * (FARTHEST / NEAREST) ** draw.random())
    return {"distance": distance, "strength": draw.randint(15, 19)}


def draw_head(draw):
    head = {}
    if draw.random() < 3 / 4:
        head["sink"] = draw.randint(14, 19)
    slashes = [draw_slash(draw) for _ in range(draw.choices((0, 1, 2), (1, 2, 1))[0])]
    if slashes:
        head["slashes"] = slashes
    if draw.random() < 1 / 4:
        head["needles"] = draw.choice((16, 32, 64))
        head["needle"] = draw.randint(18, 21)
    if draw.random() < 1 / 4:
        head["topic"] = draw.randint(8, 14)
    return head


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "mixes")
    for number in range(1, MIXES + 1):
        draw = random.Random(number)
        mix = {"seed": number, "head_dim": 128, "kv_heads": 2, "base": 1e6, "noise": 0.5,
               "heads": [draw_head(draw) for _ in range(HEADS)]}
        (folder / f"drawn_{number}.json").write_text(json.dumps(mix, indent=1) + "\n")


if __name__ == "__main__":
    main()

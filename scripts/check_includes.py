#!/usr/bin/env python3
"""Checks the ranks of folders: a file under prism/ may include only its own folder and folders of a smaller rank.

    scripts/check_includes.py              checks the tree; prints one line per fault, exit status 1 if there is any
    scripts/check_includes.py --self-test  tests the checks on sample lines

It also checks that folders without torch include no torch header, that every header has #pragma once, and that quoted
includes name files of prism.
"""
import os
import re
import sys

# The table of ranks (docs/architecture.md). Add a row for every new folder.
RANKS = {
    "core": 0,
    "tokenizer": 1, "formats": 1, "records": 1, "kernels": 1,
    "report": 2, "layers": 2, "sparse": 2, "data": 2,
    "attention": 3,
    "models": 4,
    "checkpoint": 5, "analysis": 5, "generation": 5,
    "evaluation": 6, "serving": 6,
    "training": 7,
    "bench": 8,
    "cli": 9,
}
WITHOUT_TORCH = {"core", "tokenizer", "formats", "records", "report", "data", "serving"}
PARTS_WITHOUT_TORCH = ("prism/kernels/simd/", "prism/kernels/rows/", "prism/kernels/flash/", "prism/kernels/gemm/")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")


def folder_of(path):
    """prism/core/files.h -> core; None for a file outside the folders of prism/."""
    parts = path.split("/")
    return parts[1] if len(parts) >= 3 else None


def faults_in(path, text, exists):
    """The faults of one file, one sentence each. `exists` returns whether a path in the repository is a file."""
    folder = folder_of(path)
    if folder not in RANKS:
        return [f"{path}: expected a folder that has a rank; found {folder or 'none'}; add it to RANKS in {__file__}."]
    faults = []
    if path.endswith((".h", ".cuh")) and not re.search(r"^#pragma once$", text, re.MULTILINE):
        faults.append(f"{path}: expected #pragma once; found none.")
    for number, line in enumerate(text.split("\n"), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        where, (quote, name) = f"{path}:{number}", found.groups()
        if TORCH.match(name):
            if folder in WITHOUT_TORCH or path.startswith(PARTS_WITHOUT_TORCH):
                faults.append(f"{where}: {os.path.dirname(path)}/ is a folder without torch; found {name}.")
        elif name.startswith("prism/"):
            other = folder_of(name)
            if other not in RANKS:
                faults.append(f"{where}: expected a folder that has a rank; found {name}.")
            elif other != folder and RANKS[other] >= RANKS[folder]:
                faults.append(f"{where}: {folder}/ has rank {RANKS[folder]} and may not include {other}/ of rank "
                              f"{RANKS[other]}; found {name}.")
            elif not exists(name):
                faults.append(f"{where}: expected a file of prism; found {name}.")
        elif quote == '"':
            faults.append(f'{where}: expected "prism/FOLDER/FILE" or <...>; found "{name}".')
    return faults


def check_tree(root):
    faults, files = [], 0
    for folder, _, names in os.walk(os.path.join(root, "prism")):
        for name in sorted(names):
            if not name.endswith(SOURCES):
                continue
            path = os.path.relpath(os.path.join(folder, name), root)
            with open(os.path.join(root, path), encoding="utf-8") as file:
                faults += faults_in(path, file.read(), lambda other: os.path.isfile(os.path.join(root, other)))
            files += 1
    if files == 0:
        faults.append(f"expected sources under {root}/prism; found none.")
    return faults


def self_test():
    once = "#pragma once\n"
    accepted = [
        ("prism/models/a.h", once + '#include "prism/attention/b.h"\n#include <torch/types.h>\n'),
        ("prism/models/a.h", once + '#include "prism/models/b.h"\n'),
        ("prism/core/a.cpp", '#include <vector>\n// #include "prism/cli/b.h"\n'),
        ("prism/cli/a.cpp", '#include <ATen/Parallel.h>\n'),
    ]
    rejected = [
        ("prism/core/a.h", "#include <vector>\n", "#pragma once"),
        ("prism/core/a.cpp", '#include "prism/tokenizer/b.h"\n', "may not include"),
        ("prism/formats/a.cpp", '  #  include "prism/tokenizer/b.h"\n', "of rank 1"),
        ("prism/data/a.cpp", "#include <torch/types.h>\n", "without torch"),
        ("prism/report/a.cpp", "#include <ATen/ATen.h>\n", "without torch"),
        ("prism/serving/a.cpp", "#include <torch/types.h>\n", "without torch"),
        ("prism/tokenizer/a.cpp", '#include <c10/util/Half.h>\n', "without torch"),
        ("prism/kernels/flash/a.cpp", '#include <ATen/Parallel.h>\n', "without torch"),
        ("prism/models/a.cpp", '#include "b.h"\n', "FOLDER"),
        ("prism/models/a.cpp", '#include "prism/models/missing.h"\n', "a file of prism"),
        ("prism/models/a.cpp", '#include "prism/widgets/b.h"\n', "has a rank"),
        ("prism/widgets/a.cpp", "", "has a rank"),
        ("prism/a.cpp", "", "found none"),
    ]
    wrong = []
    exists = lambda name: not name.endswith("missing.h")
    for path, text in accepted:
        if faults_in(path, text, exists):
            wrong.append(f"self-test: {path} with {text!r} should pass; found {faults_in(path, text, exists)}")
    for path, text, words in rejected:
        faults = faults_in(path, text, exists)
        if len(faults) != 1 or words not in faults[0]:
            wrong.append(f"self-test: {path} with {text!r} should have one fault with {words!r}; found {faults}")
    return wrong


def main():
    if sys.argv[1:] not in ([], ["--self-test"]):
        print(__doc__)
        return 2
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    faults = self_test() if sys.argv[1:] else check_tree(root)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

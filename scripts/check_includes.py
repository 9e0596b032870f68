#!/usr/bin/env python3
"""Checks the ranks of folders: a file under prism/ may include only its own folder and folders of a smaller rank.

    scripts/check_includes.py              checks the tree; prints one line per fault, exit status 1 if there is any
    scripts/check_includes.py --self-test  tests the checks on sample lines

It also checks that folders without torch include neither torch headers nor folders with torch, that every header has
#pragma once, that quoted includes name files of prism, and that folders of prism/ and tests/ have at most 25 files and
files at most 450 lines.
"""
import os
import re
import sys

# The table of ranks (docs/architecture.md). Add a row for every new folder.
RANKS = {
    "core": 0,
    "tokenizer": 1, "formats": 1, "records": 1, "template": 1, "kernels": 1,
    "report": 2, "layers": 2, "sparse": 2, "data": 2,
    "attention": 3,
    "models": 4,
    "checkpoint": 5, "analysis": 5, "generation": 5,
    "evaluation": 6, "serving": 6,
    "training": 7,
    "bench": 8,
    "cli": 9,
}
WITHOUT_TORCH = {"core", "tokenizer", "formats", "records", "template", "report", "data", "serving"}
PARTS_WITHOUT_TORCH = ("prism/kernels/simd/", "prism/kernels/rows/", "prism/kernels/flash/", "prism/kernels/gemm/",
                       "prism/kernels/packed/", "prism/kernels/quant/")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
MOST_FILES, MOST_LINES = 25, 450
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")


def folder_of(path):
    """prism/core/files.h -> core; None for a file outside the folders of prism/."""
    parts = path.split("/")
    return parts[1] if len(parts) >= 3 else None


def is_without_torch(path):
    return folder_of(path) in WITHOUT_TORCH or path.startswith(PARTS_WITHOUT_TORCH)


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
            if is_without_torch(path):
                faults.append(f"{where}: {os.path.dirname(path)}/ is a folder without torch; found {name}.")
        elif name.startswith("prism/"):
            other = folder_of(name)
            if other not in RANKS:
                faults.append(f"{where}: expected a folder that has a rank; found {name}.")
            elif other != folder and RANKS[other] >= RANKS[folder]:
                faults.append(f"{where}: {folder}/ has rank {RANKS[folder]} and may not include {other}/ of rank "
                              f"{RANKS[other]}; found {name}.")
            elif is_without_torch(path) and not is_without_torch(name):
                faults.append(f"{where}: {os.path.dirname(path)}/ is a folder without torch; found {name}, which may "
                              "include it.")
            elif not exists(name):
                faults.append(f"{where}: expected a file of prism; found {name}.")
        elif quote == '"':
            faults.append(f'{where}: expected "prism/FOLDER/FILE" or <...>; found "{name}".')
    return faults


def faults_of_sizes(folder, lines):
    """The faults of a folder. @param lines  number of lines by file."""
    faults = []
    if len(lines) > MOST_FILES:
        faults.append(f"{folder}: expected at most {MOST_FILES} files; found {len(lines)}; divide them by idea.")
    for name, count in sorted(lines.items()):
        if count > MOST_LINES:
            faults.append(f"{folder}/{name}: expected at most {MOST_LINES} lines; found {count}; divide the file.")
    return faults


def check_sizes(root):
    faults = []
    for part in ("prism", "tests"):
        for folder, _, names in os.walk(os.path.join(root, part)):
            lines = {}
            for name in names:
                if not name.endswith((".pyc", ".json", ".safetensors")):
                    with open(os.path.join(folder, name), "rb") as file:
                        lines[name] = file.read().count(b"\n") if name.endswith(SOURCES + (".py", ".sh")) else 0
            if os.path.basename(folder) not in ("fixtures", "__pycache__"):
                faults += faults_of_sizes(os.path.relpath(folder, root), lines)
    return faults


def check_tree(root):
    faults, files = check_sizes(root), 0
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
        ("prism/serving/a.cpp", '#include "prism/generation/b.h"\n', "which may include it"),
        ("prism/kernels/flash/a.cpp", '#include "prism/kernels/norm.h"\n', "which may include it"),
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
    if faults_of_sizes("prism/a", {str(i): 450 for i in range(25)}):
        wrong.append("self-test: 25 files of 450 lines should pass.")
    if len(faults_of_sizes("prism/a", {str(i): 451 for i in range(26)})) != 27:
        wrong.append("self-test: 26 files of 451 lines should have 27 faults.")
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

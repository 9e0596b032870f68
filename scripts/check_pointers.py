#!/usr/bin/env python3
"""Checks the pointers of docs/papers.md: each file, name, folder and test that it names must exist.

    scripts/check_pointers.py              checks the page; prints one line per fault, exit status 1 if there is any
    scripts/check_pointers.py --self-test  tests the check on sample lines

A pointer is text in backquotes:

    `sparse/top_p.cpp: keep_top_p`     a file under prism/ or the repository; the names, between commas, occur in its code
    `configs/head_schedules/`          a folder; {small,medium} stands for several
    `AttentionInput::skip_share`       one source of prism/ holds both names
    test `ModelCost.IsTheSame`         one source of tests/ holds both names

Comments and includes of C++ are no code. Not checked: other text in backquotes (options, fields, commands), and whether the code
does what the page says.
"""
import glob
import itertools
import os
import re
import sys

FILE = re.compile(r"([\w{},/-]+\.(?:h|cpp|cu|cuh|json|py|sh|md))(?:: (\w+(?:, \w+)*))?")
MEMBER = re.compile(r"(\w+)::(\w+)(?:\(\))?")
TEST = re.compile(r"([A-Z]\w+)\.([A-Z]\w+)")


def alternatives(path):
    """a/{b,c}.h -> a/b.h, a/c.h"""
    parts = [part.strip("{}").split(",") if part.startswith("{") else [part] for part in re.split(r"(\{[^}]*\})", path)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def code_of(path):
    """The text of a file without comments and includes."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#\s*include[^\n]*", "", text, flags=re.MULTILINE | re.DOTALL)


def lacks(text, names):
    return [name for name in names if not re.search(rf"\b{name}\b", text)]


def faults_in(text, find, sources):
    """Yields (line, sentence) for each pointer that leads nowhere.

    find(path) returns the path of a file or folder, or None; sources(folder) the code of each file of a folder."""
    for number, line in enumerate(text.split("\n"), 1):
        for pointer in re.findall(r"`([^`]*)`", line):
            file, member, test = (kind.fullmatch(pointer) for kind in (FILE, MEMBER, TEST))
            if pointer.endswith("/") and "/" in pointer.rstrip("/") or file and "/" in file.group(1):
                for path in alternatives(file.group(1) if file else pointer):
                    found = find(path)
                    if not found:
                        yield number, f"expected a file or folder that exists; found `{path}`."
                    elif file and file.group(2):
                        for name in lacks(code_of(found), file.group(2).split(", ")):
                            yield number, f"expected a name in the code of {path}; found `{name}`, which is not in it."
            elif member or test:
                folder = "prism" if member else "tests"
                if all(lacks(code, (member or test).groups()) for code in sources(folder)):
                    yield number, f"expected names in one source of {folder}/; found `{pointer}`."


def check_page(root):
    def find(path):
        return next((found for found in (os.path.join(root, "prism", path), os.path.join(root, path)) if os.path.exists(found)), None)

    cache = {}

    def sources(folder):
        if folder not in cache:
            cache[folder] = [code_of(path) for ending in ("h", "cpp")
                             for path in glob.glob(os.path.join(root, folder, "**", f"*.{ending}"), recursive=True)]
        return cache[folder]

    with open(os.path.join(root, "docs/papers.md"), encoding="utf-8") as file:
        return [f"docs/papers.md:{line}: {sentence}" for line, sentence in faults_in(file.read(), find, sources)]


def self_test():
    here = os.path.abspath(__file__)
    codes = {"prism": ["struct A { int b; };", "int c;"], "tests": ["TEST(Cost, IsRight) {}"]}

    def faults(text):
        return list(faults_in(text, lambda path: here if path.startswith(("scripts/", "a/")) else None, codes.get))

    for accepted in ("| x | `scripts/a.py: faults_in, code_of` |", "`a/{b,c}.h`", "`a/`", "`A::b`", "test `Cost.IsRight`",
                     "`train.tokens`, `--heads`, `x.json`, `prism report`", "`a/b.h`: forward"):
        assert not faults(accepted), (accepted, faults(accepted))
    absent = "no_" + "such_name"  # this file, which stands for the others, must not hold it
    for rejected, words in ((f"\n`a/b.py: code_of, {absent}`", absent), ("`b/c.h`", "b/c.h"), ("`a/{b,c}.h`, `{a,b}/d.h`", "b/d.h"),
                            ("`b/d/`", "b/d/"), ("`A::c`", "A::c"), ("test `Cost.IsWrong`", "Cost.IsWrong")):
        found = faults(rejected)
        assert len(found) == 1 and words in found[0][1], (rejected, found)
        assert found[0][0] == 1 + rejected.count("\n"), found
    print("check_pointers: self-test passed")


def main():
    if sys.argv[1:] not in ([], ["--self-test"]):
        print(__doc__)
        return 2
    if sys.argv[1:]:
        return self_test()
    faults = check_page(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that no two sources of a folder define the same name in their unnamed namespaces.

    scripts/check_names.py              checks the tree; prints one line per fault, exit status 1 if there is any
    scripts/check_names.py --self-test  tests the search on sample text

The release build compiles the sources of a folder together, eight at a time (prism_batches in CMakeLists.txt). Two
equal names fail to compile if both sources fall into one batch, and any new file in the folder can cause that.
"""
import collections
import os
import re
import sys

from check_classes import closing, without_comments

# Definitions at the start of a line: "struct Row {", or "constexpr int kMost = 3;" and "int f(int a) {".
TYPE = re.compile(r"(?:template <[^>]*>\s*)?(?:struct|class|union|enum class|enum)\s+(?:\[\[\w+\]\]\s*)?(\w+)")
VALUE = re.compile(r"[\w:<>,*&\s\[\]]*?[\s*&](\w+)\s*([(={;\[])")
UNNAMED_ENUM = re.compile(r"enum\s*(?::\s*[\w:]+\s*)?\{(.*?)\}", re.DOTALL)
# Two equal aliases are allowed.
OTHER = re.compile(r"(namespace|static_assert|using|template)\b")


def top_level(body):
    """The text of a namespace without the content of braces."""
    kept, place = "", 0
    while place < len(body):
        if body[place] == "{":
            place = closing(body, place)
            kept += "{}\n"
        else:
            kept += body[place]
        place += 1
    return kept


def declared(statement):
    """The variables that a declaration such as "int a = f(1, 2), b" defines."""
    while (plain := re.sub(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}", "", statement)) != statement:
        statement = plain
    return {found.group() for part in statement.split(",") if (found := re.search(r"\w+(?=\s*(=|$))", part))}


def parameter_types(text):
    """The types in the parameter list that begins at the start of `text`; they tell overloads apart."""
    depth, parameters, parameter = 0, [], ""
    for letter in text:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(letter, 0)
        if depth == 0 or (depth == 1 and letter == ","):
            parameters.append(parameter.lstrip("("))
            parameter = ""
            if depth == 0:
                break
        else:
            parameter += letter
    types = [re.sub(r"\s*=.*", "", parameter, flags=re.DOTALL) for parameter in parameters]
    return ", ".join(re.sub(r"(?<=[\s&*])\w+$", "", re.sub(r"\s+", " ", kind.strip())).strip() for kind in types)


def names_in(text):
    """The names that a source defines in its unnamed namespaces; functions include their parameter types."""
    text, names = without_comments(text), set()
    for found in re.finditer(r"\bnamespace\s*\{", text):
        opening = found.end() - 1
        body = re.sub(r"\[\[\w+\]\]\s*", "", top_level(text[found.end():closing(text, opening)]))
        for enum in UNNAMED_ENUM.finditer(text[found.end():closing(text, opening)]):
            names.update(re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", enum.group(1).strip()))
        for start in re.finditer(r"^(?=[A-Za-z_])", body, re.MULTILINE):
            rest = body[start.start():]
            kind = TYPE.match(rest)
            value = None if kind or OTHER.match(rest) or UNNAMED_ENUM.match(rest) else VALUE.match(rest)
            if kind:
                names.add(kind.group(1))
            elif value and value.group(1) != "operator":
                if value.group(2) == "(":
                    names.add(f"{value.group(1)}({parameter_types(rest[value.end() - 1:])})")
                else:
                    names.update(declared(rest.partition(";")[0]))
    return names


def self_test():
    text = """
    namespace prism {
    namespace {
    // struct Commented {};
constexpr int kMost = 3, kLeast = 1;
struct Row { int inside; };
template <class T>
std::vector<T> many(const T& value, int count) {
  int local = 0;
}
int first, second = many(1, 2), third[3];
enum : int { kRed, kBlue = 4 };
enum class Named { kInside };
[[noreturn]] void fail(int code) { throw code; }
namespace fs = std::filesystem;
std::atomic<int> counter;
using Values = std::vector<double>;
double mean(const std::map<int, Row>& rows,
            int least = f(1, 2));
bool operator<(const Row& a, const Row& b);
    }  // namespace
int outside() { return 1; }
    }
    """
    found = names_in(text)
    expected = {"kMost", "kLeast", "Row", "many(const T&, int)", "first", "second", "third", "kRed", "kBlue", "Named",
                "fail(int)", "counter", "mean(const std::map<int, Row>&, int)"}
    assert found == expected, found ^ expected
    print("check_names: self-test passed")


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    root = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sources = faults = 0
    for tree in ("prism", "tests"):
        for folder, _, files in sorted(os.walk(os.path.join(root, tree))):
            owners = collections.defaultdict(list)
            for name in sorted(files):
                if name.endswith(".cpp"):
                    sources += 1
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        for defined in names_in(file.read()):
                            owners[defined].append(name)
            for defined, names in sorted(owners.items()):
                if len(names) > 1 and is_batched(os.path.relpath(folder, root)):
                    faults += 1
                    print(f"{os.path.relpath(folder, root)}: expected {defined} in one source's unnamed namespace; found "
                          f"it in {', '.join(names)}; rename it, or share it.")
    if sources == 0:
        print(f"expected sources under {root}; found none; run the script of a whole checkout.")
    print(f"names in unnamed namespaces: {sources} sources checked, {faults} duplicate names")
    return sys.exit(1 if faults or not sources else 0)


def is_batched(folder):
    """Sources for one instruction set are compiled one by one."""
    return folder not in {f"prism/kernels/{part}" for part in ("simd", "rows", "flash", "gemm", "packed")}


if __name__ == "__main__":
    main()

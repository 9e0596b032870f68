#!/usr/bin/env python3
"""Checks that classes in prism/ stay small: at most 20 private methods and 15 data members.

    scripts/check_classes.py              checks the tree; prints one line per fault, exit status 1 if there is any
    scripts/check_classes.py --self-test  tests the counting on sample classes
    scripts/check_classes.py --list       lists the largest classes

Counts only types declared with `class`; a `struct` is a list of fields, such as options or a record.
"""
import os
import re
import sys

MOST_METHODS, MOST_MEMBERS = 20, 15
SOURCES = (".h", ".cpp")
CLASS = re.compile(r"\bclass\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*([A-Za-z_]\w*)\s*(?:final\s*)?(?::[^;{()]*)?\{")
ACCESS = re.compile(r"\s*(public|private|protected)\s*:")
NO_MEMBER = re.compile(r"(using|typedef|friend|static|template|class|struct|enum|explicit|virtual|PRISM_\w+)\b")


def without_comments(text):
    """The text with comments, strings and character literals replaced by spaces."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9])\'(?:\\.|[^\'\\\n])\''
    return re.sub(pattern, lambda found: " " * len(found.group()), text, flags=re.DOTALL)


def closing(text, opening):
    """The index of the brace that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


def statements(body):
    """Yields (access, text) for each declaration of a class; bodies and braced initialisers become {}."""
    access, statement, place = "private", "", 0
    while place < len(body):
        found = ACCESS.match(body, place)
        if found and not statement.strip():
            access, place = found.group(1), found.end()
            continue
        letter = body[place]
        if letter == "{":
            place = closing(body, place)
            statement += "{}"
            # The body of a function ends its declaration, except before a comma, a semicolon or another brace.
            rest = re.match(r"\s*(.)", body[place + 1:], re.DOTALL)
            balanced = statement.count("(") == statement.count(")")  # else {} is a default argument
            if "(" in statement and balanced and (not rest or rest.group(1) not in ",;{"):
                yield access, statement.strip()
                statement = ""
        elif letter == ";":
            if statement.strip():
                yield access, statement.strip()
            statement = ""
        elif letter != "#":
            statement += letter
        place += 1


def without_templates(text):
    """The text without angle brackets and their content, removed from the innermost outwards."""
    while True:
        shorter = re.sub(r"<[^<>]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def count(body):
    """(private methods, data members) of a class."""
    methods = members = 0
    for access, statement in statements(body):
        plain = without_templates(statement)
        head = re.split(r"=|\{\}", plain, maxsplit=1)[0]
        if "(" in head:
            declares = not re.match(r"(using|typedef|friend)\b", plain)
            methods += declares and access == "private" and " operator" not in head
        elif not NO_MEMBER.match(plain):
            # a, b = 0, *c: one member per name. Commas inside brackets belong to an initialiser.
            depth, names = 0, 1
            for letter in re.sub(r"\{\}", "", plain):
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
                names += letter == "," and depth == 0
            members += names
    return methods, members


def classes_in(text):
    text = without_comments(text)
    for found in CLASS.finditer(text):
        if re.search(r"enum\s+$", text[:found.start()]):
            continue
        opening = found.end() - 1
        yield found.group(1), *count(text[opening + 1:closing(text, opening)])


def all_classes(root):
    for folder, _, names in sorted(os.walk(os.path.join(root, "prism"))):
        for name in sorted(names):
            if name.endswith(SOURCES):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    for row in classes_in(file.read()):
                        yield os.path.relpath(path, root), *row


def self_test():
    text = """
    // class Commented { int a_; };
    enum class Kind { one, two };
    class Small : public Base<int> {
     public:
      explicit Small(int a) : a_(a) {}
      int a() const { return a_; }
      template <class T> void visit(T& v) { v("a", a_); }
     private:
      void one();
      std::map<int, std::vector<int>> two(int x = f(1, 2)) const;
      static int three(Row row = {}, int b = 1);
      struct Inner { int x = 0, y = 0; };
      using Row = std::vector<int>;
      int a_ = 0, b_ = 1;
      std::map<int, int> c_{{1, 2}, {3, 4}};  ///< one; two
      const char* text_ = "a; b, c";
      std::function<void(int)> run_;
      static constexpr int kMost = 3;
    };
    class Forward;
    """
    found = {name: row for name, *row in classes_in(text)}
    assert found == {"Small": [3, 5]}, found
    big = "class Big {\n" + "".join(f"int m{i}_;\n" for i in range(16)) + "};"
    assert list(classes_in(big)) == [("Big", 0, 16)]
    for attribute in ("[[nodiscard]]", "alignas(64)"):
        assert list(classes_in(big.replace("class", f"class {attribute}"))) == [("Big", 0, 16)], attribute
    print("check_classes: self-test passed")


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    rows = list(all_classes(os.path.normpath(root)))
    if "--list" in sys.argv[1:]:
        for path, name, methods, members in sorted(rows, key=lambda row: -max(row[2] / MOST_METHODS, row[3] / MOST_MEMBERS))[:20]:
            print(f"{path}: {name}: {methods} private methods, {members} members")
        return None
    faults = [row for row in rows if row[2] > MOST_METHODS or row[3] > MOST_MEMBERS]
    for path, name, methods, members in faults:
        print(f"{path}: expected at most {MOST_METHODS} private methods and {MOST_MEMBERS} members in a class; found "
              f"{methods} and {members} in {name}; split it into two.")
    if not rows:
        print(f"expected classes under {root}/prism; found none; run the script of a whole checkout.")
    print(f"classes: {len(rows)} checked, {len(faults)} too large")
    return sys.exit(1 if faults or not rows else 0)


if __name__ == "__main__":
    main()

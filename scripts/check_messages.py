#!/usr/bin/env python3
"""Checks that every error message of the library says what to do: "expected ...; found ...; way out."

    scripts/check_messages.py              checks the tree; prints one line per fault, exit status 1 if there is any
    scripts/check_messages.py --self-test  tests the search on sample text

The way out follows the first semicolon after the last "found". One of its clauses must begin with an imperative verb,
as in "name another file", or it is a placeholder. Texts without a full stop are parts of longer messages and are
skipped, and so are texts that end with a placeholder and "stopped by a signal". A text that is itself the message of a
check or an error must end with a full stop. Messages of PRISM_ASSERT are for developers and need no way out.
"""
import os
import re
import sys

VERBS = """
    add allow analyse ask change check choose close compare continue convert copy correct cut encode end fetch fill
    fix free gather give group install join leave list look lower make mend merge move name nest number open order
    pass print put quote raise read redirect remove rename repeat report reshape restore resume retry run save say
    scale search see select separate set shorten simplify slice split start stop take test tokenize train truncate try
    turn use wait widen write
""".split()
WAY_OUT = re.compile(rf"(?:^|, |; |: |\b(?:or|and|then) )(?:{'|'.join(VERBS)})\b|^\W*\{{\w*\}}\W*$|\be\.g\. ")
NO_REFUSAL = re.compile(r"^stopped |^\W*$|\{\w*\}\W*$")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
COMMENT_OR_LITERAL = re.compile(rf"//[^\n]*|/\*.*?\*/|R\"\(.*?\)\"|'(?:\\.|[^'\\\n])'|({LITERAL})", re.DOTALL)
# A text right after the operation that an error names.
WHOLE = re.compile(rf'\b(?:PRISM_CHECK|InputError|FailedError)\s*\((?:[^;"]*,)?\s*(?:"[\w ]+"|operation\w*)\s*,'
                   rf'\s*(?:fmt::format\(\s*)?({LITERAL})')
CALL = re.compile(r"\b(PRISM_CHECK|PRISM_ASSERT|InputError|FailedError|InternalError)\s*\(")


def without_comments(text):
    """The text with comments, raw strings and character literals replaced by spaces; other strings stay."""
    return COMMENT_OR_LITERAL.sub(lambda found: found.group(1) or re.sub(r"[^\n]", " ", found.group()), text)


def joined(text):
    """The text with adjacent literals joined. Line breaks between them move after the result, so line numbers stay."""
    def join(found):
        parts = re.findall(LITERAL, found.group(0))
        return '"' + "".join(part[1:-1] for part in parts) + '"' + "\n" * found.group(0).count("\n")
    return re.sub(rf"{LITERAL}(?:\s*{LITERAL})+", join, text)


def faults_in(text):
    """Yields (line, message) for each error message without a way out."""
    text = joined(without_comments(text))
    calls = [(found.start(), found.group(1)) for found in CALL.finditer(text)]
    for found in WHOLE.finditer(text):
        message = found.group(1)[1:-1]
        if not re.search(r"([.?]|\{[^{}]*\})(\\n)?$", message):
            yield text[:found.start()].count("\n") + 1, message
    for found in re.finditer(LITERAL, text):
        message = found.group(0)[1:-1]
        if not re.search(r"[.?](\\n)?$", message):
            continue
        start, call = max((call for call in calls if call[0] < found.start()), default=(0, ""))
        is_thrown = call and ";" not in re.sub(LITERAL, "", text[start:found.start()])
        is_refusal = "expected " in message and re.search(r"\bfound\b", message)
        if call in ("PRISM_ASSERT", "InternalError") or not (is_refusal or is_thrown):
            continue
        if not is_refusal and NO_REFUSAL.search(message):
            continue
        _, semicolon, way_out = message[max(message.rfind("found"), 0):].partition("; ")
        if not is_refusal and not semicolon:  # an argument of the call: the way out alone
            way_out = message
        if not WAY_OUT.search(way_out):
            yield text[:found.start()].count("\n") + 1, message


def self_test():
    text = """
    PRISM_CHECK(a, "x", "expected a file; found none.");
    PRISM_CHECK(a, "x", "expected a file; "
                        "found none; name one.");
    PRISM_CHECK(a, "x", "expected a sound file; found {}; the file is damaged.", 3);  // "expected 1; found 2."
    throw InputError("x", fmt::format("expected 1; found {}; {}.", 2, hint));
    PRISM_ASSERT(a, "x", "expected order; found none.");
    throw FailedError("x", "expected room for names; found: none.");
    fail("expected a part of a sentence; found it");
    PRISM_CHECK(a, "x", "expected one; found {}; nothing can use two.", 2);
    throw InputError("x", "this file is too long.");
    throw FailedError("x", "stopped by a signal; nothing was written.");
    throw InputError("x", fmt::format("arm {}: {}.", arm, error.reason()));
    """
    assert [line for line, _ in faults_in(text)] == [2, 5, 8, 10, 11], list(faults_in(text))
    for text in ('PRISM_CHECK(a, "x", "expected a file; found none");', 'throw InputError("x", "nope");',
                 'throw FailedError(operation, fmt::format("found {}!", 1));'):
        assert len(list(faults_in(text))) == 1, text
    print("check_messages: self-test passed")


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    root = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sources = faults = 0
    for folder, _, files in sorted(os.walk(os.path.join(root, "prism"))):
        for name in sorted(files):
            if not name.endswith((".cpp", ".h")):
                continue
            sources += 1
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                for line, message in faults_in(file.read()):
                    faults += 1
                    print(f"{os.path.relpath(path, root)}:{line}: expected a way out at the end; found none in "
                          f"\"{message}\"; say what to do.")
    if sources == 0:
        print(f"expected sources under {root}; found none; run the script of a whole checkout.")
    print(f"messages: {sources} sources checked, {faults} messages without a way out")
    return sys.exit(1 if faults or not sources else 0)


if __name__ == "__main__":
    main()

"""Writes unicode_classes.inc: the letters, numbers, white space and word characters of Hugging Face's tokenizers.

The classes are queried from the library itself, so that prism's scanners split text exactly as it does, whatever the
Unicode version of the regular expressions on the C++ side: \\p{L}, \\p{N} and \\s through its pre-tokenizers
(Oniguruma), "word" through an added token with single_word=True.
Made with tokenizers 0.23.3 (Unicode 16). Run:
    python3 prism/tokenizer/split/make_unicode_classes.py > prism/tokenizer/split/unicode_classes.inc
"""

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def matched_by(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = set()
    for start in range(0, len(CODE_POINTS), 4096):
        text = "".join(map(chr, CODE_POINTS[start : start + 4096]))
        for piece, _ in split.pre_tokenize_str(text):
            found.update(map(ord, piece))
    return found


def word_characters():
    tokenizer = Tokenizer(models.WordLevel({"X": 0, "?": 1}, unk_token="?"))
    tokenizer.add_tokens([AddedToken("X", single_word=True)])
    found = set()
    for start in range(0, len(CODE_POINTS), 65536):
        part = CODE_POINTS[start : start + 65536]
        encodings = tokenizer.encode_batch(["X" + chr(c) for c in part])
        # The added token is split off only if no word character follows; otherwise the whole is one unknown word.
        found.update(c for c, encoding in zip(part, encodings) if encoding.ids[0] != 0)
    return found


def ranges(members):
    result = []
    for c in sorted(members):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def print_table(name, members):
    print(f"constexpr CodePointRange {name}[] = {{")
    line = "   "
    for first, last in ranges(members):
        entry = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(entry) > 120:
            print(line)
            line = "   "
        line += entry
    print(line)
    print("};")


if __name__ == "__main__":
    print("// Written by make_unicode_classes.py; do not edit.")
    print("// clang-format off")
    print_table("kLetters", matched_by(r"\p{L}"))
    print_table("kNumbers", matched_by(r"\p{N}"))
    print_table("kSpaces", matched_by(r"\s"))
    print_table("kWordCharacters", word_characters())
    print("// clang-format on")

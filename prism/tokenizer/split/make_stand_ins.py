"""Writes stand_ins.inc: for characters that PCRE2 may put into another class than Hugging Face's tokenizers do, an older
character of their class, written in as many bytes.

These are the characters that Unicode 14, the version of PCRE2 10.40 to 10.42, does not know, and U+180E, which its \\s
matches. Their general categories are queried from the library itself (Oniguruma), and what is older from Python's
unicodedata. Of the characters that both know, one has changed its category: U+1171E, from Mn to Mc, which stays.
Made with tokenizers 0.23.3 (Unicode 16) and Python 3.11 (Unicode 14). Run:
    python3 prism/tokenizer/split/make_stand_ins.py > prism/tokenizer/split/stand_ins.inc
"""

import unicodedata

from make_unicode_classes import CODE_POINTS, matched_by

# By category, those of three and of four bytes. None is in a range that a pattern of ggml_pretokenizers.cpp names.
STAND_INS = {
    "Cf": (0x206A, 0x13430),
    "Ll": (0xA791, 0x16E60),
    "Lm": (None, 0x16B40),
    "Lo": (None, 0x10280),
    "Lu": (0xA790, 0x16E40),
    "Mc": (0x1B04, 0x11000),
    "Mn": (0x0816, 0x10A01),
    "Nd": (None, 0x104A0),
    "No": (None, 0x10107),
    "Pd": (None, 0x10EAD),
    "Po": (0x1B5A, 0x11047),
    "Sm": (None, 0x1D6C1),
    "So": (0x2800, 0x1D300),
}
HAN = 0x30000
CHANGED = {0x180E: STAND_INS["Cf"][0]}


def stand_ins():
    """Stand-ins by code point."""
    result = dict(CHANGED)
    han = matched_by(r"\p{Han}")
    for category, (three_bytes, four_bytes) in STAND_INS.items():
        for c in matched_by(rf"\p{{{category}}}"):
            if unicodedata.category(chr(c)) == "Cn":
                result[c] = three_bytes if c < 0x10000 else HAN if c in han else four_bytes
    assigned = [c for c in matched_by(r"\P{Cn}") if unicodedata.category(chr(c)) == "Cn"]
    assert set(assigned) == set(result) - set(CHANGED), "a category has no stand-in"
    for c, stand_in in result.items():
        assert len(chr(c).encode()) == len(chr(stand_in).encode())
    for category, pair in STAND_INS.items():
        assert all(c is None or unicodedata.category(chr(c)) == category for c in pair), category
    return result


assert unicodedata.unidata_version == "14.0.0", "run this with Python 3.11"
ranges = []
for c, stand_in in sorted(stand_ins().items()):
    if ranges and ranges[-1][1:] == [c - 1, stand_in]:
        ranges[-1][1] = c
    else:
        ranges.append([c, c, stand_in])
print("// Written by make_stand_ins.py; do not edit.")
print("// clang-format off")
print("constexpr StandIn kStandIns[] = {")
line = "   "
for first, last, stand_in in ranges:
    entry = f" {{0x{first:X}, 0x{last:X}, 0x{stand_in:X}}},"
    if len(line) + len(entry) > 120:
        print(line)
        line = "   "
    line += entry
print(line)
print("};")
print("// clang-format on")

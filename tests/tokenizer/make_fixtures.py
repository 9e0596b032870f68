"""Writes the fixtures of the tokenizer's tests with Hugging Face's tokenizers, which prism must agree with.

    documents.json  a small text, three documents
    gpt2.json       trained on it: GPT-2's pattern, min_frequency 2, added tokens with every flag
    llama3.json     trained on it: Llama 3's pattern, min_frequency 0, ignore_merges and a token no merge leads to
    digits.json     gpt2.json's vocabulary behind Digits, two Splits and ByteLevel
    digits.json     gpt2.json's vocabulary after Digits, two Splits and ByteLevel
    expected.json   [{"tokenizer", "text", "parse_special", "ids"}]: hostile strings and the library's ids for them
Made with tokenizers 0.23.3. Run:
    python3 tests/tokenizer/make_fixtures.py
"""

import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = pathlib.Path(__file__).parent / "fixtures"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
DOCUMENTS = [
    "The keeper of the lighthouse counted the ships. There were three ships in the morning, thirty in the evening,\n"
    "and three hundred and thirty-three in the book he kept. \"They're late,\" he said; \"they'll be here by 1887, or\n"
    "'88.\" The keeper's lamp was the brightest lamp on the coast. He lit the lamp, he cleaned the lamp, he slept by\n"
    "the lamp.\n"
    "    def light(lamp):\n        return lamp + 1\n    while lamp < 1000:\n        lamp = light(lamp)\n",
    "Der Wärter zählte die Schiffe. L'été, le gardien comptait les bateaux. Смотритель считал корабли, считал.\n"
    "灯台守は船を数えた。灯台守は船を数えた。등대지기는 배를 세었다. حارس المنارة يعد السفن.\n",
    "aaaa aaa aa a abababab abab ab bababa\t\tx\t\ty  z   z\r\n\r\nthe end of the end\n",
]
FLAGS = [
    AddedToken("<|endoftext|>", special=True),
    AddedToken("<|pad|>", special=True, lstrip=True, rstrip=True),
    AddedToken("<|", special=True),
    AddedToken("lighthouse", special=False, single_word=True, normalized=True),
    AddedToken("zq", special=False, rstrip=True, normalized=False),
    AddedToken("été", special=False, lstrip=True, normalized=True),
    AddedToken("\n\n\n", special=False, normalized=False),
]
# fmt: off
HOSTILE = [
    "", " ", "  ", "\n", " \n", "\n ", "\t\t", "\r\n", "a", " a", "  a", "a  ", "a b", "a  b", "a   b\n",
    "\n\n a", "\x00", "a\x00b",
    "the lamp", "The LAMP'S they'll THEY'LL I'd've he'S 'ſ 'sſ s's ''s 'll'", "can't won't o'clock rock'n'roll",
    "1", "12", "123", "1234", "12345678", "3.14159", "½ Ⅷ ٣٤٥ 一二三", "a1b22c333", " 1 22  333",
    "<|endoftext|>", "a<|endoftext|>b", " <|endoftext|> ", "<|endoftext|><|endoftext|>", "<|endoftext", "endoftext|>",
    "<|pad|>", "a  <|pad|>  b", "<|pad|> <|pad|>", " \t<|pad|>\n\u3000<|pad|>x", "<|<|endoftext|>", "<||>", "< |",
    "lighthouse", "lighthouses", "a lighthouse.", "_lighthouse", "lighthouse\u0301", "élighthouse", "(lighthouse)",
    "zq", "zq  a", "azqb", "zqzq zq", "été", "  été", "l'été zq été", "zq  <|pad|>  été", "a\n\n\nb", "\n\n\n\n\n\n\n",
    "…!?.,;:-_—", " …!?", "!\n!\r\n !\n\n", "a!\n\nb", "x\u0085y\u00a0z\u1680\u2003\u2028\u2029\u202f\u205f\u3000w",
    "\u180e \u200b\u200d\ufeff", "e\u0301 é ñ n\u0303", "ﬁ ß İ ı Ǆ ŉ", "\U0001f642\U0001f3fd\u200d\u2642\ufe0f",
    "日本語テキスト", "灯台守は船", "корабли, корабли!", "السفن ١٢٣", "ไทย हिन्दी 한국어", "\U0001d400\U0001d7d8\U000e0041",
    "\u1c89\ua7cb\U000105c0\U00010d40\U000116d0\U0002ebf0", "\U0010ffff\ue000\ufffe\uffff",
    "a" * 300, "ab" * 200, " " * 300 + "x",
    "\n" * 100 + "x", "é" * 100, "灯" * 90, "0123456789" * 20, "!?" * 80,
    "xyzzyQ xyzzyQ", "the the the the", "aaaaaaaab" * 9,
    "def f(x):\n    return x  # 1000 lamps\n\n\n\n", "https://example.org/a?b=c&d=%20e", "\\u00e9 \\n {\"a\": [1, 2]}",
]


def hostile_at_random(count):
    pick = random.Random(7)
    pool = list("'sSſtTreVmLld  \n\r\t\x0b\x85\xa0\u3000\u180e\u200b1٣½é日ß🙂🏽<|>zq!?,_") + [
        "<|endoftext|>", "<|pad|>", "lighthouse", "été", "zq", "'ll", "'RE", "\r\n", "\n\n\n", "   ", " lamp", "1887",
    ]  # fmt: skip
    code_points = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    for _ in range(count):
        length = pick.choice([2, 5, 12, 30])
        drawn = (pick.choice(pool) if pick.random() < 0.9 else chr(pick.choice(code_points)) for _ in range(length))
        yield "".join(drawn)


def train(pre_tokenizer, vocab_size, min_frequency):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(DOCUMENTS, trainer)
    return tokenizer


def make_tokenizers():
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = train(byte_level, 400, 2)
    gpt2.add_tokens(FLAGS)

    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    llama3 = json.loads(train(pre_tokenizers.Sequence([split, bare]), 420, 0).to_str())
    llama3["model"]["ignore_merges"] = True
    llama3["model"]["vocab"]["ĠxyzzyQ"] = 420
    llama3 = Tokenizer.from_str(json.dumps(llama3))

    digits = Tokenizer.from_str(gpt2.to_str())
    digits.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Split("mp", "isolated"),
            pre_tokenizers.Split(Regex(r"e+|[^\r\n]?x|$"), "isolated"),
            byte_level,
        ]
    )
    return {"gpt2": gpt2, "llama3": llama3, "digits": digits}


def main():
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "documents.json").write_text(json.dumps(DOCUMENTS, indent=1) + "\n")
    expected = []
    for name, tokenizer in make_tokenizers().items():
        tokenizer.save(str(FOLDER / f"{name}.json"), pretty=False)
        for text in HOSTILE + list(hostile_at_random(60)):
            for parse_special in (True, False):
                tokenizer.encode_special_tokens = not parse_special
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                expected.append({"tokenizer": name, "text": text, "parse_special": parse_special, "ids": ids})
    rows = ",\n".join(json.dumps(row, ensure_ascii=True) for row in expected)
    (FOLDER / "expected.json").write_text(f"[\n{rows}\n]\n")


if __name__ == "__main__":
    main()

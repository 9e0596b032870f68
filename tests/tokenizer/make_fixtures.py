"""Writes the fixtures of the tokenizer's tests with Hugging Face's tokenizers, which prism must agree with.

    documents.json  a small text, three documents
    gpt2.json       trained on it: GPT-2's pattern, min_frequency 2, added tokens with every flag
    llama3.json     trained on it: Llama 3's pattern, min_frequency 0, ignore_merges and a token no merge leads to
    digits.json     gpt2.json's vocabulary after Digits, two Splits and ByteLevel
    nfc.json        gpt2.json with the normalizer NFC and added tokens that are not in NFC
    scored.model    a SentencePiece model trained on it: BPE with byte fallback, as Llama 2's
    spaces.model    the same that removes extra spaces
    bare.model      the same without a dummy prefix, with user-defined pieces
    legacy.json     scored.model as transformers converts it: Prepend and Replace; added tokens with every flag
    first.json      the same with Metaspace, prepend_scheme "first"
    always.json     the same with Metaspace that splits, prepend_scheme "always"
    expected.json   [{"tokenizer", "text", "parse_special", "ids"}]: hostile strings and the library's ids for them
    expected_scored.json  the same for the others, with "decoded", the library's text for the ids
Made with tokenizers 0.23.3 and sentencepiece 0.2.3. Run:
    python3 tests/tokenizer/make_fixtures.py
"""

import io
import json
import pathlib
import random

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

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


# What the new kinds treat in their own way: composed characters, markers, runs of spaces, bytes spelled as text.
SPACED = [
    "▁", "▁▁", " ▁", "▁ ", "▁the lamp", "the▁lamp", " the lamp", "   the   lamp   ", "the lamp \n ", "\n the", "  ",
    "<s>", "</s>the", "a<s>b", "<s> a", " <s>", "<s><s>", "<unk>", "<0x41>", "<0x0A>", "the<0x41>", "<0x", "a<0xFF>",
    "e\u0301te\u0301", "été", "  e\u0301te\u0301", "a\u0301\u0323 b\u0323\u0301", "\u1100\u1161\u11a8 \uac00\u11a8",
    "\u0958 \u2126 \u212b \uf900", "q\u0307\u0323", "\u0301", " \u0301a", "\u0344", "x\u0344", "l'e\u0301te\u0301 zq",
    "lamp" * 60, "灯台守は船" * 20, "counted the ships", "thethethe", " " * 40 + "lamp", "▁" * 70, "a" * 200,
]  # fmt: skip


def train_pieces(name, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter("\n".join(DOCUMENTS).splitlines()),
        model_writer=model,
        model_type="bpe",
        vocab_size=480,
        byte_fallback=True,
        hard_vocab_limit=False,
        character_coverage=0.98,
        normalization_rule_name="identity",
        split_digits=True,
        allow_whitespace_only_pieces=True,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    (FOLDER / f"{name}.model").write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def convert(pieces):
    """A tokenizer.json as transformers makes it: a merge for every way to cut a piece, by score, longer parts first."""
    spelled = {pieces.id_to_piece(i): i for i in range(pieces.get_piece_size())}
    merges = []
    for piece, i in spelled.items():
        for cut in range(1, len(piece)):
            if piece[:cut] in spelled and piece[cut:] in spelled:
                merges.append((pieces.get_score(i), cut, len(piece) - cut, piece[:cut], piece[cut:]))
    merges.sort(key=lambda row: row[:3], reverse=True)
    model = models.BPE(spelled, [row[3:] for row in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    strip = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(strip)
    return tokenizer


def make_scored(pieces):
    specials = [AddedToken(token, special=True, normalized=False) for token in ("<unk>", "<s>", "</s>")]
    legacy, first, always = convert(pieces), convert(pieces), convert(pieces)
    legacy.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    first.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    always.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    for tokenizer in (legacy, first, always):
        tokenizer.add_special_tokens(specials)
    legacy.add_tokens(FLAGS[1:])
    always.add_tokens(FLAGS[3:5])
    return {"legacy": legacy, "first": first, "always": always}


def expect_scored():
    gpt2 = Tokenizer.from_file(str(FOLDER / "gpt2.json"))
    nfc = Tokenizer.from_str(json.dumps({**json.loads(gpt2.to_str()), "normalizer": {"type": "NFC"}}))
    nfc.add_tokens([AddedToken("te\u0301", normalized=True), AddedToken("e\u0301q", normalized=False)])
    pieces = train_pieces("scored", remove_extra_whitespaces=False)
    spaced = train_pieces("spaces", remove_extra_whitespaces=True)
    bare = train_pieces("bare", add_dummy_prefix=False, remove_extra_whitespaces=False, user_defined_symbols="été,zq")
    texts = HOSTILE + SPACED + list(hostile_at_random(40))
    rows = []
    for name, tokenizer in {"nfc": nfc, **make_scored(pieces)}.items():
        tokenizer.save(str(FOLDER / f"{name}.json"), pretty=False)
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            decoded = tokenizer.decode(ids, skip_special_tokens=False)
            rows.append({"tokenizer": name, "text": text, "parse_special": True, "ids": ids, "decoded": decoded})
    for name, processor in {"scored": pieces, "spaces": spaced, "bare": bare}.items():
        for text in texts:
            ids = processor.encode(text)
            row = {"tokenizer": name, "text": text, "parse_special": False, "ids": ids, "decoded": processor.decode(ids)}
            rows.append(row)
    (FOLDER / "expected_scored.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


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
    expect_scored()


if __name__ == "__main__":
    main()

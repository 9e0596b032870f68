"""Writes the vocabularies of GGUF files as JSON, for PublishedTokenizer.GgmlVocabulariesGiveTheExactIdsOfAllInputs.

    python3 tests/tokenizer/dump_ggml_vocabulary.py $PRISM_DATA/tokenizers/ggml-vocab FOLDER
    PRISM_GGML_DUMP=FOLDER build/asan/tests/test_tokenizer --gtest_filter='PublishedTokenizer.Ggml*'

Reads *.gguf.xz with gguf 0.19.0; writes FOLDER/<name>.json with the members of tokenizer.ggml.
"""

import json
import lzma
import pathlib
import sys
import tempfile

import gguf


def members(path):
    result = {}
    for name, field in gguf.GGUFReader(str(path)).fields.items():
        if name.startswith("tokenizer.ggml."):
            value = field.contents()
            result[name.removeprefix("tokenizer.ggml.")] = value
    return result


def main():
    source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for packed in sorted(source.glob("*.gguf.xz")):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as plain:
            plain.write(lzma.open(packed).read())
            plain.flush()
            name = packed.name.removesuffix(".gguf.xz")
            (folder / f"{name}.json").write_text(json.dumps(members(plain.name)))
            print(name)


if __name__ == "__main__":
    main()

#!/usr/bin/env bash
# benchmarks/make_recall.py writes windows whose facts, questions, distances and lengths are as its help says.
#
#   tests/scripts/recall_test.sh
source "$(dirname "${BASH_SOURCE[0]}")/small_run.sh"
export PRISM_PROGRAM=$prism

cat "$root"/docs/*.md "$root"/docs/results/*.md | tr -cs 'A-Za-z.\n' ' ' > prose.txt
for _ in $(seq 300); do printf 'and * so * on\n'; done > marks.txt
"$prism" tokenizer train prose.txt marks.txt --vocab-size 4096 --out tokenizer --format txt --quiet > /dev/null
make() {  # OUT OPTION...
  python3 "$root/benchmarks/make_recall.py" --tokenizer tokenizer --prose prose.txt --tokens 256 --facts 5 --distances 16 100 \
    --windows 12 --out "$@"
}
make seen.jsonl --questions seen_questions.jsonl
make again.jsonl
make held.jsonl --held-out --seed 2
make spoken.jsonl --answers
cmp seen.jsonl again.jsonl
"$prism" tokenizer encode --file seen.jsonl --tokenizer tokenizer --quiet > ids.txt

python3 - <<'END'
import collections, json, re

def rows(name):
    with open(name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]

def pairs(text):
    """(key, value) of each fact and question, in the order of the text."""
    return re.findall(r" \* (\w+) (\w+)", text)

seen, held, spoken, asked = rows("seen.jsonl"), rows("held.jsonl"), rows("spoken.jsonl"), rows("seen_questions.jsonl")
assert len(seen) == len(held) == len(spoken) == 12 and len(asked) == 60, (len(seen), len(held), len(asked))
with open("ids.txt", encoding="utf-8") as file:
    lengths = [len(line.split()) for line in file]
assert lengths == [255] * 12, f"with the token that opens a document, 256 tokens; found {lengths}"
for row in seen + held:
    counts = collections.Counter(pairs(row["text"]))
    assert len(counts) == 5 and set(counts.values()) == {2}, f"five facts, each stated and asked; found {counts}"
    assert len({key for key, _ in counts}) == 5 and len({value for _, value in counts}) == 5
assert not {pair for row in seen for pair in pairs(row["text"])} & {pair for row in held for pair in pairs(row["text"])}
for number, question in enumerate(asked):
    text = seen[number // 5]["text"]
    assert text.startswith(question["text"]), "a question is the beginning of a window, up to its answer"
    *stated, last = pairs(question["text"])
    assert last in stated, "the answer stands before the question"
    assert 16 <= question["distance"] <= 100
for row, conversation in zip(seen, spoken):
    messages = conversation["messages"]
    assert "".join(message["content"] for message in messages) == row["text"]
    answers = [message["content"].strip() for message in messages if message["role"] == "assistant"]
    texts = pairs(row["text"])
    assert answers == [value for place, (key, value) in enumerate(texts) if (key, value) in texts[:place]]
END

if make crowded.jsonl --facts 12 --distances 156 156 2> errors; then echo "expected a sentence for facts that do not fit"; exit 1; fi
grep -q '^\[make_recall\] expected windows of 256 tokens with 12 facts .*; lower --facts, or widen --distances\.$' errors
if make far.jsonl --distances 16 200 2> errors; then echo "expected a sentence for distances beyond the window"; exit 1; fi
grep -q 'expected distances from 16 to 100 below --tokens' errors
echo "windows hold what they say"

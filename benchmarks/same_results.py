#!/usr/bin/env python3
"""Checks that a later build of prism gives the same results as an earlier one, bit for bit.

    benchmarks/same_results.py BEFORE/bin/prism AFTER/bin/prism TEXT [--threads 2]

Both builds train a few steps of a head schedule, a Llama, a Qwen3 (QK-norm), a ladder rung and a run with Muon on TEXT
(a .txt file of at least 1 MB). All records (except times) and every byte of weights and optimizer state must be equal.
The later build then evaluates models that the earlier one saved, and resumes runs that were stopped in the earlier
one. Prints one line per comparison with the fields or files that differ. Exit status 1 if any differ. In prism's own
format, the later build's config.json may have a newer format version.
"""
import argparse
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

TIMES = {"seconds", "tokens_per_s", "peak_share", "wait_share", "peak_gflops", "peak_memory_bytes", "step_ms", "looked_ms",
         "select_ms", "attend_ms"}
SHORT = {"train.tokens": 40960, "train.log_steps": 1, "train.eval_every_tokens": 20480, "train.eval_tokens": 8192,
         "train.checkpoint_every_tokens": 12288, "train.sample_tokens": 8, "train.keep_last": 9}
RUNS = {
    "head schedule, AdamW": ("configs/demo/progressive.json", {}),
    "Llama, AdamW": ("configs/demo/uniform.json", {}),
    "Qwen3, AdamW": ("configs/demo/uniform.json", {"model.qk_norm": "true"}),
    "ladder rung, SGD": ("configs/ladder/four_blocks_norm.json", {"train.batch_rows": 128}),
    "head schedule, Muon": ("configs/demo/progressive.json", {"train.optimizer": "muon"}),
    "head schedule, recomputed": ("configs/demo/progressive.json", {"train.recompute": "true"}),
}


def run(words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


def must(words):
    done = run(words)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nfailed: {done.stderr.strip()}")
    return done.stdout


class Comparison:
    """Prints one line per comparison and remembers whether all were equal."""

    def __init__(self):
        self.equal = True

    def line(self, what, differences):
        self.equal &= not differences
        print(f"{what:58} {'equal' if not differences else 'differ: ' + ', '.join(differences)}", flush=True)


def train_words(program, recipe, fields, data, out, threads):
    words = [program, "train", "--recipe", recipe, "--out", out, "--threads", threads, "--data.folder", data]
    for name, value in {**SHORT, **fields}.items():
        words += ["--set", f"{name}={value}"]
    return words


def records(folder):
    lines = [json.loads(line) for line in open(folder / "records.jsonl")]
    return [without_times(line) for line in lines if line.get("kind") != "resume"]


def without_times(value):
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in TIMES}
    if isinstance(value, list):
        return [without_times(inner) for inner in value]
    return value


def record_differences(before, after):
    if len(before) != len(after):
        return [f"{len(before)} records, {len(after)} records"]
    names = []
    for a, b in zip(before, after):
        for name in sorted(a.keys() | b.keys()):
            if a.get(name) != b.get(name) and f"{a.get('kind')}.{name}" not in names:
                names.append(f"{a.get('kind')}.{name}")
    return names


def file_differences(before, after, ending, more_after=False):
    """Names of files that differ. With `more_after`, files that only `after` has do not count."""
    def files(folder):
        return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.name.endswith(ending)}
    names = sorted(files(before) if more_after else files(before) | files(after))
    if not names:
        return ["no files"]
    return [str(name) for name in names
            if not ((before / name).is_file() and (after / name).is_file() and is_same(before / name, after / name))]


def is_same(before, after):
    if before.read_bytes() == after.read_bytes():
        return True
    if before.name != "config.json":
        return False
    formats = []
    for path in (before, after):
        config = json.loads(path.read_text())
        formats.append(config.get("prism_format", 0) if config.get("model_type") == "prism" else 0)
    return 0 < formats[0] < formats[1]


def stop_early(words, folder):
    """Starts a run and interrupts it after its fourth recorded step. Returns False if the run ended before that."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = folder / "records.jsonl"
    while process.poll() is None:
        if path.exists() and path.read_text().count('"kind":"train"') + path.read_text().count('"kind": "train"') >= 4:
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.01)
    process.wait()
    return not any(record.get("kind") == "end" for record in records(folder))


def compare_run(name, words, place, data, compared):
    recipe, fields = RUNS[name]
    folders = {}
    for version, program in (("before", words.before), ("after", words.after)):
        folders[version] = place / name / version
        must(train_words(program, recipe, fields, data, folders[version], words.threads))
    before, after = folders["before"], folders["after"]
    compared.line(f"{name}: records", record_differences(records(before), records(after)))
    compared.line(f"{name}: weights, moments", file_differences(before, after, ".safetensors"))
    compared.line(f"{name}: config.json", file_differences(before, after, "config.json"))

    def score(program):
        out = must([program, "eval", before, data.parent / "start.txt", "--threads", words.threads, "--json"])
        return [without_times(json.loads(line)) for line in out.splitlines()]
    same = record_differences(score(words.before), score(words.after))
    compared.line(f"{name}: saved before, evaluated after", same)

    stopped = place / name / "stopped"
    if not stop_early(train_words(words.before, recipe, fields, data, stopped, words.threads), stopped):
        compared.line(f"{name}: stopped before, resumed after", ["it ended before it could be stopped"])
        return
    done = run([words.after, "train", "--resume", "--out", stopped, "--threads", words.threads])
    if done.returncode != 0:
        compared.line(f"{name}: stopped before, resumed after", ["refused: " + done.stderr.strip()])
        return
    compared.line(f"{name}: stopped before, resumed after",
                  record_differences(records(after), records(stopped)) +
                  file_differences(after, stopped, ".safetensors", more_after=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="the program of the earlier version")
    parser.add_argument("after", type=pathlib.Path, help="the program of the later version")
    parser.add_argument("text", type=pathlib.Path, help="a text file")
    parser.add_argument("--threads", type=int, default=2, help="threads of every run (default 2)")
    words = parser.parse_args()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    print(f"{datetime.date.today()}, {cpu}, {len(os.sched_getaffinity(0))} cores, {words.threads} threads")
    compared = Comparison()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        (place / "start.txt").write_bytes(words.text.read_bytes()[:40000].rpartition(b"\n")[0])
        data = {}
        for version, program in (("before", words.before), ("after", words.after)):
            tokenizer, data[version] = place / f"tokenizer_{version}", place / f"data_{version}"
            must([program, "tokenizer", "train", words.text, "--vocab-size", 4096, "--out", tokenizer])
            must([program, "tokenize", words.text, "--tokenizer", tokenizer, "--separator", "\\n\\n\\n\\n",
                  "--valid-share", 0.05, "--out", data[version]])
        compared.line("tokenizer and token shards", file_differences(data["before"], data["after"], ".bin"))
        for name in RUNS:
            compare_run(name, words, place, data["before"], compared)
    return 0 if compared.equal else 1


if __name__ == "__main__":
    sys.exit(main())

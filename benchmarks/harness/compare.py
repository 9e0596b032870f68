"""Holds prism eval's tasks against EleutherAI's lm-evaluation-harness: the same items, log-likelihoods and figures.

Both evaluate one model in float32 on the same local files. The harness's own task definitions are used; only the data
sets are replaced by these files, with their members renamed to those of the original data sets. Checked item by item:
the texts of context and continuation are equal, and the numbers of tokens that are scored; log-likelihoods differ by at
most 1e-3 up to 200 tokens, and by 1e-5 of their size beyond, or 1e-3 if that is more; is_greedy is equal; and the figures
of each task are equal. Where a log-likelihood differs by more, transformers computes it in float64. prism's must then be
within the bound of that, or within four times the bound and no farther from it than the harness's; both are printed.

With --speed, both evaluate again in bfloat16, in turn, and the items per second are compared.

    PRISM_DATA=data scripts/check_peers.sh harness MODEL [--tasks piqa boolq] [--limit 200] [--blimp-limit 10]
"""
import argparse
import json
import lzma
import math
import pathlib
import re
import shutil
import statistics
import sys
import tarfile
import tempfile

# At the end: benchmarks/peers/tokenizers.py must not hide the package of that name.
sys.path.append(str(pathlib.Path(__file__).parents[1] / "peers"))
from turns import run  # noqa: E402

TASKS = ["piqa", "hellaswag", "arc_easy", "arc_challenge", "winogrande", "boolq", "lambada_openai", "wikitext", "blimp"]
LETTERS = "ABCDE"


def rows_of(path):
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def original_rows(task, data):
    """The rows of a task's file with the members that the harness's definition reads."""
    folder = data / "zero_shot"
    if task == "piqa":
        labels = (folder / "piqa/valid-labels.lst").read_text().split()
        return [row | {"label": int(label)} for row, label in zip(rows_of(folder / "piqa/valid.jsonl"), labels)]
    if task == "hellaswag":
        return [row | divided_context(row["ctx"]) for row in rows_of(folder / "hellaswag/hellaswag_val.jsonl.xz")]
    if task in ("arc_easy", "arc_challenge"):
        return [{"question": row["query"].removeprefix("Question: "), "answerKey": LETTERS[row["gold"]],
                 "choices": {"text": row["choices"], "label": list(LETTERS[:len(row["choices"])])}}
                for row in rows_of(folder / task / f"{task}_test.jsonl")]
    if task == "winogrande":
        return rows_of(folder / "winogrande/dev.jsonl")
    if task == "boolq":
        return [row | {"label": int(row["answer"])} for row in rows_of(folder / "boolq/dev.jsonl.xz")]
    if task == "lambada_openai":
        return rows_of(folder / "lambada/lambada_test.jsonl.xz")
    if task == "wikitext":
        return [{"page": page} for page in wikitext_pages(data / "wikitext-2/wiki.test.raw.xz")]
    return rows_of(folder / f"blimp/{task.removeprefix('blimp_')}.jsonl")


def divided_context(context):
    """ctx_a and ctx_b of the original file: the beginning of a last sentence stands apart, in small letters."""
    begun = re.fullmatch(r"(.*[.!?]) ([^.!?]+)", context, re.DOTALL)
    return {"ctx_a": begun[1], "ctx_b": begun[2]} if begun else {"ctx_a": context, "ctx_b": ""}


def wikitext_pages(path):
    """Documents as EleutherAI/wikitext_document_level divides the file: at headings of the first level."""
    pages, page = [], []
    for line in lzma.open(path, "rt", encoding="utf-8").read().split("\n"):
        heading = line.replace("= = =", "===").replace("= =", "==").strip()
        if heading.startswith("= ") and heading.endswith(" ="):
            if "\n".join(page).strip():
                pages.append("\n".join(page))
            page = []
        page.append(line)
    return pages + ["\n".join(page)]


def definition_of(task, tasks):
    """The harness's YAML file of a task."""
    if task.startswith("blimp_"):
        return tasks / "blimp" / f"{task.removeprefix('blimp_')}.yaml"
    if task in ("arc_easy", "arc_challenge"):
        return tasks / "arc" / f"{task}.yaml"
    return {"piqa": tasks / "piqa/piqa.yaml", "hellaswag": tasks / "hellaswag/hellaswag.yaml",
            "winogrande": tasks / "winogrande/default.yaml", "boolq": tasks / "super_glue/boolq/default.yaml",
            "lambada_openai": tasks / "lambada/lambada_openai.yaml", "wikitext": tasks / "wikitext/wikitext.yaml"}[task]


def write_definitions(names, data, out, limit, blimp_limit):
    """Copies of the harness's definitions that read our rows."""
    import lm_eval
    tasks = pathlib.Path(lm_eval.__file__).parent / "tasks"
    for name in names:
        rows = original_rows(name, data)[:blimp_limit if name.startswith("blimp_") else limit]
        with open(out / f"{name}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        splits = "".join(f"{split}_split: test\n" if split == "test" else f"{split}_split: null\n"
                         for split in ("training", "validation", "test"))
        (out / f"local_{name}.yaml").write_text(
            f"include: {definition_of(name, tasks)}\ntask: local_{name}\ntag: []\ndataset_path: json\ndataset_name: null\n"
            f"dataset_kwargs:\n  data_files:\n    test: {out / f'{name}.jsonl'}\n{splits}")


def has_own_code(model):
    """Returns True for a folder with code of its own, as prism writes it for head schedules."""
    config = pathlib.Path(model) / "config.json"
    return config.exists() and "auto_map" in json.loads(config.read_text())


def model_words(model, dtype):
    """What --model_args takes."""
    return f"pretrained={model},dtype={dtype},trust_remote_code={has_own_code(model)}"


def harness_samples(names, definitions, model, out, dtype, batch):
    """Runs the harness. @return its results, its samples by task, and the seconds that it evaluated for."""
    done = run(sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", model_words(model, dtype), "--tasks",
        ",".join(f"local_{name}" for name in names), "--include_path", definitions, "--device", "cpu", "--batch_size", batch,
        "--log_samples", "--output_path", out)
    results = json.loads(next(out.rglob("results_*.json")).read_text())["results"]
    samples = {name: sorted(rows_of(next(out.rglob(f"samples_local_{name}_[0-9]*.jsonl"))), key=lambda row: row["doc_id"])
               for name in names}
    return results, samples, done.seconds


def prism_samples(prism, names, data, model, out, limits, *words):
    """Runs prism, which reads the original files. @return as harness_samples()."""
    seconds = 0
    for number, (chosen, folder, limit) in enumerate((
            ([name for name in names if not name.startswith(("blimp_", "wikitext"))], data / "zero_shot", limits.limit),
            ([name for name in names if name == "wikitext"], data, limits.limit),
            ([name for name in names if name.startswith("blimp_")], data / "zero_shot", limits.blimp_limit))):
        if chosen:
            seconds += run(prism, "eval", model, "--task", *chosen, "--data", folder, "--limit", limit, "--out",
                           out / str(number), *words).seconds
    results = {}
    for file in out.rglob("results_prism.json"):
        results |= json.loads(file.read_text())["results"]
    return results, {name: rows_of(next(out.rglob(f"samples_{name}_prism.jsonl"))) for name in names}, seconds


def texts_of(sample):
    return [tuple(arguments[key] for key in sorted(arguments)) for arguments in sample["arguments"].values()]


def answers_of(sample):
    """Log-likelihood and is_greedy of each query; None for a rolling text."""
    found = []
    for (response,) in sample["resps"]:
        parts = response if isinstance(response, list) else [response]
        found.append((float(parts[0]), parts[1] if len(parts) > 1 else None))
    return found


def scored_tokens(texts, tokenizer):
    """Tokens that the harness scores of a query: (context, continuation), or (whole text,)."""
    def encode(text, **words):
        return len(tokenizer(text, **words)["input_ids"])
    if len(texts) == 1:
        return encode(texts[0])
    context, continuation = texts
    if not context:
        return encode(continuation, add_special_tokens=False)
    return encode(context + continuation) - encode(context.rstrip())


class ExactModel:
    """The model in float64, which tells whose rounding a difference comes from. Loaded at the first question."""

    def __init__(self, folder):
        self.folder, self.model = folder, None

    def log_likelihood(self, text):
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
        self.model = self.model or HFLM(pretrained=str(self.folder), dtype="float64", device="cpu", batch_size=1,
                                        trust_remote_code=has_own_code(self.folder))
        [(value, _)] = self.model.loglikelihood([Instance("loglikelihood", {}, tuple(text), 0)], disable_tqdm=True)
        return value


def compare_task(name, theirs, ours, tokenizer, exact):
    """Differences beyond the bound are settled in float64, for a context and its continuation; not for rolling texts.
    @return (items, largest difference, faults as sentences, settled differences as sentences)."""
    settled = []
    faults, largest = [], 0.0
    if len(theirs) != len(ours):
        return len(ours), math.inf, [f"{name}: {len(ours)} items, the harness has {len(theirs)}"], settled
    for number, (their, our) in enumerate(zip(theirs, ours)):
        if texts_of(their) != texts_of(our):
            faults.append(f"{name}, item {number}: other texts: {texts_of(our)} instead of {texts_of(their)}")
            continue
        expected_tokens = sum(scored_tokens(text, tokenizer) for text in texts_of(our))
        if our["tokens"] != expected_tokens:
            faults.append(f"{name}, item {number}: {our['tokens']} scored tokens instead of {expected_tokens}")
        for text, (expected, greedy), (found, is_greedy) in zip(texts_of(our), answers_of(their), answers_of(our)):
            tokens = len(tokenizer("".join(text))["input_ids"])
            bound = 1e-3 if tokens <= 200 else max(1e-3, 1e-5 * abs(expected))
            largest = max(largest, abs(found - expected))
            if abs(found - expected) > bound:
                sentence = f"{name}, item {number}: log-likelihood {found} instead of {expected} ({tokens} tokens)"
                truth = exact.log_likelihood(text) if len(text) == 2 else None
                if truth is not None and abs(found - truth) <= max(bound, min(4 * bound, abs(expected - truth))):
                    settled.append(f"{sentence}; in float64 {truth:.6f}: prism is {abs(found - truth):.1e} from it, the "
                                   f"harness {abs(expected - truth):.1e}")
                else:
                    faults.append(sentence)
            if greedy != is_greedy:
                faults.append(f"{name}, item {number}: is_greedy {is_greedy} instead of {greedy}")
    return len(ours), largest, faults, settled


def compare_figures(name, theirs, ours):
    """Accuracies are equal; perplexities within 1e-5 of their size; errors too, but those of bootstraps within 5%."""
    faults, shown = [], []
    for key, expected in theirs[f"local_{name}"].items():
        if not key.endswith(",none") or not isinstance(expected, (int, float)) or math.isnan(expected):
            continue
        found = ours[name].get(key)
        if not isinstance(found, (int, float)):
            faults.append(f"{name}: {key} {found} instead of {expected}")
            continue
        bound = 0.05 if "perplexity_stderr" in key else 1e-5
        if not math.isclose(found, expected, rel_tol=bound, abs_tol=1e-12):
            faults.append(f"{name}: {key} {found} instead of {expected}")
        if "stderr" not in key:
            shown.append(f"{key.removesuffix(',none')} {found:.4f}")
    return faults, ", ".join(shown)


def unpacked_blimp(data, out):
    """A data folder in which BLiMP is unpacked and everything else is where it was."""
    if (data / "zero_shot/blimp/adjunct_island.jsonl").exists():
        return data
    (out / "zero_shot/blimp").mkdir(parents=True)
    for path in (data / "zero_shot").iterdir():
        if path.name != "blimp":
            (out / "zero_shot" / path.name).symlink_to(path.resolve())
    (out / "wikitext-2").symlink_to((data / "wikitext-2").resolve())
    with tarfile.open(data / "zero_shot/blimp/blimp.tar.xz") as packed:
        for member in packed.getmembers():
            if member.isfile():
                member.name = pathlib.Path(member.name).name
                packed.extract(member, out / "zero_shot/blimp", filter="data")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="a model folder, a run folder or a .gguf file")
    parser.add_argument("--prism", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--limit", type=int, default=200, help="items of each task; documents of wikitext")
    parser.add_argument("--blimp-limit", type=int, default=10, help="items of each part of BLiMP")
    parser.add_argument("--speed", type=int, default=0, metavar="ROUNDS", help="also compare the speed in bfloat16")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32], help="batch sizes of the harness to try")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        data = unpacked_blimp(words.data.resolve(), folder / "data")
        parts = sorted(path.stem for path in (data / "zero_shot/blimp").glob("*.jsonl"))
        names = [name for task in words.tasks for name in ([f"blimp_{part}" for part in parts] if task == "blimp" else [task])]
        model = folder / "model"
        run(words.prism, "convert", words.model, model, "--dtype", "float32", "--quiet")
        (folder / "definitions").mkdir()
        write_definitions(names, data, folder / "definitions", words.limit, words.blimp_limit)
        if check(words, names, data, model, folder) > 0:
            sys.exit(1)
        if words.speed > 0:
            measure(words, names, data, model, folder)


def check(words, names, data, model, folder):
    """Compares everything in float32. @return the number of faults."""
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(model)
    their_results, theirs, _ = harness_samples(names, folder / "definitions", model, folder / "theirs", "float32", 1)
    our_results, ours, _ = prism_samples(words.prism, names, data, model, folder / "ours", words, "--dtype", "float32",
                                         "--weights", "float32")
    exact, faults, differences = ExactModel(model), [], []
    print(f"{words.model.name} in float32, prism and lm-evaluation-harness on the same files\n")
    print(f"{'task':<16}{'items':>7}{'largest difference':>20}  figures")
    blimp = [0, 0.0]
    for name in names:
        items, largest, of_items, settled = compare_task(name, theirs[name], ours[name], tokenizer, exact)
        differences += settled
        of_figures, figures = compare_figures(name, their_results, our_results)
        faults += of_items + of_figures
        if name.startswith("blimp_"):
            blimp = [blimp[0] + items, max(blimp[1], largest)]
        else:
            print(f"{name:<16}{items:>7}{largest:>20.2e}  {figures}")
    if blimp[0] > 0:
        mean = sum(our_results[name]["acc,none"] for name in names if name.startswith("blimp_")) / len(parts_of(names))
        print(f"{'blimp':<16}{blimp[0]:>7}{blimp[1]:>20.2e}  acc {mean:.4f}")
    print()
    for difference in differences[:20]:
        print(difference)
    for fault in faults[:20]:
        print(fault[:400])
    print(f"{len(faults)} faults" if faults else "texts, log-likelihoods, is_greedy and figures agree")
    return len(faults)


def parts_of(names):
    return [name for name in names if name.startswith("blimp_")]


def measure(words, names, data, model, folder):
    """Items per second in bfloat16, in turn: each task alone, with the harness's best batch size. The time of a few items
    is subtracted from that of all, so that starting and loading the model do not count."""
    groups = [[name] for name in names if name != "wikitext" and not name.startswith("blimp_")]
    if parts_of(names):
        groups.append(parts_of(names))
    print(f"\nitems/s in bfloat16, medians of {words.speed} rounds, without loading the model\n")
    print(f"{'task':<16}{'prism':>9}{'harness':>9}{'batch':>7}{'ratio':>7}")
    for group in groups:
        few = 1 if group[0].startswith("blimp_") else max(4, words.limit // 20)
        tried = {batch: seconds_of_harness(group, folder, model, batch, None) for batch in words.batches}
        batch = min(tried, key=tried.get)
        ours, theirs = [], []
        for _ in range(words.speed):
            ours.append(seconds_of_prism(words, group, data, model, None) - seconds_of_prism(words, group, data, model, few))
            theirs.append(seconds_of_harness(group, folder, model, batch, None) -
                          seconds_of_harness(group, folder, model, batch, few))
        items = sum(len(rows_of(folder / "definitions" / f"{name}.jsonl")) - few for name in group)
        speeds = [items / statistics.median(each) for each in (ours, theirs)]
        name = "blimp" if group[0].startswith("blimp_") else group[0]
        print(f"{name:<16}{speeds[0]:>9.2f}{speeds[1]:>9.2f}{batch:>7}{speeds[0] / speeds[1]:>7.2f}", flush=True)


def seconds_of_harness(names, folder, model, batch, limit):
    out = folder / "speed_theirs"
    shutil.rmtree(out, ignore_errors=True)
    words = ["--limit", limit] if limit else []
    return run(sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", model_words(model, "bfloat16"),
               "--tasks", ",".join(f"local_{name}" for name in names), "--include_path", folder / "definitions", "--device",
               "cpu", "--batch_size", batch, "--output_path", out, *words).seconds


def seconds_of_prism(words, names, data, model, limit):
    most = words.blimp_limit if names[0].startswith("blimp_") else words.limit
    return run(words.prism, "eval", model, "--task", *names, "--data", data / "zero_shot", "--limit", limit or most,
               "--dtype", "bfloat16").seconds


if __name__ == "__main__":
    main()

"""The figures that pages of results are written from: the records of runs, evaluations and timings.

scripts/check_results.py evaluates the expressions of the pages with the methods of Records and the functions of
result_statistics.py. A figure of an arm has a value for each seed."""
import glob
import json
import math
import os
import re

from result_statistics import FUNCTIONS, Fault, Seeds, Steps, bootstrap, mean, percent

# 4.5602, -0.01, 2,000,896, and in 1.27x and 5.2M the part before the letter; nothing in 3x2,6x2, layer0 or v1.2.3.
NUMBER = re.compile(r"(?<![\w.,])([-+−]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?=[xkMB]?(?!\w|[.,]\d))")


class Records:
    """The records that one comment names."""
    cache = {}

    def __init__(self, root, names):
        self.paths = []
        for name in names:
            found = [path for path in (os.path.join(root, "docs/results", name), os.path.join(root, name))
                     if os.path.exists(path)]
            if not found:
                raise Fault(f"expected the record {name}; found none.")
            self.paths.append(os.path.normpath(found[0]))

    def _lines(self, path):
        """The objects of a JSONL file, without the long ones that no figure is taken from."""
        if path not in self.cache:
            with open(path, encoding="utf-8") as file:
                self.cache[path] = [json.loads(line) for line in file
                                    if not line.startswith(('{"kind":"train"', '{"kind":"diagnostics"'))]
        return self.cache[path]

    def _runs(self, arm):
        """{seed: folder} of an arm, which is named ARM or FOLDER/ARM."""
        folder, _, name = arm.rpartition("/")
        runs = {}
        for path in self.paths:
            for run in glob.glob(os.path.join(glob.escape(path), glob.escape(name) + "-seed*")):
                number = int(run.rpartition("-seed")[2].partition(".")[0])
                if folder not in ("", os.path.basename(path)):
                    continue
                if number in runs:
                    raise Fault(f"expected one run of {arm} with seed {number}; found two; name its folder.")
                runs[number] = run
        if not runs:
            raise Fault(f"expected runs of {arm} in the records; found none.")
        return dict(sorted(runs.items()))

    def _of_kind(self, arm, kind, value):
        """value(record) of the last record of a kind for which it is not None, of each seed."""
        seeds = Seeds()
        for number, run in self._runs(arm).items():
            values = [value(record) for record in self._lines(os.path.join(run, "records.jsonl")) if record["kind"] == kind]
            values = [one for one in values if one is not None]
            if not values:
                raise Fault(f"expected a record {kind} in {os.path.basename(run)}; found none.")
            seeds[number] = values[-1]
        return seeds

    def loss(self, arm, tokens=None, text=None):
        """Validation loss at the end, or after this number of tokens, or per token of a whole text (its name may be cut short)."""
        if text is not None:
            return self._of_kind(arm, "text_loss", lambda record: record["nats"] / record["tokens"]
                                 if record["text"].startswith(text) else None)
        if tokens is not None:
            return self._of_kind(arm, "eval", lambda record: record["val_loss"] if record["tokens"] == tokens else None)
        ends = [[(record["kind"], record["step"]) for record in self._lines(os.path.join(run, "records.jsonl"))][-1]
                for run in self._runs(arm).values()]
        if {kind for kind, _ in ends} == {"diverged"}:
            return Steps(step for _, step in ends)
        return self._of_kind(arm, "end", lambda record: record["val_loss"])

    def gap(self, arm, base, text=None):
        """Loss of an arm minus that of another."""
        return self.loss(arm, text=text) - self.loss(base, text=text)

    def distance(self, arm, first, last):
        """Mean attention distance over the layers from first to last."""
        def over_layers(record):
            distances = [layer["distance"] for layer in record["layers"] if first <= layer["layer"] <= last]
            return sum(distances) / len(distances)
        return self._of_kind(arm, "attention_distance", over_layers)

    def parameters(self, arm):
        return mean(self._of_kind(arm, "run", lambda record: record["parameters"]))

    def flops(self, arm):
        """FLOPs of the forward pass of a token, of which training takes three times as many."""
        return mean(self._of_kind(arm, "run", lambda record: record["flops_per_token"]))

    def train_loss(self, arm):
        """Training loss of the last steps, those of one record."""
        seeds = Seeds()
        for number, run in self._runs(arm).items():
            with open(os.path.join(run, "records.jsonl"), encoding="utf-8") as file:
                seeds[number] = [json.loads(line)["loss"] for line in file if line.startswith('{"kind":"train"')][-1]
        return seeds

    def word_perplexity(self, arm, text, words):
        """Of a text that has this number of words: the perplexity of the mean loss over seeds."""
        return math.exp(mean(self._of_kind(arm, "text_loss", lambda record: record["nats"] / words
                                           if record["text"].startswith(text) else None)))

    def layers(self, arm, analysis, figure, first, last, part=None):
        """Mean of a figure of `prism analyse` over the layers from first to last, of each seed."""
        seeds = Seeds()
        for number, path in self._runs(arm).items():
            found = [row[figure] for row in self._lines(path) if row["analysis"] == analysis and figure in row and
                     row.get("part") in (None, part) and first <= row["layer"] <= last]
            if found:
                seeds[number] = sum(found) / len(found)
        return seeds

    def accuracy(self, arm):
        """Test accuracy at the end, in percent."""
        return self._of_kind(arm, "classification", lambda record: percent(record["accuracy"]))

    def balanced_accuracy(self, arm):
        """The mean over the classes of the share of their test texts that are recognised, in percent."""
        return self._of_kind(arm, "classification", lambda record: percent(record["balanced_accuracy"]))

    def kept(self, arm):
        """Share of heads that the layers compute for the test texts, their mean in percent."""
        return self._of_kind(arm, "classification",
                             lambda record: percent(sum(record["kept_share"]) / len(record["kept_share"])))

    def attention_flops(self, arm, tokens):
        """FLOPs of the attention parts and their head budgets for a text, over those of all heads, in percent."""
        return self._of_kind(arm, "classification", lambda record: percent(
            self._attention_flops(arm, tokens, record["kept_share"]) / self._attention_flops(arm, tokens)))

    def model_flops(self, arm, tokens):
        """The same of the whole model."""
        context = self.recipe(arm, "model.context")
        rest = tokens * (self.flops(arm) - self._attention_flops(arm, context) / context)
        return self._of_kind(arm, "classification", lambda record: percent(
            (rest + self._attention_flops(arm, tokens, record["kept_share"])) / (rest + self._attention_flops(arm, tokens))))

    def _attention_flops(self, arm, tokens, kept=None):
        """FLOPs of an encoder's attention parts for a text of this many tokens; of shares of the heads, budgets included."""
        run = next(iter(self._of_kind(arm, "run", lambda record: record).values()))
        d_model, flops = run["d_model"], 0
        for layer, share in zip(run["layers"], kept or [1] * len(run["layers"])):
            flops += share * tokens * (8 * d_model ** 2 + 4 * d_model * tokens)
            flops += 2 * d_model * (d_model + 1 + layer["heads"]) if kept else 0
        return flops

    def budgets(self, arm, figure, by="all", group="all", layer=None):
        """A figure of `prism analyse budgets`, such as share, over a group of texts: of a layer, or its mean over all."""
        seeds = Seeds()
        for number, path in self._runs(arm).items():
            found = [row[figure] for row in self._lines(path) if row["kind"] == "layer" and
                     (row["by"], row["group"]) == (by, group) and layer in (None, row["layer"])]
            seeds[number] = sum(found) / len(found)
        return seeds

    def changed(self, arm, heads, gain, figure="accuracy"):
        """A figure on the test texts where `prism eval` changed what head budgets decide; accuracy in percent."""
        return Seeds((number, next(percent(row[figure]) if figure == "accuracy" else row[figure]
                                   for row in self._lines(path)
                                   if (row["budget_heads"], row["budget_gain"]) == (heads, gain)))
                     for number, path in self._runs(arm).items())

    def valid_accuracy(self, arm):
        """Validation accuracy at the end, in percent."""
        return self._of_kind(arm, "end", lambda record: percent(record["val_accuracy"]))

    def over_items(self, arm, base, balanced=False):
        """The 95% interval of the difference of two accuracies, or balanced accuracies, in percent, by a paired bootstrap
        over the test texts; the seeds of each arm are averaged for every text. A balanced accuracy weighs a text by the
        number of texts of its class, which is known of those that some run gets wrong; others add nothing to a difference."""
        weights = {}
        def right(name):
            records = self._of_kind(name, "classification", lambda record: record).values()
            count = max(record["labelled"] for record in records)
            found = [1] * count
            for record in records:
                for item, label, _ in record["wrong"]:
                    found[item] -= 1 / len(records)
                    weights[item] = count / len(record["confusion"]) / sum(record["confusion"][label])
            return found
        gaps = [one - other for one, other in zip(right(arm), right(base), strict=True)]
        if balanced:
            gaps = [gap * weights.get(item, 0) for item, gap in enumerate(gaps)]
        return bootstrap(gaps)

    def changed_over_items(self, arm, heads, gain):
        """The same of the change of accuracy that changed decisions of head budgets make."""
        runs, gaps = self._runs(arm), None
        for path in runs.values():
            rows = {(row["budget_heads"], row["budget_gain"]): row for row in self._lines(path)}
            if any("wrong" not in row for row in rows.values()):
                raise Fault(f"expected the items that are wrong in the records of {arm}; found none.")
            own, other = (set(rows[one]["wrong"]) for one in (("own", "own"), (heads, gain)))
            gaps = gaps or [0] * rows["own", "own"]["examples"]
            for item in own | other:
                gaps[item] += ((item in own) - (item in other)) / len(runs)
        return bootstrap(gaps)

    def task(self, model, name, figure="acc", error=False):
        """A figure of a task as prism eval --task measured it, accuracies and scores in percent, of each seed if the model
        is an arm of runs; with its standard error if that is asked for, and for items their number. The model is a folder
        of records or one of them, without .json."""
        def of(folder):
            for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.json"))) or [folder + ".json"]:
                with open(path, encoding="utf-8") as file:
                    results = json.load(file)
                if name in results["results"]:
                    found = results["results"][name]
                    if figure == "items":
                        return found["sample_len"]
                    if figure in ("density", "recall"):
                        return results[figure][name]
                    scale = percent if figure.startswith("acc") or figure == "contains" else float
                    values = [scale(found[f"{figure}{part},none"]) for part in (("", "_stderr") if error else ("",))]
                    return values if error else values[0]
            raise Fault(f"expected the task {name} in {folder}; found none.")
        single = [path for path in (os.path.join(path, model) for path in self.paths)
                  if os.path.isdir(path) or os.path.isfile(path + ".json")]
        if single:
            return of(single[0])
        return Seeds((number, of(folder)) for number, folder in self._runs(model).items())

    def item_scores(self, record, figure):
        """A figure of each item of an evaluation, as if items were seeds: scores, or of texts bits per byte."""
        for path in (os.path.join(path, record + ".jsonl") for path in self.paths):
            if not os.path.isfile(path):
                continue
            with open(path, encoding="utf-8") as file:
                rows = [row for row in map(json.loads, file) if figure in row]
            if figure == "bits_per_byte":  # of a text its log-likelihood and its bytes
                return Seeds((i, -row[figure][0] / (row[figure][1] * math.log(2))) for i, row in enumerate(rows))
            return Seeds((i, row[figure]) for i, row in enumerate(rows))
        raise Fault(f"expected the items of {record}; found none.")

    def tokens(self, arm):
        """Tokens that were trained."""
        return mean(self._of_kind(arm, "end", lambda record: record["tokens"]))

    def hours(self, folder):
        """Hours that the runs of a sweep took, all of them together, diverged ones too."""
        path = next(path for path in self.paths if os.path.basename(path) == folder)
        runs = glob.glob(os.path.join(glob.escape(path), "*-seed*", "records.jsonl"))
        return sum(self._lines(run)[-1]["seconds"] for run in runs) / 3600

    def bytes_per_token(self, arm, text):
        return mean(self._of_kind(arm, "text_loss", lambda record: record["bytes"] / record["tokens"]
                                  if record["text"].startswith(text) else None))

    def recipe(self, arm, field):
        """A number of the recipe, such as train.learning_rate, which all seeds of the arm share."""
        values = set()
        for run in self._runs(arm).values():
            with open(os.path.join(run, "recipe.json"), encoding="utf-8") as file:
                value = json.load(file)
            for name in field.split("."):
                value = value[name]
            values.add(value)
        if len(values) != 1:
            raise Fault(f"expected one {field} in the recipes of {arm}; found {len(values)}.")
        return values.pop()

    def speed(self, arm):
        """Tokens per second over those of the baseline, in turn."""
        ratios = set()
        for run in self._runs(arm).values():
            with open(os.path.join(run, "timing.json"), encoding="utf-8") as file:
                ratios.add(json.load(file)["ratio"])
        if len(ratios) != 1:
            raise Fault(f"expected one speed of {arm}; found {len(ratios)}.")
        return ratios.pop()

    def heads(self, arm, layer, figure, number=1):
        """A figure of each head of a layer: entropy, or the share of its weight on self, previous, punctuation, ..."""
        rows = [record for record in self._lines(self._runs(arm)[number]) if record["layer"] == layer]
        if figure == "entropy":
            return next(record["head_entropies"] for record in rows if record["analysis"] == "entropy")
        return [record[figure] for record in rows if record["analysis"] == "heads"]

    def method(self, name, figure, head=None, layer=None, file=None):
        """A figure of a selector, such as recall; of one head or layer if that is given; from the file of that name."""
        found = []
        for path in self.paths:
            if path.endswith(".jsonl") and file in (None, os.path.basename(path).removesuffix(".jsonl")):
                for row in self._lines(path):
                    if row["method"] == name:
                        row = row | row.get("prefill", {})
                        row = row if head is None else row["by_head"][head]
                        row = row if layer is None else row["layers"][layer]
                        found += [row[figure]] if figure in row else []
        distinct = [one for number, one in enumerate(found) if one not in found[:number]]
        if len(distinct) != 1:
            raise Fault(f"expected one {figure} of {name}; found {len(distinct)}.")
        return found[0]

    def held(self, name, head=None):
        """Recall and density of a selector."""
        return [self.method(name, "recall", head), self.method(name, "density", head)]

    def named(self, text, file=None):
        """The selectors whose names contain the text."""
        return [row["method"] for path in self.paths if path.endswith(".jsonl") for row in self._lines(path)
                if text in row["method"] and file in (None, os.path.basename(path).removesuffix(".jsonl"))]

    def above_dense(self, name, file=None):
        """Perplexity above that of dense attention, in percent."""
        return percent(self.method(name, "token_perplexity", file=file) / self.method("dense", "token_perplexity", file=file) - 1)

    def by_document(self, name, file):
        """The same of each document of a paired comparison, as if documents were seeds."""
        rows = [row for path in self.paths if os.path.basename(path).removesuffix(".jsonl") == file
                for row in self._lines(path) if row["method"] == name and "by_document" in row]
        if len(rows) != 1:
            raise Fault(f"expected one paired comparison of {name}; found {len(rows)}.")
        return Seeds((number, percent(math.expm1((document["nats"] - document["nats_against"]) / document["tokens"])))
                     for number, document in enumerate(rows[0]["by_document"]))

    def above_dense_at(self, density, family, file=None):
        """The same at a density, of selectors that differ in a number, which is * in `family`: on the line between the two
        recorded rows around the density."""
        return self._at_density(density, family, file, lambda name: self.above_dense(name, file))

    def above_dense_over_seeds_at(self, density, family):
        """Perplexity above dense at a density, as for above_dense_at(), of each seed of a model that a file is named after."""
        return Seeds((seed, self.above_dense_at(density, family, file)) for seed, file in self._seed_files())

    def recall_at(self, density, family, tokens, without=()):
        """Recall at a density, in the same way, of each mix of synthetic heads but those in `without`, as if mixes were seeds."""
        files = {int(mix): f"{mix}_{tokens}" for path in self.paths
                 for mix, _, length in [os.path.basename(path).removesuffix(".jsonl").partition("_")]
                 if mix.isdigit() and length == str(tokens)}
        return Seeds((mix, self._at_density(density, family, file, lambda name, file=file: self.method(name, "recall", file=file)))
                     for mix, file in files.items() if mix not in without)

    def over_seeds(self, name, figure):
        """A figure of a selector, or its perplexity above_dense, of each seed of a model that a file is named after."""
        return Seeds((seed, self.above_dense(name, file) if figure == "above_dense" else self.method(name, figure, file=file))
                     for seed, file in self._seed_files())

    def answered(self, name, nearest, farthest):
        """Percent of the questions at these distances in tokens that are answered rightly, of each seed of a model."""
        return Seeds((seed, self._answered(name, nearest, farthest, file)) for seed, file in self._seed_files())

    def answered_at(self, density, family, nearest, farthest):
        """The same at a density, as for above_dense_at()."""
        return Seeds((seed, self._at_density(density, family, file,
                                             lambda name, file=file: self._answered(name, nearest, farthest, file)))
                     for seed, file in self._seed_files())

    def _seed_files(self):
        names = (os.path.basename(path).removesuffix(".jsonl") for path in self.paths)
        return [(int(name), name) for name in names if name.isdigit()]

    def _answered(self, name, nearest, farthest, file):
        right = [is_right for distance, is_right in self.method(name, "answers", file=file) if nearest <= distance <= farthest]
        return percent(sum(right) / len(right))

    def _at_density(self, density, family, file, figure):
        pattern = re.escape(family).replace(r"\*", r"[\d.]+")
        rows = sorted((self.method(name, "density", file=file), figure(name)) for name in self.named("", file)
                      if re.fullmatch(pattern, name))
        for (low, at_low), (high, at_high) in zip(rows, rows[1:]):
            if low <= density <= high:
                return at_low + (at_high - at_low) * (density - low) / (high - low)
        raise Fault(f"expected recorded rows of {family} around the density {density:.3f}; found none.")

    def each(self, start, column=None, file=None):
        """A number of each line of a text that starts with these words, blanks aside: the one after or before the word
        `column` in the line, else the one below `column` in the names above it, two blanks apart. Without a column, all
        numbers after the words."""
        found = []
        for path in self.paths:
            if not path.endswith(".txt") or file not in (None, os.path.basename(path).removesuffix(".txt")):
                continue
            names = []
            with open(path, encoding="utf-8") as rows:
                for row in rows:
                    fields, text = re.split(r"\s{2,}", row.strip()), " ".join(row.split())
                    if not text.startswith(start):
                        names = fields if column in fields else names
                        continue
                    if column is None:
                        found.append([float(number.group()) for number in NUMBER.finditer(text.removeprefix(start))])
                        continue
                    beside = re.search(rf"\b{re.escape(column)} (\d+(?:\.\d+)?)|(\d+(?:\.\d+)?) ?{re.escape(column)}", text)
                    below = None if beside else fields[names.index(column) - len(names)].rstrip("%x")
                    found.append(float(below or beside.group(1) or beside.group(2)))
        if not found:
            raise Fault(f"expected a line that starts with \"{start}\"; found none.")
        return found

    def line(self, start, column=None, nth=None, file=None):
        """The same of the only such line, or of the nth."""
        found = self.each(start, column, file)
        if nth is None and len(found) > 1:
            raise Fault(f"expected one line that starts with \"{start}\"; found {len(found)}; say which.")
        return found[(nth or 1) - 1]


class Names(dict):
    """What an expression can use; any other word stands for itself."""

    def __missing__(self, name):
        return name


def evaluate(records, expression):
    names = Names({function.__name__: function for function in FUNCTIONS}, __builtins__={})
    names.update((name, getattr(records, name)) for name in vars(Records) if callable(getattr(records, name)) and name[0] != "_")
    try:
        return eval(expression, names, names)  # the text is the repository's own
    except Fault:
        raise
    except Exception as error:
        raise Fault(f"expected an expression that can be computed; found \"{expression}\": {error}.") from error

#!/usr/bin/env python3
"""Checks the figures of the hand-written result pages, docs/results/*.md and README.md, against their records.

    scripts/check_results.py              checks the pages; prints one line per fault, exit status 1 if there is any
    scripts/check_results.py --self-test  tests the check on a sample page, with wrong digits that it must find

A comment before a table or a paragraph names its records and says how each figure follows from them:

    <!-- record: study/ablation
    rows: uniform; main
    columns: label | loss('{}') | loss('{}') - loss(uniform) | interval(loss('{}') - loss(uniform)) -->

    <!-- record: prefill/perplexity.jsonl
    figures: above_dense('oracle:p=0.5'); setting -->

record   folders and files under docs/results or the repository. Figures can come from no others.
rows     one key for each row of the table. Without it, the key is the text in backquotes in the row's first cell, else
         that cell up to its first comma.
columns  one Python expression for each column. {} is the key of the row, {1} and {2} its parts if it is "this | that",
         {above} the key of the row above it. A bare word is a string. A column `label`, `setting` or `quoted` (from a
         paper or a post) is not checked.
figures  one expression for each figure of the paragraph, in the order of the text. `setting` and `quoted` skip one.

FUNCTIONS of result_statistics.py and the methods of Records in result_records.py can be used. An arm's figure has a value
for each seed; `-` pairs seeds. It prints as mean and sample standard deviation, and as the value alone if there is one
seed. A run that diverged prints as the word "step" and the step.

Checked: every number of a table with columns, and the signed, decimal and percent numbers of every paragraph and of
every table with figures. Each must equal its expression to the digits shown, sign and count included. A table with a
number, or a paragraph with such numbers, that has no comment is a fault; in README.md only those with a comment are
checked.

Not checked: headings, headers of tables, text in backquotes, link targets, numbers of arXiv papers, the level "95%
interval", whole numbers without a sign in paragraphs, columns and figures marked `label`, `setting` or `quoted`, and
whether the sentence, or the label of the row, says what the expression computes. Of the pages in folders under
docs/results, which prism report writes from the same records, only this is checked: that each sweep with records has one,
and that it shows every run.
"""
import argparse
import collections
import glob
import json
import os
import re
import sys
import tempfile

from result_records import NUMBER, Records, evaluate
from result_statistics import Fault, Seeds, Steps, holm, mean, p_value, quantile, sd, two_sided_p

UNCHECKED = ("label", "setting", "quoted")


def values_of(figure):
    """The numbers that a figure prints as, None for one that is not checked."""
    if isinstance(figure, str) and figure in UNCHECKED:
        return [None]
    if isinstance(figure, Seeds):
        return [mean(figure)] if len(figure) == 1 else [mean(figure), sd(figure)]
    if isinstance(figure, (list, tuple)):
        return [value for part in figure for value in values_of(part)]
    if isinstance(figure, (int, float)):
        return [figure]
    raise Fault(f"expected a figure; found {figure!r}.")


def fault_between(shown, value):
    """What is wrong with a number that was found by NUMBER, if it shows a value; else None."""
    sign, digits, decimals = shown.groups()
    places = len(decimals) - 1 if decimals else 0
    number = float(digits.replace(",", "") + (decimals or ""))
    number = -number if sign in ("-", "−") else number
    if abs(number - value) <= 0.5 * 10 ** -places * (1 + 1e-9) and not (sign == "+" and value < 0 and number != 0):
        return None
    return f"expected {value:{'+' if sign else ''},.{places}f}; found {shown.group()}"


def plain(text):
    """The text without what is never checked."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|`[^`]*`|\]\([^)]*\)|arXiv \d{4}\.\d{5}|95% (?=interval)", " ", text)
    return re.sub(r"\s+", " ", text)


def figures_in(text):
    """The numbers of a paragraph that are checked: those with a sign, decimals or a percent sign, or after ±."""
    unread = re.search(r"\S*\d\.\d\S*", NUMBER.sub("", text))
    if unread:
        raise Fault(f"expected decimal numbers as in 4.5602, 1.27x or 5.2M; found {unread.group()}; write it so, or in backquotes.")
    for found in NUMBER.finditer(text):
        if found.group(1) or found.group(3) or text[found.end():].startswith("%") or text[:found.start()].endswith("± "):
            yield found


def has_figures(text):
    try:
        return any(figures_in(text))
    except Fault:
        return True


def expressions_in(text):
    """The expressions between semicolons or line breaks, those inside brackets aside."""
    depth, start = 0, 0
    for place, letter in enumerate(text + ";"):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter in ";\n" and depth == 0:
            if text[start:place].strip():
                yield " ".join(text[start:place].split())
            start = place + 1
    if depth:
        raise Fault(f"expected brackets that close in the comment; found \"{text[start:].strip()}\".")


def check_paragraph(text, comment, records):
    shown = list(figures_in(text))
    place = 0
    for expression in expressions_in(comment["figures"]):
        for value in values_of(evaluate(records, expression)):
            if place == len(shown):
                raise Fault(f"expected one more figure, {expression}; found none.")
            fault = None if value is None else fault_between(shown[place], value)
            if fault:
                raise Fault(f"{fault}, figure {place + 1} of the text, where the records give {expression}.")
            place += 1
    if place < len(shown):
        raise Fault(f"expected {place} figures as the comment lists them; found one more, {shown[place].group()}.")


def key_of(cell):
    code = re.search(r"`([^`]*)`", cell)
    return code.group(1) if code else cell.strip("* ").partition(",")[0]


def cells_of(row):
    return [cell.strip() for cell in re.sub(r"^\s*\||\|\s*$", "", row).split("|")]


def check_table(lines, comment, records):
    """Yields (line within the table, sentence) for each fault."""
    columns = [column.strip() for column in comment["columns"].split("|")]
    rows = [cells_of(line) for line in lines[2:]]
    keys = [key.strip() for key in comment["rows"].split(";")] if "rows" in comment else [key_of(row[0]) for row in rows]
    if len(keys) != len(rows):
        raise Fault(f"expected {len(keys)} rows as the comment lists them; found {len(rows)}.")
    for place, (key, row) in enumerate(zip(keys, rows)):
        try:
            if len(row) != len(columns):
                raise Fault(f"expected {len(columns)} cells as the comment has columns; found {len(row)}.")
            for cell, column in zip(row, columns):
                if column in UNCHECKED:
                    continue
                expression = column.replace("{}", key).replace("{above}", keys[max(place - 1, 0)])
                for number, part in enumerate(key.split("|"), 1):
                    expression = expression.replace(f"{{{number}}}", part.strip())
                figure = evaluate(records, expression)
                values, shown = values_of(figure), list(NUMBER.finditer(plain(cell)))
                if not cell and not any(values):  # an arm minus itself
                    continue
                if len(values) != len(shown):
                    raise Fault(f"expected {len(values)} numbers, {expression}; found \"{cell}\".")
                if isinstance(figure, Steps) and figure and "step" not in cell:
                    raise Fault(f"expected the step at which {key} diverged; found \"{cell}\".")
                if not isinstance(figure, Steps) and "step" in cell:
                    raise Fault(f"expected a loss of {key}, which did not diverge; found \"{cell}\".")
                for number, value in zip(shown, values):
                    fault = fault_between(number, value)
                    if fault:
                        raise Fault(f"{fault} in row {row[0]}, where the records give {expression}.")
        except Fault as fault:
            yield 2 + place, str(fault)


def blocks_of(text):
    """Yields (line, comment or None, lines) for each block between empty lines; comments name records. For one that cannot be
    read, the comment is a Fault."""
    comment, block, start, fence = None, [], 0, False
    lines = text.split("\n") + [""]
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.startswith("```"):
            fence = not fence
        elif block and not fence and (line.startswith(("<!--", "#")) or block[0].startswith("#")):
            yield start + 1, comment, block  # a heading, or what stands before a heading or a comment without an empty line
            comment, block = None, []
            continue
        elif line.startswith("<!--") and not fence:
            end = next((at for at in range(place, len(lines)) if "-->" in lines[at]), len(lines) - 1)
            written, closed, after = "\n".join(lines[place:end + 1]).partition("-->")
            parts = re.split(r"(?m)^(?:<!-- *)?(record|rows|columns|figures):", written)
            if not closed or after.strip():
                yield place + 1, Fault("expected a comment that ends with -->, and nothing after it on that line; found "
                                       f"{'other text' if closed else 'no end'}."), [line]
            elif "record:" in written and "record" not in parts[1::2]:
                yield place + 1, Fault("expected a line that begins with record: in the comment; found none."), [line]
            elif "record:" in written:
                comment = dict(zip(parts[1::2], (part.strip() for part in parts[2::2])))
            place = end
        elif line.strip() and not fence:
            if not block:
                start = place
            block.append(line)
        elif block and not fence:
            yield start + 1, comment, block
            comment, block = None, []
        place += 1


def faults_in(text, root, every_block=True):
    """Yields (line, sentence) for each fault of a page; blocks without a comment are faults if all must have one."""
    for start, comment, lines in blocks_of(text):
        if isinstance(comment, Fault):
            yield start, str(comment)
            continue
        is_table = lines[0].startswith("|")
        shown = plain("\n".join(lines[2:] if is_table else lines))
        if lines[0].startswith("#"):
            continue
        if not comment:
            if every_block and (re.search(r"\d", shown) if is_table else has_figures(shown)):
                yield start, (f"expected a comment that names the record of this {'table' if is_table else 'paragraph'}; found "
                              f"none before \"{lines[0][:60]}\"; see scripts/check_results.py.")
            continue
        try:
            records = Records(root, re.split(r",\s*", comment["record"]))
            if is_table and "columns" in comment:
                for place, sentence in check_table(lines, comment, records):
                    yield start + place, sentence
            elif "figures" in comment:
                check_paragraph(shown, comment, records)
            else:
                yield start, f"expected {'columns or ' if is_table else ''}figures in the comment; found neither."
        except Fault as fault:
            yield start, str(fault)


def shown_runs(page):
    """How many seeds the table of a page that prism report wrote has of each run's name; without such a column, one a row."""
    seeds = collections.Counter()
    columns = []
    for line in page.split("\n"):
        cells = cells_of(line) if line.startswith("|") else []
        if cells and cells[0] == "run":
            columns = cells
        elif columns and len(cells) == len(columns) and not set(cells[0]) <= set(":-"):
            seeds[cells[0].replace("\\", "").partition(" (")[0]] += int(cells[columns.index("seeds")]) if "seeds" in columns else 1
        elif not cells and columns:
            break
    return seeds


def stale_pages(root):
    """Yields a sentence for each sweep of arms whose page under docs/results does not show just the runs that are recorded."""
    pages = {os.path.basename(path): path for path in glob.glob(os.path.join(root, "docs/results/*/*.md"))}
    for folder in sorted(glob.glob(os.path.join(root, "docs/results/study/*/"))):
        name = os.path.basename(os.path.normpath(folder))
        if not os.path.exists(os.path.join(root, f"configs/sweeps/{name}.json")):
            continue  # part of another sweep, once more
        recorded = collections.Counter()
        for recipe in glob.glob(os.path.join(folder, "*", "recipe.json")):
            with open(recipe, encoding="utf-8") as file:
                recorded[json.load(file)["name"]] += 1
        shown = {}
        if f"{name}.md" in pages:
            with open(pages[f"{name}.md"], encoding="utf-8") as file:
                shown = shown_runs(file.read())
        wrong = [f"{shown.get(run, 0)} of {recorded[run]} seeds of {run}" for run in sorted(set(recorded) | set(shown))
                 if shown.get(run, 0) != recorded[run]]
        if wrong:
            yield (f"{name}.md: expected the runs that are recorded; found {', '.join(wrong)}; run scripts/study.sh --results "
                   f"{name}.")


def self_test():
    page = "| run | loss | seeds |\n|---|---:|---:|\n| a\\_b | 1.0 | 3 |\n| bad | – | 2 |\n\n| run | seeds |\n| c | 4 |"
    assert shown_runs(page) == {"a_b": 3, "bad": 2}, shown_runs(page)
    for wrong, line in (("<!-- a note --> The loss is 9.99.", 1), ("text\n\n<!-- record: study/x\nfigures: 1\n\n9.99", 3),
                        ("<!-- the record: study/x -->\nThe loss is 9.99.", 1)):
        found = list(faults_in(wrong, "."))
        assert found and found[0][0] == line, (wrong, found)
    for freedom, expected in ((1, 12.706205), (2, 4.302653), (3, 3.182446), (4, 2.776445), (7, 2.364624)):
        assert abs(quantile(freedom) - expected) < 1e-5, (freedom, quantile(freedom))
    assert abs(two_sided_p(2.0, 5) - 0.101939) < 1e-5, two_sided_p(2.0, 5)
    small, large = Seeds({1: 1.0, 2: 1.1, 3: 0.9}), Seeds({1: 1.0, 2: 2.0, 3: 0.0})
    assert holm(large, small) == [p_value(large), 2 * p_value(small)]
    page = """# Page, 1.5 in a heading

<!-- record: study/x
columns: label | loss('{}') | loss('{}') - loss(base) | interval(loss('{}') - loss(base)) -->
| arm | loss | difference | interval |
|---|---:|---:|---|
| base, 12x12 | 2.0000 ± 1.0000 | 0.0000 ± 0.0000 | 0.00 to 0.00 |
| wide, 3x2,6x2 | 1.8000 ± 0.9000 | -0.2000 ± 0.1000 | -0.448 to +0.048 |
| one | 1.5000, one seed | +0.5000 | |
| bad | not finite at step 12 | | |

<!-- record: study/x, speed.txt
figures: -(loss(wide) - loss(base)); interval(loss(base) -
 loss(wide)); setting; percent(mean(loss(wide)) / 4)
line('small compiled', ratio); line('structured', recall) -->
The wide one gains 0.2000 ± 0.1000 (95% interval -0.048 to +0.448) at 0.5 in 12 layers (arXiv 2606.27449),
which is 45% with `p=0.7`, 1.27x as fast, recall 0.96.
"""
    with tempfile.TemporaryDirectory() as root:
        def write(path, lines):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        for arm, losses in {"base": (1.0, 2.0, 3.0), "wide": (0.9, 1.8, 2.7), "one": (1.5,)}.items():
            for number, loss in enumerate(losses, 1):
                write(f"docs/results/study/x/{arm}-seed{number}/records.jsonl",
                      [json.dumps({"kind": "end", "step": 9, "val_loss": loss})])
        write("docs/results/study/x/bad-seed1/records.jsonl", ['{"kind":"diverged","step":12}'])
        layer = {"heads": 2}
        write("docs/results/study/y/half-seed1/records.jsonl",
              [json.dumps({"kind": "run", "d_model": 4, "layers": [layer, layer], "flops_per_token": 1000}),
               json.dumps({"kind": "classification", "kept_share": [1, 0.5]})])
        write("docs/results/study/y/half-seed1/recipe.json", ['{"model":{"context":8}}'])
        half = Records(root, ["study/y"])
        # A layer's attention part: 8 (128 + 16 * 8) = 2,048 FLOPs for 8 tokens; the networks: 2 * 4 * 7 = 56 for each layer.
        assert half.attention_flops("half", 8) == {1: 100 * (2048 + 1024 + 2 * 56) / 4096}
        assert half.model_flops("half", 8) == {1: 100 * (8000 - 1024 + 2 * 56) / 8000}
        write("docs/results/speed.txt", ["case   peer     ratio  MiB", "small  eager    1.76   5", "small  compiled  1.27   4",
                                         "structured  recall 0.9564  11.00 x dense"])
        assert not list(faults_in(page, root)), list(faults_in(page, root))
        write("configs/sweeps/y.json", ["{}"])
        write("docs/results/study/y/half-seed1/recipe.json", ['{"name":"half","model":{"context":8}}'])
        for table, fault in ((None, "0 of 1 seeds of half"), ("| run | seeds |\n| half | 2 |", "2 of 1 seeds of half"),
                             ("| run | loss |\n| half | 1.5 |\n| gone | 2.5 |", "1 of 0 seeds of gone"), ("| run |\n| half |", None)):
            if table:
                write("docs/results/pages/y.md", ["# y", "", table])
            found = list(stale_pages(root))
            assert len(found) == (fault is not None) and (not fault or fault in found[0]), (table, found)
        for right, wrong, line in (("1.8000 ±", "1.8001 ±", 8), ("0.9000", "0.9001", 8), ("-0.2000 ±", "+0.2000 ±", 8),
                                   ("+0.048 |", "+0.049 |", 8), ("1.5000,", "1.5100,", 9), ("step 12 ", "step 13 ", 10),
                                   ("+0.5000 |", "+0.5000 ± 0.1 |", 9), ("| base, 12x12 |", "| wide, 12x12 |", 7),
                                   ("gains 0.2000", "gains 0.2010", 16), ("45%", "46%", 16), ("1.27x", "1.28x", 16),
                                   ("recall 0.96", "recall 0.95", 16), ("recall 0.96", "recall 0.96, 1.1", 16),
                                   ("record: study/x\ncol", "note: study/x\ncol", 5), ("study/x, ", "study/y, ", 16)):
            assert page.count(right) == 1, right
            found = list(faults_in(page.replace(right, wrong), root))
            assert found and found[0][0] == line, (wrong, found)
    print("check_results: self-test passed")


def main():
    parser = argparse.ArgumentParser(description="Checks the figures of docs/results/*.md and README.md against their records. "
                                     "The beginning of this file explains the comments in which the pages name them.")
    parser.add_argument("--self-test", action="store_true", help="test the check on a sample page instead")
    if parser.parse_args().self_test:
        return self_test()
    root = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    front_page = os.path.join(root, "README.md")
    pages = sorted(glob.glob(os.path.join(root, "docs/results/*.md"))) + [front_page]
    faults = 0
    for path in pages:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            faults += 1
            print(f"{os.path.relpath(path, root)}: expected text in UTF-8; found other bytes.")
            continue
        if path == front_page and "<!-- record:" not in text:
            faults += 1
            print("README.md: expected a comment that names the records of its figures; found none; restore it.")
        for line, sentence in faults_in(text, root, path != front_page):
            faults += 1
            print(f"{os.path.relpath(path, root)}:{line}: {sentence}")
    for sentence in stale_pages(root):
        faults += 1
        print(sentence)
    if len(pages) < 2:
        print(f"expected pages under {root}/docs/results; found none; run the script of a whole checkout.")
    print(f"results: {len(pages)} pages checked, {faults} faults")
    return sys.exit(1 if faults or len(pages) < 2 else 0)


if __name__ == "__main__":
    main()

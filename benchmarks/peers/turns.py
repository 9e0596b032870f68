"""What comparisons of speed share: running programs, peers that wait in a process, measuring in turn, tables with goals.

    calls = {"prefill 512": {"prism": read, "OpenVINO": ask}}        # functions that return {"speed": tokens/s}
    table = Table("Reading a prompt", "prism", ["OpenVINO"], [Row("512", "prefill 512", {"OpenVINO": 1.0})])
    goals = print_table(table, measure_in_turn(calls, rounds=3))
"""
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def give_up(expected, found, way_out):
    sys.exit(f"[check_peers] expected {expected}; found {found}; {way_out}.")


@dataclasses.dataclass
class Done:
    output: str
    errors: str
    seconds: float
    peak_mb: float


def run(*parts, text=None):
    """Runs a program. Its wall-clock time and peak memory are those of the process."""
    words = [str(part) for part in parts]
    output, errors, given = (tempfile.TemporaryFile("w+") for _ in range(3))
    with output, errors, given:
        given.write(text or "")
        given.seek(0)
        began = time.perf_counter()
        process = subprocess.Popen(words, stdin=given, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        done = Done(output.read(), errors.read(), seconds, usage.ru_maxrss * 1024 / 1e6)
    if process.returncode != 0:
        last = done.errors.strip().splitlines()[-1:] or [f"status {process.returncode}"]
        give_up(f"{' '.join(words)[:200]} to run", last[0], "run it by hand")
    return done


class Server:
    """A process of a Python file beside this one that answers a JSON line with another, and waits in between."""

    def __init__(self, file, *parts):
        self.file = file
        self.errors = tempfile.TemporaryFile("w+")
        words = [sys.executable, str(pathlib.Path(__file__).with_name(file)), *(str(part) for part in parts)]
        self.process = subprocess.Popen(words, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            give_up(f"{self.file} to answer", (self.errors.read().strip().splitlines() or ["nothing"])[-1], "run it by hand")
        return json.loads(line)

    def ask(self, **question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return self.answer()


@dataclasses.dataclass
class Row:
    """One line of a table, from the measurement of this name."""

    label: str
    measurement: str
    ratios: dict = dataclasses.field(default_factory=dict)  # goals of the ratio to each peer
    share: float = None  # goal of the share of the CPU's limit
    value: float = None  # goal of prism's own figure


@dataclasses.dataclass
class Table:
    title: str
    ours: str  # prism's program
    peers: list  # in the order of their columns
    rows: list = dataclasses.field(default_factory=list)
    unit: str = "tokens/s"
    field: str = "speed"
    less_is_better: bool = False


def measure_in_turn(calls, rounds):
    """Returns {measurement: {program: {field: median}}}."""
    found = {name: {program: [] for program in programs} for name, programs in calls.items()}
    for i in range(rounds):
        for name, programs in calls.items():
            for program, call in programs.items():
                print(f"round {i + 1} of {rounds}: {name}: {program}", file=sys.stderr, flush=True)
                if i == 0 and name.startswith("start"):
                    call()  # the files are warm from now on
                found[name][program].append(call())
    return {name: {program: {field: statistics.median(one[field] for one in values) for field in values[0]}
                   for program, values in programs.items()} for name, programs in found.items()}


def figure(value):
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def lines_of(table, medians):
    """Returns the rows of cells, the first with the columns' names, and whether each goal is met."""
    measured = [medians[row.measurement] for row in table.rows]
    ours = [found[table.ours] for found in measured]
    columns, goals = [[""] + [row.label for row in table.rows]], []

    def add(head, cells):
        columns.append([head] + cells)

    def add_goals(wanted, values, is_met, show):
        if any(goal is not None for goal in wanted):
            met = [None if goal is None else is_met(value, goal) for value, goal in zip(values, wanted)]
            goals.extend(one for one in met if one is not None)
            add("goal", ["" if goal is None else show(goal) for goal in wanted])
            add("met", ["" if one is None else "yes" if one else "NO" for one in met])

    values = [one[table.field] for one in ours]
    add(table.ours, [figure(value) for value in values])
    add_goals([row.value for row in table.rows], values, lambda value, goal: value <= goal, figure)
    if "share" in ours[0]:
        shares = [one["share"] for one in ours]
        add("of limit", [f"{share:.0%}" for share in shares])
        add_goals([row.share for row in table.rows], shares, lambda share, goal: share >= goal, "{:.0%}".format)
    if "density" in ours[0]:
        add("density", [f"{one['density']:.3f}" for one in ours])
    for peer in table.peers:
        if not all(peer in found for found in measured):
            continue
        theirs = [found[peer][table.field] for found in measured]
        ratios = [b / a if table.less_is_better else a / b for a, b in zip(values, theirs)]
        add(peer, [figure(value) for value in theirs])
        add("ratio", [f"{ratio:.2f}" for ratio in ratios])
        add_goals([row.ratios.get(peer) for row in table.rows], ratios, lambda ratio, goal: ratio >= goal, "{:.2f}".format)
    return [list(row) for row in zip(*columns)], goals


def print_table(table, medians):
    rows, goals = lines_of(table, medians)
    print(f"\n{table.title} ({table.unit})")
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        first, rest = row[0].ljust(widths[0]), "".join(cell.rjust(width + 2) for cell, width in zip(row[1:], widths[1:]))
        print((first + rest).rstrip())
    return goals


def limits_of(prism, threads):
    """Returns what `prism info --machine` says of this machine, and a line about it."""
    machine = json.loads(run(prism, "info", "--machine", "--threads", threads, "--json").output)
    return machine, (f"{threads} threads of {machine['cpu']}; prism's kernels for {machine['isa']}; products "
                     f"of all programs in {machine['dtype']}; limits: "
                     f"bfloat16 {machine['bfloat16_gflops']:.0f}, float32 {machine['float32_gflops']:.0f} GFLOP/s, "
                     f"memory reads {machine['read_gb_per_s']:.1f} GB/s")


def peer_precision(machine):
    """The precision of other programs' products, as OpenVINO names it: that which prism chooses here."""
    return {"bfloat16": "bf16", "float32": "f32"}[machine["dtype"]]


def print_heading(comparison, began, limits, versions, rounds, ratio, notes):
    """Prints what was run, when, on what and how, as comments. ratio: a sentence that says what the ratios are of."""
    given = [os.path.basename(word) for word in sys.argv[1:]][2:]  # without --prism
    print(" ".join([f"# scripts/check_peers.sh {comparison}", *given]) + f", {began}")
    taken = f"{rounds} rounds, in which the programs take turns" if rounds > 1 else "one round"
    for line in [limits, versions, f"Medians of {taken}; ratio: {ratio}", *notes]:
        print(f"# {line}")


def print_all(tables, medians):
    """Prints the tables that have rows, and how many of their goals are met."""
    goals = [met for table in tables if table.rows for met in print_table(table, medians)]
    print(f"\n{sum(goals)} of {len(goals)} goals are met.")

"""Reads a run's event files as stock TensorBoard does and compares them with its records.

    python read_events.py RUN
"""
import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def expect(what, found, wanted):
    if found != wanted and not (isinstance(wanted, float) and math.isclose(found, wanted, rel_tol=1e-6)):
        sys.exit(f"expected {what} to be {wanted}; found {found}.")


def main():
    run = sys.argv[1]
    events = EventAccumulator(run, size_guidance={"scalars": 0, "tensors": 0, "histograms": 0})
    events.Reload()
    with open(f"{run}/records.jsonl") as lines:
        records = [json.loads(line) for line in lines]
    of_kind = lambda kind: [record for record in records if record["kind"] == kind]
    for tag, kind, field in (("train/loss", "train", "loss"), ("valid/loss", "eval", "val_loss"),
                             ("train/learning_rate", "train", "learning_rate")):
        found = events.Scalars(tag)
        wanted = of_kind(kind)
        expect(f"the number of {tag}", len(found), len(wanted))
        for event, record in zip(found, wanted):
            expect(f"the step of {tag}", event.step, record["step"])
            expect(tag, event.value, float(record[field]))
    diagnostics = of_kind("diagnostics")
    for layer in range(2):
        found = events.Scalars(f"entropy/layer_{layer}")
        expect("the number of entropies", len(found), len(diagnostics))
        for event, record in zip(found, diagnostics):
            expect("entropy", event.value, float(record["entropy"][layer]["entropy"]))
    heads = diagnostics[-1]["entropy"][1]["head_entropies"]
    for head, entropy in enumerate(heads):
        expect("a head's entropy", events.Scalars(f"entropy/layer_1/head_{head}")[-1].value, float(entropy))
    name = diagnostics[0]["parameters"][0]["name"]
    histograms = events.Histograms(f"weights/{name}")
    expect("the number of histograms", len(histograms), len(diagnostics))
    expect("the number of gradients", len(events.Histograms(f"gradients/{name}")), len(diagnostics))
    values = histograms[0].histogram_value
    expect("the counts of a histogram", sum(values.bucket), values.num)
    expect("the sum of squares of a histogram", math.sqrt(values.sum_squares), float(diagnostics[0]["parameters"][0]["weight"]))
    samples = of_kind("sample")
    last = [sample for sample in samples if sample["step"] == samples[-1]["step"]]
    for i, sample in enumerate(last):
        text = events.Tensors(f"sample/{i}")[-1].tensor_proto.string_val[0].decode()
        expect("the sample", text, f"{sample['prompt']}{sample['text']}\n\n(temperature {sample['temperature']:g})")
    print(f"{len(events.Tags()['scalars'])} scalars, {len(events.Tags()['histograms'])} histograms")


if __name__ == "__main__":
    main()

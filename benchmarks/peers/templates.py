"""Compares prism's rendering of real chat templates with transformers', byte for byte.

    scripts/check_peers.sh templates FOLDER

Each template (*.jinja) of a folder is rendered for many conversations: with and without a system message, several
turns, tools and calls of them, empty and Unicode contents, contents of parts, with and without a generation prompt.
Prism renders through the test ChatTemplates.RendersCasesOfAFile. Counts the equal renderings (or both refuse), the
unequal ones, and those that prism alone refuses, whose messages are printed. Exit status 0 if all are equal.
"""

import argparse
import collections
import copy
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TZ"] = "UTC"
time.tzset()

from transformers.utils import chat_template_utils  # noqa: E402

NOW = datetime.datetime(2024, 7, 6, 9, 5, 3)


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = FixedTime

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather at a place, <now> & \"here\".\nIn degrees.",
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string", "description": "a town, e.g. Zürich"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                    "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 7.5},
                    "options": {
                        "type": "object",
                        "properties": {"wind": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}}},
                        "required": ["wind"],
                        "additionalProperties": False,
                    },
                },
                "required": ["place"],
            },
            "return": {"type": "number", "description": "degrees"},
        },
    },
    {
        "type": "function",
        "function": {"name": "stop", "description": "Stops.", "parameters": {"type": "object", "properties": {}}},
    },
]


def say(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, identifier="call12345"):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = say("system", "You are short.\n")
TURNS = [say("user", "Hi!"), say("assistant", "Hello."), say("user", "And then?")]
CALLS = [
    say("user", "Weather in Zürich?"),
    say("assistant", "", tool_calls=[call("get_weather", {"place": "Zürich", "days": 2, "unit": None, "deep": {"a": [1, 2.5, True]}})]),
    say("tool", '{"degrees": 21.5}', name="get_weather", tool_call_id="call12345"),
    say("assistant", "It is 21.5 degrees."),
    say("user", "Thanks"),
]
TWO_CALLS = [
    say("user", "Both"),
    say("assistant", "I look.", tool_calls=[call("get_weather", {"place": "A"}), call("stop", {}, "call67890")]),
    say("tool", "rain", name="get_weather", tool_call_id="call12345"),
    say("tool", "stopped", name="stop", tool_call_id="call67890"),
]
CONVERSATIONS = {
    "one": [say("user", "Hi!")],
    "system": [SYSTEM, say("user", "Hi!")],
    "turns": TURNS,
    "system turns": [SYSTEM, *TURNS],
    "ends with assistant": [SYSTEM, *TURNS[:2]],
    "many turns": [SYSTEM, *(TURNS[:2] * 4), TURNS[2]],
    "empty": [],
    "empty contents": [say("system", ""), say("user", ""), say("assistant", ""), say("user", " \n ")],
    "unicode": [say("system", "Écrivez — «bien»"), say("user", "灯台 🙂🏽 שלום ١٢٣"), say("assistant", "ﬁn, ß, İ"), say("user", "é́\u2028x")],
    "white space": [say("user", "  a\n\n b \t"), say("assistant", "\n c\n"), say("user", "\r\nd ")],
    "markers": [say("user", "<|im_end|> </s> [INST] {{ x }} {% y %} <think>"), say("assistant", "<think>\nwhy\n</think>\n\nso"), say("user", "'\"\\")],
    "wrong order": [say("assistant", "first"), say("user", "second")],
    "twice user": [say("user", "a"), say("user", "b")],
    "late system": [say("user", "a"), say("assistant", "b"), SYSTEM, say("user", "c")],
    "other role": [say("user", "a"), say("critic", "b")],
    "developer": [say("developer", "Be brief."), say("user", "a")],
    "calls": CALLS,
    "calls at end": CALLS[:2],
    "result at end": CALLS[:3],
    "system calls": [SYSTEM, *CALLS],
    "two calls": TWO_CALLS,
    "two calls and more": [*TWO_CALLS, say("assistant", "Done."), say("user", "ok")],
    "call as text": [say("user", "w"), say("assistant", "", tool_calls=[call("get_weather", '{"place": "A"}')])],
    "no content": [say("user", "w"), {"role": "assistant", "tool_calls": [call("stop", {})]}, say("tool", "ok", name="stop", tool_call_id="call12345")],
    "thinking": [say("user", "a"), say("assistant", "b", reasoning_content="because\nof this"), say("user", "c")],
    "thinking calls": [say("user", "a"), say("assistant", "", reasoning_content="hm", tool_calls=[call("stop", {})]), say("tool", "ok", name="stop", tool_call_id="call12345")],
    "parts": [say("user", [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"}]), say("assistant", "That."), say("user", [{"type": "text", "text": "é"}])],
    "image": [say("user", [{"type": "image", "image": "x.png"}, {"type": "text", "text": "What?"}])],
    "result of parts": [*CALLS[:2], say("tool", [{"type": "text", "text": "21"}], name="get_weather", tool_call_id="call12345")],
}
EXTRAS = [
    {},
    {"enable_thinking": False},
    {"enable_thinking": True, "reasoning_effort": "high", "date_string": "1 Jan 2025"},
    {"documents": [{"title": "A", "text": "b"}], "thinking": True, "keep_all_reasoning": True, "builtin_tools": ["code_interpreter", "search"]},
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def expected(template, values):
    """What transformers renders or raises for one case."""
    given = copy.deepcopy({name: value for name, value in values.items() if name != "messages"})
    tracked = "generation" in template
    try:
        texts, indices = chat_template_utils.render_jinja_template(
            [copy.deepcopy(values["messages"])], chat_template=template, return_assistant_tokens_mask=tracked, **given)
    except Exception as error:  # whatever jinja2 or Python raises
        return {"raises": f"{type(error).__name__}: {error}"}
    text = texts[0]
    ranges = [[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in indices[0]] if tracked else []
    return {"output": text, "generated": ranges, "tracked": tracked}


def cases_of(name, template):
    for title, messages in CONVERSATIONS.items():
        for number, extra in enumerate(EXTRAS):
            for tools in (None, TOOLS):
                for prompt in (False, True):
                    values = {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": prompt,
                              **TOKENS, **extra}
                    wanted = expected(template, values)
                    # What transformers hands to the template.
                    plain = chat_template_utils._plain_template_data(copy.deepcopy(values))
                    plain["messages"] = chat_template_utils._alias_reasoning_fields(plain["messages"])
                    label = f"{name}: {title}, extra {number}, tools {tools is not None}, prompt {prompt}"
                    yield {"name": label, "template": name, "values": plain, "now": int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp()),
                           "tracked": wanted.get("tracked", False)}, wanted


def says(error, raised):
    """Whether an error of prism has the message that a template gave to raise_exception()."""
    kind, _, message = raised.partition(": ")
    return kind != "TemplateError" or " ".join(message.split()) in " ".join(error.split())


def render(program, templates, cases):
    """Prism's results of the cases, in order."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = pathlib.Path(folder, "cases.json"), pathlib.Path(folder, "results.json")
        given.write_text(json.dumps({"templates": templates, "cases": cases}))
        environment = {**os.environ, "PRISM_TEMPLATE_CASES": str(given), "PRISM_TEMPLATE_RESULTS": str(made)}
        subprocess.run([program, "--gtest_filter=ChatTemplates.RendersCasesOfAFile"], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        return json.loads(made.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="holds templates, *.jinja")
    parser.add_argument("--program", default="build/release/tests/test_template", help="the test program")
    words = parser.parse_args()
    program, paths = words.program, sorted(pathlib.Path(words.folder).glob("*.jinja"))
    if not paths:
        sys.exit(f"expected templates (*.jinja) in {words.folder}; found none; name another folder.")
    templates = {path.stem: path.read_text() for path in paths}
    counts, refusals, shown = collections.Counter(), collections.Counter(), 0
    per_template = {}
    for name, template in templates.items():
        pairs = list(cases_of(name, template))
        results = render(program, {name: template}, [case for case, _ in pairs])
        own = per_template[name] = collections.Counter()
        for (case, wanted), result in zip(pairs, results):
            if "raises" in wanted:
                kind = "both refuse" if "error" in result and says(result["error"], wanted["raises"]) else "unequal"
            elif "error" in result:
                kind = "refused by prism"
                refusals[f"{name}: {result['error']}"] += 1
            else:
                same = result["output"] == wanted["output"] and result["generated"] == wanted["generated"]
                kind = "equal" if same else "unequal"
            own[kind] += 1
            if kind == "unequal" and shown < 5:
                shown += 1
                print(f"{case['name']}\n  expected {wanted}\n  found    {result}")
        counts += own
        if own["unequal"] or own["refused by prism"]:
            print(name, dict(own))
    for message, count in refusals.most_common(40):
        print(f"refused {count} times: {message}")
    whole = sum(1 for own in per_template.values() if not own["unequal"] and not own["refused by prism"])
    print(f"{len(templates)} templates, {whole} of them equal in every case; cases: {dict(counts)}")
    sys.exit(0 if whole == len(templates) else 1)


if __name__ == "__main__":
    main()

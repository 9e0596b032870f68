"""Writes fixtures/cases.json: small templates of our own with what transformers' environment of jinja2 renders for
them, or that it raises. One row: {"template", "values", "output"} or {"template", "values", "raises": true}; templates
with {% generation %} also have "generated", the byte ranges of what such blocks wrote.

Made with transformers 5.24.0 and jinja2 3.1.6. Run:
    python3 tests/template/make_cases.py
"""

import itertools
import json
import pathlib

from transformers.utils import chat_template_utils

import case_lists

VALUES = {
    "s": "Hello World", "e": "", "u": "né 灯🙂", "n": 7, "f": 2.5, "t": True, "no": False, "none_value": None,
    "l": [3, 1, 2], "words": ["b", "A", "c", "a"], "nested": [[1, "x"], [2, "y"]], "empty": [],
    "d": {"b": 1, "a": "x", "items": 5, "é": [1, None, True, 1.0]},
    "people": [{"name": "Bo", "age": 3, "tag": {"x": 1}}, {"name": "al", "age": 5}, {"name": "Cy", "age": 3}],
    "messages": [{"role": "system", "content": " Sys "}, {"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": "Yo\n"}, {"role": "user", "content": "灯"}],
}


def white_space():
    """All combinations of signs around tags, with text and line breaks around them."""
    for left, right in itertools.product(["", "-", "+"], ["", "-", "+"]):
        yield f"a \n  {{%{left} if true {right}%}} \n  b \n {{%{left} endif {right}%}}\n c"
        yield f"a  {{%{left} set x = 1 {right}%}}\n\n  b"
        yield f"a \n \t{{#{left} note {right}#}} \n b"
    for left, right in itertools.product(["", "-", "+"], ["", "-"]):
        yield f"a \n  {{{{{left} n {right}}}}} \n b"
    for left, right, end in itertools.product(["", "-"], ["", "-"], ["", "-", "+"]):
        yield f"a \n {{%{left} raw {right}%}} \n {{{{ x }}}} \n {{%{left} endraw {end}%}} \n b"
    for text in ["", "\n", "\n\n", "a\n", "a\n\n", "a\r\n", "a\r\rb\r\n", " {% if t %} \nx{% endif %} \n", "{{ n }}\n",
                 "{% if t %}\n{{ n }}\n{% endif %}\n", "  {% for i in l %}\n  {{ i }}\n  {% endfor %}\nend",
                 "x {% if t %}\n y", "\u2003{% if t %}x{% endif %}", "a\u00a0\n\u2003{%- if t -%}\u3000x{% endif %}",
                 "{{ n }}  {% if t %} {{ n }} {% endif %}  ", "a{# c #}\nb{#- c -#}\n d", "{% set x %}\n a \n{% endset %}[{{ x }}]"]:
        yield text


def row_of(template):
    row = {"template": template, "values": {name: value for name, value in VALUES.items() if name in template}}
    tracked = "generation" in template
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
        if tracked:
            blocks, indices = [], []
            with compiled.environment.activate_tracker(blocks, indices):
                for block in compiled.generate(**VALUES):
                    blocks.append(block)
            row["output"] = "".join(blocks)
            row["generated"] = [[len(row["output"][:place].encode()) for place in pair] for pair in indices]
        else:
            row["output"] = compiled.render(**VALUES)
        row["output"].encode()
    except Exception:  # whatever jinja2 or Python raises
        row.pop("output", None)
        row["raises"] = True
    return row


def main():
    templates = list(dict.fromkeys([*white_space(), *case_lists.EQUAL, *case_lists.RAISING]))
    rows = [row_of(template) for template in templates]
    for row in rows:  # a list that says what it is for
        raises = "raises" in row
        if raises and row["template"] in case_lists.EQUAL or not raises and row["template"] in case_lists.RAISING:
            print(f"expected {'an output' if raises else 'an error'} of {row['template']!r}; found {row}")
    path = pathlib.Path(__file__).parent / "fixtures" / "cases.json"
    path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    print(f"{len(rows)} cases, {sum('raises' in row for row in rows)} of them raise")


if __name__ == "__main__":
    main()

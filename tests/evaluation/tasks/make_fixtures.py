"""Writes fixtures/harness.json: what lm-evaluation-harness and scipy make of texts, tokens and numbers.

    wikitext    documents, without the marks of their tokenization, and their words as the harness counts them
    wikihow     contexts and endings of HellaSwag, without WikiHow's marks
    windows     the windows in which a text of so many tokens is read by a model of so long a context
    pairs       context and continuation, and where the harness divides them, with one token for each character
    means       numbers with their mean and standard error
    perplexity  log-likelihoods with exp(-mean) and the standard error of 100,000 bootstrap samples
    weighted    log-likelihoods and words, with their perplexity per word and bits per word
    mcnemar     the questions that one of two models alone answers, with the p of the exact test (scipy)
    paired      two lists of scores, with the mean difference, its standard error and its 95% interval (scipy's ttest_rel)
    groups      standard errors of tasks, with that of their mean

Made with lm_eval 0.4.13, scipy 1.17.1. Run:
    python3 tests/evaluation/tasks/make_fixtures.py
"""

import json
import pathlib
import random

import lm_eval.api.metrics as metrics
from lm_eval.api.model import TemplateLM
from lm_eval.tasks.hellaswag.utils import preprocess
from lm_eval.tasks.wikitext.preprocess_wikitext import process_results, wikitext_detokenizer
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from scipy.stats import binomtest, ttest_rel

FILE = pathlib.Path(__file__).parent / "fixtures" / "harness.json"
PAGES = [
    " = Title = \n \n The film 's \" first part \" ( of 1 @,@ 000 @.@ 5 ) was well @-@ known ; it ended : so . Why ? Yes ! \n",
    "the s ' of [ all ] things { here } ' quoted ' /' 5/ end = = Part = = \n = = = Sub = = = \n = = = = Deep = = = = \n",
    "a \u00b0 b , c N d 's ( unclosed \" text \n \n",
    "( ( nested ) ) \" a \" b \" c \" ' '' x '\t\u00a0y\u3000z ",
    "",
]
CONTEXTS = [
    "[header] How to peel [title] Get an orange. [step] Cut  it.",
    "  blanks around  ",
    "[a][b] x [unclosed [c] d] e",
    "brackets [over\ntwo lines] stay",
    "four    spaces and [title] at [title]the end [title]",
]
PAIRS = [("Question: a\nAnswer:", " yes"), ("ends in blanks \n ", "no"), ("a", "b"), ("wide\u00a0\u3000", " x"), ("", " alone")]


class Characters(TemplateLM):
    """One token for each character, its code point."""

    backend, eot_token_id, tokenizer_name = "causal", 0, "characters"

    def tok_encode(self, string, add_special_tokens=None, **_):
        return [ord(character) for character in string]

    def _loglikelihood_tokens(self, requests, disable_tqdm=False):
        return [(context, continuation) for _, context, continuation in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError

    generate_until = loglikelihood_rolling


class Request:
    def __init__(self, *args):
        self.args = args


def windows_of(tokens, context):
    windows = map(make_disjoint_window, get_rolling_token_windows(list(range(1, tokens + 1)), 0, context, 1))
    return [{"context": before, "continuation": after} for before, after in windows]


def paired_of(a, b):
    test = ttest_rel(a, b)
    low, high = test.confidence_interval(0.95)
    difference = sum(x - y for x, y in zip(a, b)) / len(a)
    return {"a": a, "b": b, "difference": difference, "error": difference / test.statistic, "low": low, "high": high}


def main():
    draw = random.Random(1)
    means = [[0.0, 1.0, 1.0, 0.0, 1.0], [draw.random() for _ in range(37)], [1.0, 1.0]]
    likelihoods = [-draw.expovariate(0.5) for _ in range(120)]
    words = [draw.randrange(1, 40) for _ in likelihoods]
    weighted = list(zip(likelihoods, words))
    pairs = [[round(draw.random(), 3) for _ in range(count)] for count in (2, 2, 9, 9, 60, 60)]
    model = Characters()
    FILE.write_text(json.dumps({
        "wikitext": [{"page": page, "text": wikitext_detokenizer({"page": page}),
                      "words": process_results({"page": page}, [0.0])["word_perplexity"][1]} for page in PAGES],
        "wikihow": [{"text": text, "cleaned": preprocess(text)} for text in CONTEXTS],
        "windows": [{"tokens": tokens, "context": context, "windows": windows_of(tokens, context)}
                    for tokens, context in [(1, 4), (4, 4), (5, 4), (11, 4), (12, 4), (7, 1), (3, 10)]],
        "pairs": [{"context": before, "continuation": after, "context_tokens": tokens[0], "continuation_tokens": tokens[1]}
                  for before, after in PAIRS for tokens in model.loglikelihood([Request(before, after)], True)],
        "means": [{"values": values, "mean": metrics.mean(values), "error": metrics.mean_stderr(values)} for values in means],
        "perplexity": {"values": likelihoods, "perplexity": metrics.perplexity(likelihoods),
                       "error": metrics.bootstrap_stderr(metrics.perplexity, likelihoods, 100000)},
        "weighted": {"words": words, "word_perplexity": metrics.weighted_perplexity(weighted),
                     "bits": metrics.bits_per_byte(weighted)},
        "mcnemar": [{"a": a, "b": b, "p": binomtest(a, a + b).pvalue} for a, b in [(10, 2), (3, 3), (0, 7), (120, 81)]],
        "paired": [paired_of(a, b) for a, b in zip(pairs[::2], pairs[1::2])],
        "groups": [{"errors": errors, "error": float(metrics.unweighted_mean_stderr(errors))}
                   for errors in ([0.01], [0.0, 0.02], [0.011, 0.025, 0.003, 0.04])],
    }, indent=1) + "\n")


if __name__ == "__main__":
    main()

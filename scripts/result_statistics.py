"""Statistics over seeds for the figures of result pages: paired differences, Student's t, Holm's correction."""
import math
import random


class Fault(Exception):
    """A sentence about a page that disagrees with its records."""


class Seeds(dict):
    """A figure of the runs of one arm: seed -> value."""

    def __sub__(self, other):
        if isinstance(other, Steps):
            return Steps()
        shared = sorted(set(self) & set(other))
        if not shared:
            raise Fault("expected seeds that both arms share; found none.")
        return Seeds((seed, self[seed] - other[seed]) for seed in shared)

    def __neg__(self):
        return Seeds((seed, -value) for seed, value in self.items())


class Steps(list):
    """The first steps that were not finite, of an arm whose runs diverged."""

    def __sub__(self, _):
        return Steps()


def two_sided_p(t, freedom):
    """The probability that Student's t is at least as far from zero; the closed forms for whole degrees of freedom."""
    angle = math.atan2(abs(t), math.sqrt(freedom))
    term = math.cos(angle) if freedom % 2 else 1.0
    total = term if freedom > 1 or freedom % 2 == 0 else 0.0
    for power in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (power - 1) / power
        total += term
    inside = math.sin(angle) * total
    return 1 - (2 / math.pi * (angle + inside) if freedom % 2 else inside)


def quantile(freedom):
    """The t that 95% of the distribution lie within."""
    low, high = 0.0, 1000.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_p(middle, freedom) > 0.05 else (low, middle)
    return low


def mean(seeds):
    return sum(seeds.values()) / len(seeds)


def sd(seeds):
    return math.sqrt(sum((value - mean(seeds)) ** 2 for value in seeds.values()) / (len(seeds) - 1))


def interval(seeds):
    """The ends of the 95% interval (Student's t) of the mean; nothing for a single seed."""
    if len(seeds) < 2:
        return []
    half = quantile(len(seeds) - 1) * sd(seeds) / math.sqrt(len(seeds))
    return [mean(seeds) - half, mean(seeds) + half]


def p_value(seeds):
    return two_sided_p(mean(seeds) / (sd(seeds) / math.sqrt(len(seeds))), len(seeds) - 1)


def holm(*comparisons):
    """The p values of the comparisons, corrected by Holm's method, in their order."""
    order = sorted(range(len(comparisons)), key=lambda place: p_value(comparisons[place]))
    corrected, least = [0.0] * len(comparisons), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(comparisons) - rank) * p_value(comparisons[place])))
        corrected[place] = least
    return corrected


def seed(seeds, number):
    return seeds[number]


def together(*comparisons):
    """The figures of several sweeps whose seeds differ, as one."""
    return Seeds(pair for seeds in comparisons for pair in seeds.items())


def perplexity(seeds):
    return [] if isinstance(seeds, Steps) else math.exp(mean(seeds))


def bootstrap(gaps):
    """The 95% interval of the mean of items' differences, in percent."""
    picks = random.Random(1)
    means = sorted(percent(sum(picks.choices(gaps, k=len(gaps))) / len(gaps)) for _ in range(1000))
    return [means[24], means[974]]


def percent(share):
    return 100 * share


FUNCTIONS = (mean, sd, interval, p_value, holm, seed, together, perplexity, percent, min, max, abs, sum, len)

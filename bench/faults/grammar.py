"""A small language: sentences in which verbs agree with their subjects."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from faults.layer import Array
from faults.settings import Settings

LENGTH = 14
PADDING = 0
# Ranges of tokens; each word of a kind has a singular and a plural form except adjectives.
START, STOP = 1, 2
ARTICLES, ADJECTIVES, NOUNS, VERBS = 3, 5, 9, 17
COUNTS = {ARTICLES: 1, ADJECTIVES: 4, NOUNS: 4, VERBS: 4}


def _word(kind: int, plural: bool, rng: Generator) -> int:
    # Frequent words first, as in any language.
    chosen = min(int(rng.exponential(0.7)), COUNTS[kind] - 1)
    return kind + chosen + (COUNTS[kind] if plural and kind != ADJECTIVES else 0)


def sentence(rng: Generator) -> list[int]:
    """Article, adjectives, noun, verb, and perhaps an object."""
    words = [START]
    plural = bool(rng.random() < 0.5)
    for _ in range(2 if rng.random() < 0.5 else 1):
        words.append(_word(ARTICLES, plural, rng))
        while rng.random() < 0.4 and len(words) < LENGTH - 6:
            words.append(_word(ADJECTIVES, plural, rng))
        words.append(_word(NOUNS, plural, rng))
        if len(words) < LENGTH - 6:
            words.append(_word(VERBS, plural, rng))
        plural = bool(rng.random() < 0.5)
    return [*words, STOP][: LENGTH + 1]


def sentences(settings: Settings, rng: Generator, count: int) -> tuple[Array, Array]:
    """Tokens and the tokens that follow them; `filler` of all tokens become padding."""
    tokens = np.zeros((count, LENGTH + 1), np.int64)
    for row in tokens:
        text = sentence(rng)
        # A second sentence follows if there is room, so that little padding remains.
        while len(text) < LENGTH - 4:
            text += sentence(rng)
        text = text[: LENGTH + 1]
        row[: len(text)] = text
    if settings.filler:
        kept = max(2, round((LENGTH + 1) * (1 - settings.filler)))
        tokens[:, kept:] = PADDING
    return tokens[:, :-1], tokens[:, 1:]

"""What a search finds in a text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable

from views.code.caret import Place

LIMIT = 20_000  # matches that are told one by one
_ASK_EVERY = 1_000  # lines between two looks at whether the search is still wanted


class Found:
    """Matches in the order of the text, each within a line."""

    def __init__(self, matches: list[tuple[Place, Place]]) -> None:
        self.matches = matches
        self.by_line: dict[int, list[int]] = defaultdict(list)  # line from 0: places in ``matches``
        for number, (start, _) in enumerate(matches):
            self.by_line[start[0]].append(number)

    def at_or_after(self, place: Place) -> int:
        """The match that begins at ``place`` or is the next; the first behind the last. -1 where there is none."""
        if not self.matches:
            return -1
        return bisect_left(self.matches, (place, place)) % len(self.matches)


def search(text: str, needle: str, cancelled: Callable[[], bool]) -> Found:
    """Every place of ``needle``, LIMIT at most. Capitals count only where ``needle`` has some."""
    pattern = re.compile(re.escape(needle), 0 if needle != needle.lower() else re.IGNORECASE)
    matches: list[tuple[Place, Place]] = []
    for number, line in enumerate(text.split("\n") if needle else ()):
        if number % _ASK_EVERY == 0 and (cancelled() or len(matches) >= LIMIT):
            break
        matches += [((number, match.start()), (number, match.end())) for match in pattern.finditer(line)]
    return Found(matches[:LIMIT])

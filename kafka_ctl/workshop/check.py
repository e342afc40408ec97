"""Whether an answer is right, said honestly and without giving it away.

An exercise is a cell with dots to be replaced and a cell that checks. The truth is found by trying it out in the
lab, so a learner who reads the checking cell learns how to ask, not what to answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def check(answer: Any, truth: Any | Callable[[Any], bool], hint: str = "") -> None:
    """Print whether `answer` is right: equal to `truth`, or accepted by it when it is a function.

    Dots (`...`), alone or as a part of a pair or list, are no answer yet, and that is what is printed. A wrong answer
    gets the hint. Nothing is raised, so that the rest of the notebook still runs.
    """
    if _unanswered(answer):
        print("No answer yet: put yours in place of the dots, then run both cells.")
        return
    right = truth(answer) if callable(truth) else answer == truth
    if right:
        print("Right.")
    else:
        print(f"Not yet: {answer!r} is not what happens." + (f" Hint: {hint}" if hint else ""))


def _unanswered(answer: Any) -> bool:
    return answer is ... or (isinstance(answer, (tuple, list)) and any(map(_unanswered, answer)))

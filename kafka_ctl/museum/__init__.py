"""The bug museum: famous bugs of the controller, each with a story that shows it, and the same story with the fix.

    exhibit.py     what an exhibit is, what is asked of its runs, and how it is shown
    exhibits.txt   the collection, EXHIBITS
    stories/       a story for each bug, to be read, run and rendered

No bug is played: a field of `Generation` brings its cause back into the controller or the broker, and an invariant,
or a question that both runs answer, notices what comes of it.
"""

from __future__ import annotations

from kafka_ctl.museum.exhibit import EXHIBITS, Exhibit, ExhibitRun, Question, find

__all__ = ["EXHIBITS", "Exhibit", "ExhibitRun", "Question", "find"]

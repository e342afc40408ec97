"""The bug museum: famous bugs of the controller, each with a story that shows it, and the same story with the fix.

    exhibit.py     what an exhibit is, and how it is shown
    exhibits.py    the collection: EXHIBITS, of the rows of exhibits.txt
    questions.py   what is asked of both runs where no invariant is broken
    report.py      an exhibit as text
    page.py        docs/museum.md
    stories/       a story for each bug, to be read, run and rendered

No bug is played: a field of `Generation` brings its cause back into the controller or the broker, and an invariant,
or a question that both runs answer, notices what comes of it.
"""

from __future__ import annotations

from kafka_ctl.museum.exhibit import Exhibit, ExhibitRun
from kafka_ctl.museum.exhibits import EXHIBITS, find
from kafka_ctl.museum.questions import Question

__all__ = ["EXHIBITS", "Exhibit", "ExhibitRun", "Question", "find"]

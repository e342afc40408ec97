"""Exercises: what a learner answers in a notebook, judged by running the kit.

    checking.py      check an answer, ask for a hint, open what went wrong; the progress as rows of a table
    exercise.py      what an exercise is, and what is said of an answer
    predict.py       what will happen?
    implement.py     a function of one's own, plugged into a running lab, and the shortest story that shows a difference
    operate.py       a cluster in trouble: bring it back
    repair.py        a function of a museum controller: fix it
    own_controller.py  the functions of right answers together, in the stories of the museum
    progress_file.py which exercises have been solved, in a small file of the user's

Lessons belong to a course: a package of its own that registers them, such as `kafka_ctl_course`. No file holds the
right answers: each is the result of running the kit. A lesson holds mistakes that people make, and a reply to each.
"""

from __future__ import annotations

from kafka_ctl.exercises.checking import EXERCISES, check, counterexample, hint, trouble
from kafka_ctl.exercises.own_controller import my_controller
from kafka_ctl.exercises.progress_file import progress, reset

__all__ = ["EXERCISES", "check", "counterexample", "hint", "my_controller", "progress", "reset", "trouble"]

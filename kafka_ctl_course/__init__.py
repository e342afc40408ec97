"""The course: the exercises and guesses of its lessons, their figures and widgets. The notebooks are in `notebooks/`.

    lesson_NN.py        exercises of a lesson; `kafka_ctl.exercises` judges the answers
    guesses.txt         questions before a cell is run, which `guesses.py` reads
    widgets.py          controls of the notebooks
    quiet.py            the cluster that most lessons begin with, in one call, and clients that write
    figures/            single pictures, each with a text that says the same
    wheel_film.py       the timing wheel as a film
    kraft.py            each ticket of the museum: gone with ZooKeeper, or still there in KRaft
    fetch_load.py       a load of fetch requests in a purgatory
    before_the_controller.py    the brokers of 2012, which elected leaders by watches
    hand_requests.py    requests by hand that wait at a broker
    script_options.py   which script takes which option, in three releases
    stop_script.py      the pipe of `kafka-server-stop.sh`, tried on real processes

The course builds on `kafka_ctl`, which never imports it: an entry point of the group `kafka_ctl.exercises` names it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from kafka_ctl.exercises import check, counterexample, hint, my_controller, trouble
from kafka_ctl.exercises.checking import EXERCISES, GUESSES, LESSONS, register
from kafka_ctl_course.guesses import guesses
from kafka_ctl_course.quiet import quiet_lab

__all__ = [
    "EXERCISES",
    "GUESSES",
    "LESSONS",
    "check",
    "counterexample",
    "hint",
    "my_controller",
    "quiet_lab",
    "trouble",
]

for _file in sorted(Path(__file__).parent.glob("lesson_*.py")):
    _number = _file.stem.removeprefix("lesson_")
    _lesson = import_module(f"{__name__}.{_file.stem}")
    register(_number, _lesson, {**getattr(_lesson, "GUESSES", {}), **guesses(_number)})

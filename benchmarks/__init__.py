"""The costs of the kit: time to import, records a second, the controller's great tasks, time to the first picture.

python -m benchmarks                      everything; each figure is printed as it comes
python -m benchmarks importing simulator  some of it
python -m benchmarks --quick              whether everything runs, in a few minutes

The machine is rarely quiet, so each figure is the median of several runs, and where there is something to compare
with, the ratio says more than the seconds.
"""

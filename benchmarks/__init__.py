"""What the kit costs: time to import, records a second, the controller's great tasks, time to the first picture.

python -m benchmarks                      everything, as a table
python -m benchmarks importing simulator  some of it

The machine is rarely quiet, so each figure is the median of several runs, and where there is something to compare
with, the ratio says more than the seconds.
"""

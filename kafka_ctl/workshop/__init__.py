"""Exercises: what a learner answers in a notebook, and how the notebook says whether the answer is right."""

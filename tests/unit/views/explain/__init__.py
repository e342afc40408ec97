"""Explanations: why."""

"""Drills: scenarios, their outcomes, samples, the command."""

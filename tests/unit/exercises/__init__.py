"""Answers that are made harmless, and what is said of those of another shape."""

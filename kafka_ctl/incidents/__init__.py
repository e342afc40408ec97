"""Incidents for a learner on call: generated from a seed, with a cause known by construction."""

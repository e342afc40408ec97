"""Answering an incident: looks, commands, the budget, the score."""

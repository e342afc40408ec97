"""The world of a lab: its clock, and the interrupt of a command."""

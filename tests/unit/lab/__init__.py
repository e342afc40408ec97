"""The lab: its calls, faults, an outage, producing, racks, the words of a story, threads."""

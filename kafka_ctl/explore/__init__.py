"""Looking for what breaks: random walks of commands and faults, and every order of what is under way.

walk.py         a random walk, drawn from a seed
play.py         plays a walk and says what it broke, or only kept busy
search.py       walks of many seeds on all cores, the shortest that break the same, and what was found as text
exhaustive.py   every order of the pending events of a small cluster, up to a depth
"""

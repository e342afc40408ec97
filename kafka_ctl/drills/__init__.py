"""Drills: failures, restarts and plans, each played in a copy of a cluster, and what becomes of it.

scenario   the questions that can be asked, the commands that each stands for, one of them played and measured
drill      all of them, here, in processes or in Spark's tasks; the ranked table, and its picture
"""

"""Drills: failures, restarts and plans, each played in a copy of a cluster, and what becomes of it.

scenario   the questions that can be asked, and the commands that each stands for
outcome    one scenario played and measured
drill      all of them, here, in processes or in Spark's tasks; the ranked table
plot       the table as a picture
"""

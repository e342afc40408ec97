"""Live: the questions that make sense while a cluster runs, answered by Spark's Structured Streaming.

traces, logs        where records come from: a folder that a lab grows, or a broker's folder of logs   sources
grow                write what a lab's trace has gained, as one more file of such a folder              sources
leaders, under_replicated, imbalance, controllers
                    the questions: streams of changes, each row true until the next one                 changes
keep, latest        write an answer down exactly once; what holds now                                   changes

changes = live.leaders(live.traces(spark(), "lab"))
query = live.keep(changes, "answers/leaders")       # goes on where it stopped, also after a crash
query.processAllAvailable()
live.latest(spark().read.parquet("answers/leaders")).show()
"""

from kafka_ctl.history.live.changes import controllers, imbalance, keep, latest, leaders, under_replicated
from kafka_ctl.history.live.sources import grow, logs, traces

__all__ = ["controllers", "grow", "imbalance", "keep", "latest", "leaders", "logs", "traces", "under_replicated"]

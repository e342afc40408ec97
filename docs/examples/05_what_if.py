"""Time travel: the same run again, up to the moment before a broker died, and on with another decision."""

from kafka_ctl import Lab

lab = Lab(brokers=3, seed=1)
lab.create_topic("orders", assignment={0: [1, 2], 1: [2, 1]})
lab.settle()
before = len(lab.trace) - 1
lab.kill(1)
lab.settle()

other = lab.fork(at=before)
other.shutdown(1)
other.settle()

for name, run in (("kill", lab), ("shutdown", other)):
    for p in run.partitions():
        print(f"{name:<9} {p.topic}-{p.partition}  leader {p.leader}  ISR {p.isr}  leader epoch {p.leader_epoch}")
print(other.story)

"""The controller dies: another broker is elected, and the partitions that it led get new leaders.
README.md shows this program and its output. `lab.export("failover.svg")` draws the run as an animated
picture, `lab.player()` shows it in a notebook.
"""

from kafka_ctl import Lab

lab = Lab(brokers=3, generation="2.4", seed=7)
lab.create_topic("orders", partitions=3, replication_factor=2)
lab.settle()
print(lab.controller, [p.leader for p in lab.partitions()])

lab.kill(lab.controller.id)  # the process ends; ZooKeeper notices when the session times out
lab.settle()
print(lab.controller, [p.leader for p in lab.partitions()])
print(f"{lab.now:.1f} s, {len(lab.trace)} records, violations: {lab.violations}")

"""A partition moves from brokers 1 and 2 to brokers 3 and 4: its assignment, ISR and leader at each change."""

from kafka_ctl import Lab

lab = Lab(brokers=4, generation="2.4")
lab.create_topic("orders", assignment={0: [1, 2]})
lab.settle()
lab.reassign({("orders", 0): [3, 4]})

shown = None
while True:
    p = lab.partition("orders", 0)
    state = f"AR {p.replicas} adding {p.adding} removing {p.removing} ISR {p.isr} leader {p.leader}"
    if state != shown:
        print(f"{lab.now:6.3f} s  {state}")
        shown = state
    before = len(lab.trace)
    lab.step()
    if len(lab.trace) == before:  # nothing is under way any more
        break

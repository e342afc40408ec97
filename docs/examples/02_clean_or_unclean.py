"""Both replicas die, the leader last: a clean election waits for the leader, an unclean one loses its records."""

from kafka_ctl import Lab

for unclean in (False, True):
    with Lab(brokers=3, config={"unclean.leader.election.enable": unclean}) as lab:
        lab.create_topic("orders", assignment={0: [1, 2]})
        lab.settle()
        lab.kill(2)
        lab.settle()
        answer = lab.produce("orders", 0, records=3, acks=1)  # only broker 1 has them
        lab.kill(1)
        lab.settle()
        lab.start(2)  # the replica that is out of sync comes back first
        lab.settle()
        partition = lab.partition("orders", 0)
        print(f"unclean={unclean}: leader {partition.leader}, ISR {partition.isr}, {partition.state}")
        lab.start(1)
        lab.settle()
        print(f"  afterwards: leader {lab.partition('orders', 0).leader},", *lab.logs())

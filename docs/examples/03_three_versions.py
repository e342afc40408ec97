"""One controlled shutdown in three versions of Kafka: what handing over 100 leaderships costs."""

from kafka_ctl import Lab

print("version  seconds  ZooKeeper operations  requests of the controller")
for generation in ("0.10", "2.0", "2.4"):
    with Lab(brokers=3, generation=generation) as lab:
        leaving = 3 if lab.controller.id != 3 else 2
        lab.create_topic("orders", assignment={n: [leaving, 1] for n in range(100)})
        lab.settle()

        start, began = len(lab.trace), lab.now
        report = lab.shutdown(leaving)
        work = lab.trace[start:]
        assert not report.remaining

        operations = len(work.slice(kind="zk", actor=f"broker-{lab.controller.id}"))
        requests = len(work.slice(kind="request", target="sent"))
        print(f"{generation:<7} {lab.now - began:>8.3f} {operations:>21} {requests:>27}")

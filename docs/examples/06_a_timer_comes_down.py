"""Three timers in a timing wheel: where each lies, and how the last comes down from ring to ring until it runs."""

from kafka_ctl import TimingWheel

wheel = TimingWheel(tick=1, n=20)  # Kafka's: rings of 20, 400 and 8,000 ms
for delay in (8, 350, 450):
    print(wheel.add(delay))

ran = []
while wheel.queue():
    bucket = wheel.queue()[0]  # nothing happens before the next bucket expires
    ran = wheel.advance(bucket.expires)
    runs = ", ".join(str(task.expiration) for task in ran) or "nothing"
    print(f"{wheel.now:>4} ms  bucket {bucket.bucket} of level {bucket.level} expires, {runs} runs")

print("the places of the last one:", [tuple(where) for where in ran[0].places])
print(f"{wheel.polled} buckets were polled in {wheel.now} ms")

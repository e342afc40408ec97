"""A replica's log by itself: what two logs have in common, judged by leader epochs alone."""

import random

from tables import tabled

from kafka_ctl.brokers.log import Entry, Log


def log(epochs: str) -> Log:
    """A log whose records have these leader epochs."""
    return Log(Entry(int(epoch), offset) for offset, epoch in enumerate(epochs))


@tabled
def test_where_an_epoch_ends(epochs: str, epoch: int, answer: tuple[int, int]) -> None:
    """Asked for an epoch without records, a leader names the last one before it that has some."""
    assert log(epochs).end_of(epoch) == answer


@tabled
def test_what_two_logs_have_in_common(follower: str, leader: str, common: int) -> None:
    assert log(follower).common_end(log(leader).end_of) == common


def test_no_common_record_is_dropped_and_no_other_kept() -> None:
    """Any two logs that grew as logs do: a common beginning, then epochs that are not shared."""
    rng = random.Random(1)
    for _ in range(500):
        epochs = sorted(rng.choices(range(9), k=rng.randrange(12)))
        cut = rng.randrange(len(epochs) + 1)
        shared = [Entry(epoch, offset) for offset, epoch in enumerate(epochs[:cut])]
        newest = shared[-1].leader_epoch if shared else 0
        one, other = Log(shared), Log(shared)
        for side, since in ((one, newest + 1), (other, newest + 4)):
            own = sorted(rng.choices(range(since, since + 3), k=rng.randrange(5)))
            side.entries += [Entry(epoch, 100 * since + n) for n, epoch in enumerate(own)]
        assert one.common_end(other.end_of) == other.common_end(one.end_of) == cut


def test_truncation_takes_the_high_watermark_along() -> None:
    cut = Log([Entry(0, 1), Entry(0, 2), Entry(1, 3)], high_watermark=3)
    assert cut.truncate(1) == [Entry(0, 2), Entry(1, 3)]
    assert (cut.end, cut.high_watermark) == (1, 1)
    assert cut.truncate(5) == []

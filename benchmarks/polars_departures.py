"""Questions about brokers that leave and controllers that follow, as a user of polars would write them."""

from __future__ import annotations

from typing import Any

import polars as pl
from polars import col, when
from polars import lit as value

BY, AT = ["history", "topic", "partition"], ["history", "seq", "time_ms"]
"""The columns of a partition, and of a moment."""
NEVER = "NonExistentPartition"
LEAVING = "kill bounce expire_session pause controlled-shutdown lost registered elected brokers_changed".split()
"""Acts of brokers, or commands to them, when they leave or come back."""


def before(expression: pl.Expr, by: list[str]) -> pl.Expr:
    """The last value that was known before, in the order of the rows."""
    return expression.forward_fill().shift(1).over(by)


class Departures:
    """One method for each question, with the columns that it documents."""

    def __init__(self, path: str, legal: list[tuple]) -> None:
        self.records = pl.scan_parquet(f"{path}/kind=*/section=*/*.parquet", hive_partitioning=True)
        names = ["machine", "source", "target", "action"]
        self.legal = pl.LazyFrame(legal, schema=dict.fromkeys(names, pl.String), orient="row")

    def moves(self) -> pl.LazyFrame:
        return self.records.filter(col("kind") == "partition", col("action") != "set", col("error").is_null()).sort(
            *BY, "seq"
        )

    def controller(self) -> pl.LazyFrame:
        return self.records.filter(col("kind") == "controller", col("section") == "main")

    def _tries(self) -> pl.LazyFrame:
        """Possible departures, or requests to leave, and the controller at that time."""

        def cause(kind: str, action: str) -> Any:
            return when(col("kind") == kind, col("action") == action)

        came = col("action") == "brokers_changed"
        new = pl.Struct({"new": pl.List(pl.Int32)})
        reported = self.records.filter(
            col("section") == "main",
            (col("kind").is_in(["controller", "fault", "broker"]) & col("action").is_in(LEAVING))
            | ((col("kind") == "event") & (col("actor") == "admin") & (col("action") == "shutdown")),
        )
        return (
            reported.select(
                *AT,
                "detail",
                "error",
                broker=when(came)
                .then(when(came).then("detail").str.json_decode(new).struct.field("new"))
                .otherwise(pl.concat_list(col("broker").cast(pl.Int32))),
                asks=col("kind") == "event",
                cause=pl.coalesce(
                    cause("fault", "kill").then(value("broker crash")),
                    cause("fault", "bounce").then(value("quick restart")),
                    cause("fault", "expire_session").then(value("session expiry")),
                    cause("fault", "pause").then(value("pause")),
                    cause("broker", "controlled-shutdown").then(value("controlled shutdown")),
                    cause("broker", "lost").then(value("broker loss")),
                ),
                elected=cause("controller", "elected").then("broker"),
            )
            .explode("broker")
            .filter(col("broker").is_not_null())
            .sort("history", "seq")
            .with_columns(
                controller=col("elected").forward_fill().over("history"),
                returns=(col("cause").is_null() & ~col("asks")).cast(int).cum_sum().over("history", "broker"),
            )
            .filter(col("cause").is_not_null() | col("asks"))
        )

    def departures(self) -> pl.LazyFrame:
        its, tries = ["history", "broker"], self._tries()
        soon = (col("returns").shift(-1).over(its) == col("returns")) & (
            col("time_ms").shift(-1).over(its) - col("time_ms") <= 300_000
        )
        again = (col("cause").shift(-1).over(its) == col("cause")).fill_null(False) & pl.coalesce(
            ~col("detail").shift(-1).over(its).str.starts_with("attempt=1 "), soon
        )
        noticed = (col("cause").shift(1).over(its) == "controlled shutdown").fill_null(False) & (
            col("returns").shift(1).over(its) == col("returns")
        )
        leaves = ~col("asks") & ~(
            ((col("cause") == "controlled shutdown") & again) | ((col("cause") == "broker loss") & noticed)
        )
        orderly = (col("cause") == "controlled shutdown").fill_null(False)

        def first(name: str) -> pl.Expr:
            asked = when("asks").then(name).max().over(*its, "run")
            return (
                when(orderly).then(pl.coalesce(asked, when(orderly).then(name).min().over(*its, "run"))).otherwise(name)
            )

        return (
            tries.with_columns(leaves=leaves.fill_null(False))
            .with_columns(left=(col("leaves") & orderly).cast(int))
            .with_columns(run=col("left").cum_sum().over(its) - col("left"))
            .with_columns(began_seq=first("seq"), began_ms=first("time_ms"))
            .filter("leaves")
            .select(
                "history",
                "broker",
                when(col("cause") == "broker crash", col("broker") == col("controller"))
                .then(value("controller crash"))
                .otherwise("cause")
                .alias("cause"),
                col("seq").alias("cause_seq"),
                col("time_ms").alias("at_ms"),
                "began_seq",
                "began_ms",
                attempts=col("detail").str.extract("attempt=([0-9]+)").cast(pl.Int32),
                remaining=when(col("error").is_null() & col("detail").str.ends_with("remaining="))
                .then(0)
                .when(col("error").is_null() & col("detail").str.contains("remaining=", literal=True))
                .then(col("detail").str.count_matches(",", literal=True) + 1),
            )
        )

    def unavailability(self) -> pl.LazyFrame:
        states = ["NewPartition", "OfflinePartition"]
        refused = col("error").is_not_null()
        known = (
            self.records.filter(col("kind") == "partition", col("action") != "set")
            .filter(~refused | col("source").is_in(states))
            .sort(*BY, "seq")
            .select(
                *BY,
                "seq",
                "time_ms",
                "source",
                "target",
                "controller_epoch",
                leader=when(col("leader") != -1).then("leader"),
                down=refused | col("target").is_in(states) | (col("leader") == -1).fill_null(False),
                from_down=col("source").is_in(states).fill_null(False),
                refused=refused,
                new=((col("source") == "NewPartition") | (col("target") == "NewPartition")).fill_null(False),
            )
            .with_columns(
                was_down=col("down").shift(1, fill_value=False).over(BY),
                going=(col("source") == "OnlinePartition")
                & (col("target").shift(-1).over(BY) == NEVER).fill_null(False),
                refusals=col("refused").cum_sum().over(BY),
                all_refusals=col("refused").sum().over(BY),
                led=before(col("leader"), BY),
                led_ms=before(when(col("leader").is_not_null()).then("time_ms"), BY),
            )
            .filter((col("down") != col("was_down")) | (~col("down") & col("from_down")))
            .with_columns(
                unseen=~col("down") & ~col("was_down"),
                next_ms=col("time_ms").shift(-1).over(BY),
                next_target=col("target").shift(-1).over(BY),
                election_refused=pl.coalesce(col("refusals").shift(-1).over(BY), "all_refusals")
                > col("refusals") - col("refused").cast(pl.Int64),
            )
            .filter(col("down") | col("unseen"), ~col("going"))
        )
        epochs = self.controller().group_by("history", "controller_epoch").agg(epoch_ms=col("time_ms").min())
        intervals = known.join(epochs, on=["history", "controller_epoch"], how="left").select(
            *BY,
            "seq",
            "new",
            "led_ms",
            "unseen",
            leader=when(~col("new")).then("led"),
            start_ms=when("unseen").then(pl.coalesce("epoch_ms", "time_ms")).otherwise("time_ms"),
            end_ms=when("unseen").then("time_ms").otherwise("next_ms"),
            restored=when("unseen").then("target").otherwise("next_target") == "OnlinePartition",
            election_refused=~col("unseen") & col("election_refused"),
        )
        blamed = intervals.sort("seq").join_asof(
            self.departures().sort("cause_seq"),
            left_on="seq",
            right_on="cause_seq",
            coalesce=False,
            by_left=["history", "leader"],
            by_right=["history", "broker"],
            check_sortedness=False,
        )
        begun = when("unseen").then(pl.max_horizontal("start_ms", "at_ms")).otherwise("start_ms")
        lost = pl.min_horizontal("start_ms", pl.max_horizontal("at_ms", "led_ms"))
        return (
            blamed.with_columns(start_ms=begun)
            .with_columns(lost_ms=when(col("cause").is_null()).then("start_ms").otherwise(lost))
            .select(
                *BY,
                "start_ms",
                "end_ms",
                (col("end_ms") - col("start_ms")).round(4).alias("duration_ms"),
                "restored",
                "election_refused",
                "leader",
                when("new").then(value("topic creation")).otherwise("cause").alias("cause"),
                "cause_seq",
                "lost_ms",
                (col("end_ms") - col("lost_ms")).round(4).alias("outage_ms"),
            )
        )

    def shutdown_vs_failure(self) -> pl.LazyFrame:
        leads = when(col("target") == "OnlinePartition", col("leader") != -1).then("leader")
        changes = self.moves().select(*BY, "seq", leader=leads).with_columns(old=col("leader").shift(1).over(BY))
        won = pl.concat(
            changes.select("history", "seq", value(n).alias("won"), broker=col(name))
            for name, n in (("leader", 1), ("old", -1))
        ).filter(col("broker").is_not_null())
        led = won.sort("seq").select("history", "broker", "seq", led=col("won").cum_sum().over("history", "broker"))
        known = self.unavailability().filter(col("cause_seq").is_not_null())
        hurt = known.group_by("history", "cause_seq").agg(
            leaderless=pl.len(),
            unfinished=col("end_ms").null_count(),
            longest_ms=col("outage_ms").max(),
            outage_ms=col("outage_ms").sum(),
        )
        counted = (
            self.departures()
            .sort("began_seq")
            .join_asof(led, left_on="began_seq", right_on="seq", by=["history", "broker"], check_sortedness=False)
        )
        return counted.join(hurt, on=["history", "cause_seq"], how="left").select(
            "history",
            "broker",
            "cause",
            "cause_seq",
            "began_ms",
            "at_ms",
            (col("at_ms") - col("began_ms")).round(4).alias("duration_ms"),
            "attempts",
            "remaining",
            col("led", "leaderless", "unfinished").fill_null(0),
            col("longest_ms", "outage_ms").fill_null(0).round(4),
        )

    def rolling_restarts(self) -> pl.LazyFrame:
        gap = col("began_ms") - col("at_ms").shift(1).over("history")
        return (
            self.shutdown_vs_failure()
            .filter(col("cause") == "controlled shutdown")
            .sort("history", "cause_seq")
            .with_columns(first=(gap > 900_000).fill_null(False))
            .with_columns(session=col("first").cum_sum().over("history"))
            .group_by("history", "session", maintain_order=True)
            .agg(
                start_ms=col("began_ms").min(),
                end_ms=col("at_ms").max(),
                duration_ms=(col("at_ms").max() - col("began_ms").min()).round(4),
                brokers=col("broker"),
                moved=col("led").sum(),
                remaining=col("remaining").sum(),
                leaderless=col("leaderless").sum(),
                outage_ms=col("outage_ms").sum().round(4),
            )
            .filter(col("brokers").list.n_unique() > 1)
            .drop("session")
        )

    def _offices(self) -> pl.LazyFrame:
        """The terms of controllers, with the times of their stages."""
        elected, raised, begins = col("action") == "elected", col("action") == "epoch_incremented", col("begins")
        stages = {
            "context_ms": "initializing_context",
            "replicas_ms": "initializing_replica_state",
            "partitions_ms": "initializing_partition_state",
            "ready_ms": "ready",
            "resigned_ms": "resigned",
        }
        whose, announced = ["history", "actor"], col("detail").str.extract('"epoch": ([0-9]+)').cast(pl.Int32)
        own = col("controller_epoch")
        epochs = (
            announced.filter(begins),
            own.filter(raised),
            own.filter(col("action") == "ready"),
            own.filter(begins),
        )
        return (
            self.controller()
            .filter(elected | raised | col("action").is_in([*stages.values()]))
            .sort("history", "seq")
            .with_columns(begins=elected | (raised & (col("action").shift(1).over(whose) != "elected").fill_null(True)))
            .with_columns(term=begins.cum_sum().over(whose))
            .filter(col("term") > 0)
            .group_by(*whose, "term")
            .agg(
                col("seq").min(),
                col("broker").filter(begins).max().alias("controller"),
                pl.coalesce(each.min().replace(0, None) for each in epochs).alias("epoch"),
                col("time_ms").filter(begins).min().alias("elected_ms"),
                *(col("time_ms").filter(col("action") == action).min().alias(name) for name, action in stages.items()),
                resigned_seq=col("seq").filter(col("action") == "resigned").min(),
            )
            .sort("history", "seq")
            .with_columns(
                before=col("controller").shift(1).over("history"),
                follows=(col("epoch") == col("epoch").shift(1).over("history") + 1).fill_null(True),
                since=col("seq").shift(1).over("history"),
            )
            .with_columns(previous=when("follows").then("before"))
            .sort("seq")
        )

    def _sizes(self) -> pl.LazyFrame:
        """The number of partitions after each record that changed it."""
        there = (col("target") != NEVER).cast(int)
        return (
            self.moves()
            .select("history", "seq", n=there - there.shift(1).over(BY).fill_null(0))
            .filter(col("n") != 0)
            .sort("seq")
            .select("history", "seq", partitions=col("n").cum_sum().over("history"))
        )

    def failover_time(self) -> pl.LazyFrame:
        offices = self._offices()
        left = (
            self.departures()
            .sort("cause_seq")
            .join_asof(
                offices.select("history", "seq", "controller"),
                left_on="cause_seq",
                right_on="seq",
                by="history",
                check_sortedness=False,
            )
            .filter(col("broker") == col("controller"))
            .select("history", seq="cause_seq", vacant_seq="cause_seq", vacant_ms="at_ms")
        )
        resigned = offices.filter(col("resigned_seq").is_not_null()).select(
            "history", seq="resigned_seq", vacant_seq="resigned_seq", vacant_ms="resigned_ms"
        )
        vacant, now = pl.concat([left, resigned]).sort("seq"), (col("vacant_seq") > col("since")) & col("follows")
        found = (
            offices.join_asof(self._sizes(), on="seq", by="history", check_sortedness=False)
            .join_asof(vacant, on="seq", by="history", check_sortedness=False)
            .with_columns(col("partitions").fill_null(0), vacant_ms=when(now).then("vacant_ms"))
        )

        def span(name: str, first: str, last: str) -> pl.Expr:
            return (col(last) - col(first)).round(4).alias(name)

        return found.select(
            "history", "controller", "epoch", "previous", "partitions", "vacant_ms", "elected_ms", "ready_ms",
            span("detection_ms", "vacant_ms", "elected_ms"), span("taking_over_ms", "elected_ms", "context_ms"),
            span("reading_ms", "context_ms", "replicas_ms"), span("replica_ms", "replicas_ms", "partitions_ms"),
            span("partition_ms", "partitions_ms", "ready_ms"), span("failover_ms", "elected_ms", "ready_ms"),
        )  # fmt: skip

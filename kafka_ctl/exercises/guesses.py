"""Questions to be answered before a cell is run: options, and what to say to who chose one.

Nothing is judged by a run here: the next cells are the run. So these are also what a test compares with it.
"""

from __future__ import annotations

from typing import NamedTuple


class Guess(NamedTuple):
    """A question; `options` with what is said to each; the right one is number `right`."""

    question: str
    options: tuple[tuple[str, str], ...]
    right: int

    @property
    def text(self) -> str:
        """The question and its options, without what is said to them."""
        return "\n".join([self.question, *(f"  ( ) {option}" for option, _ in self.options)])


GUESSES: dict[str, Guess] = {
    "01.a": Guess(
        "Three equal brokers start at the same moment. Which one will be the controller?",
        (
            ("broker 1: it has the lowest id", "Ids look like ranks. Nobody compares them here."),
            ("broker 1: it is started first", "All are started at 0.0 ms. What has to come first is a request."),
            ("the one whose request ZooKeeper applies first", "So it cannot be known from the configuration."),
            ("the one that the others vote for", "No broker speaks to another one before there is a controller."),
        ),
        2,
    ),
    "01.b": Guess(
        "The controller was killed and another one elected. The first broker is started again. Who is the controller?",
        (
            ("the first broker again", "Preferred leaders do come back. There is no preferred controller."),
            ("the second one, as before", "The znode is there, so nobody competes."),
            ("there is a new election", "Nothing was deleted. What would the brokers compete for?"),
        ),
        1,
    ),
    "01.c": Guess(
        "The controller stands still for 3 s, as by a garbage collection. The session timeout is 6 s. What happens?",
        (
            ("another broker is elected", "It does not answer. But who waits for an answer, and for how long?"),
            ("nothing", "ZooKeeper heard from it in time, before and after."),
            ("there are two controllers", "For that a second one must be elected. By what?"),
        ),
        1,
    ),
    "01.d": Guess(
        "Broker 2 is the controller. Somebody writes 3 into /controller, then creates a topic. Who gives it leaders?",
        (
            ("broker 3", "It is named now. Has it been elected?"),
            ("broker 2, as before", "It reads the znode when it changes, and finds that it is not named any more."),
            ("nobody", "One has resigned, and no one was elected."),
            ("nobody: the tool reports an error", "The tool writes into ZooKeeper, and that works."),
        ),
        2,
    ),
    "02.a": Guess(
        "A topic with 100 partitions and 3 replicas each, on 3 brokers. How many requests are sent?",
        (
            ("300", "One for each replica. But a request has room for many partitions."),
            ("600", "Two for each replica. But a request has room for many partitions."),
            ("6", "Two for each broker. The requests get larger, not more."),
            ("1", "Each broker has a connection of its own, and there are two kinds of request."),
        ),
        2,
    ),
    "02.b": Guess(
        "The connection to broker 3 is slow by 5 s. When does broker 2 learn that it leads?",
        (
            ("after 5 s, with broker 3", "A batch looks like one call. It is a request for each broker."),
            ("at once", "Each broker has a queue and a connection of its own."),
            (
                "when broker 3 has answered",
                "The controller waits for the answer of one broker only before it asks it again.",
            ),
        ),
        1,
    ),
    "02.c": Guess(
        "What takes longer on broker 3: to follow the new leader, or to name the new leader to clients?",
        (
            ("to follow the new leader", "Which of the two requests is sent first?"),
            ("to name the new leader to clients", "One request is on its way at a time. Run on and measure."),
            ("both take the same time", "Both requests were put into the queue at the same moment. Were both sent?"),
        ),
        1,
    ),
    "02.d": Guess(
        "Somebody changes the leader in the `state` znode by hand. Who notices?",
        (
            ("the controller", "It reads this znode when it takes over, and when it writes it."),
            ("the leader", "A leader reads no leadership from ZooKeeper; requests bring it."),
            ("all brokers", "Brokers read no leadership from ZooKeeper; requests bring it."),
            ("nobody", "ZooKeeper has watches, but nobody has set one here."),
        ),
        3,
    ),
    "03.a": Guess(
        "Three replicas; the broker of a follower dies. What does the partition do?",
        (
            ("It goes Offline, then Online again", "Something is down, but not what the state is about."),
            ("It does not move", "The state says whether there is a leader, and there is."),
            ("It goes Offline until the follower is back", "Then every restart of a broker would stop its partitions."),
        ),
        1,
    ),
    "03.b": Guess(
        "A topic is created whose only broker is down. Its partition is ...",
        (
            ("Offline", "Offline sounds like: no leader. But it means: no leader any more."),
            ("New", "Its replicas are known, and it never had a leader."),
            ("NonExistent", "The controller has read the topic: it knows the partition."),
            ("not there: the tool refuses", "The tool writes into ZooKeeper and asks no broker."),
        ),
        1,
    ),
    "03.c": Guess(
        "The controller dies; the leader of orders-0 lives. Until there is a new controller, orders-0 is ...",
        (
            ("Online", "Clients see it so. But whose memory holds the state?"),
            ("Offline", "Its leader lives and serves clients all the time."),
            ("none: nobody knows", "States are in the controller's memory, and that is gone."),
        ),
        2,
    ),
    "04.a": Guess(
        "A topic with one partition and three replicas. A follower's broker dies. How many moves are there?",
        (
            ("1 of the partition, 1 of a replica", "The partition keeps its leader: why should it move?"),
            ("0 of the partition, 1 of a replica", "The two machines move for reasons of their own."),
            ("1 of the partition, 3 of replicas", "Two of the replicas are on brokers that live."),
            ("0 of the partition, 3 of replicas", "Two of the replicas are on brokers that live."),
        ),
        1,
    ),
    "04.b": Guess(
        "Broker 3 is dead. What does the controller ask it to do?",
        (
            ("nothing, it is dead", "So you would write it. This machine has one rule for all reasons to go Offline."),
            ("to stop its replica", "A request that can never leave: it is put into the batch all the same."),
            ("to follow the new leader", "LeaderAndIsr goes to the replicas that are left."),
        ),
        1,
    ),
    "04.c": Guess(
        "Two of three replicas are deleted, the third is on a dead broker. A new controller comes. The two are ...",
        (
            ("ReplicaDeletionSuccessful", "State sounds stored. In whose memory was it?"),
            ("gone", "Nobody forgets a replica before all of its topic are deleted."),
            ("Online", "A new controller only sees live brokers that are in the assignment."),
        ),
        2,
    ),
    "05.a": Guess(
        "The assignment is 1, 2, 3; the ISR is 1, 3, 2; broker 1 dies. Who leads?",
        (
            ("3, the next in the ISR", "Many pages say so, even a comment in Kafka's source. Run on and look."),
            ("2", "You looked at the assignment. Run on."),
            ("the one with most records", "Nobody compares logs in this election; who is in the ISR has them all."),
            ("nobody until broker 1 returns", "Two replicas are in sync and alive. Run on."),
        ),
        1,
    ),
    "05.b": Guess(
        "Unclean election is on. Six records were acknowledged, 5 and 6 with acks=all. How many are left?",
        (
            ("6", "Acknowledged sounds safe. But acks=all means all in the ISR, and that was one broker."),
            ("5", "Which one would be missing? Broker 2 stopped fetching before record 4."),
            ("4", "Broker 2 stopped fetching before record 4 was written."),
            ("3", "That is what broker 2 had when it stopped fetching."),
        ),
        3,
    ),
    "05.c": Guess(
        "Broker 1, which has all six records, returns. What does it do?",
        (
            ("It leads again", "There is a leader already, with a newer epoch; the preferred replica has to ask."),
            ("Both logs are merged", "A log has one order; offset 3 cannot be two records."),
            ("It throws records away and follows", "A follower's log has to be its leader's log."),
            ("It refuses to start", "Nothing is wrong with its disk."),
        ),
        2,
    ),
    "06.a": Guess(
        "A follower dies; it is not the controller. Who writes the new ISR?",
        (
            ("the leader", "Many books say that the leader keeps the ISR. But who is notified of the death?"),
            ("the controller", "It watches the znodes of the brokers. Run on."),
            ("the next follower", "A follower writes nothing into ZooKeeper."),
            ("ZooKeeper", "ZooKeeper removes the broker's own znode; it knows nothing of an ISR."),
        ),
        1,
    ),
    "06.b": Guess(
        "The follower that dies is the controller as well, in Kafka 2.0. Who takes it out of the ISR, and when?",
        (
            ("the new controller, after 6 s", "There is a new controller after 6 s. Does it see a difference?"),
            ("the leader, after 15 s", "The new controller has never seen this broker alive."),
            ("nobody", "Then acks=all would wait for ever."),
        ),
        1,
    ),
    "06.c": Guess(
        "Of these two writes, which raised the leader epoch?",
        (
            ("both", "The ISR became smaller in both. Who wrote it?"),
            ("only the controller's", "The leader stays leader when it writes; only the version of the znode rises."),
            ("neither", "Compare the two znodes above."),
        ),
        1,
    ),
    "06.d": Guess(
        "Two copies. Broker 2 has been restarted. When may broker 1 be stopped without risk?",
        (
            ("at once", "The process runs. Has it fetched anything yet?"),
            ("after the session timeout", "A session says that a broker lives, not what its log has."),
            ("when broker 2 is in the ISR", "Only a member of the ISR may lead."),
            ("when the metadata has arrived", "Metadata may be older than the ISR."),
        ),
        2,
    ),
    "06.e": Guess(
        "A follower has been cut off from its leader for two hours. Nothing was written. Kafka 2.4: is it in the ISR?",
        (
            ("no", "It has not fetched for two hours. But what is it missing?"),
            ("yes", "Its log is as long as the leader's: nothing is missing."),
            ("it depends on the timeout", "Which timeout? 2.4 asks for something else first."),
        ),
        1,
    ),
    "07.a": Guess(
        "controlled.shutdown.enable=false, and the process gets SIGTERM. For how long is there no leader?",
        (
            ("about 6 s", "Uncontrolled sounds like a crash. But this process still closes its session."),
            ("1.4 ms", "It asks nobody, and yet it does not simply vanish. Run on."),
            ("not at all", "Who would have moved the leaders before the end?"),
            ("15 s", "That would be three attempts; here there are none."),
        ),
        1,
    ),
    "07.b": Guess(
        "A controlled shutdown ends at the first attempt: remaining=(). Which partitions may be without a leader now?",
        (
            ("none", "The answer names what the controller tried to move. Did it try all?"),
            ("those with one replica", "They cannot move, so nobody waits for them."),
            ("those whose followers are out of sync", "These are named as remaining."),
        ),
        1,
    ),
    "07.c": Guess(
        "Kafka 0.10, 300 partitions on 3 brokers. Which way to stop one has the shortest time without a leader?",
        (
            ("kill", "Nobody hears of it before the session ends, whatever the version."),
            ("SIGTERM without controlled shutdown", "One failure is handled in one go. Run on."),
            ("controlled shutdown", "So it is with 6 partitions. Count the requests."),
        ),
        1,
    ),
    "08.a": Guess(
        "The controller's process stands still for ten seconds, longer than its session. What happens?",
        (
            (
                "Nothing: it is only slow",
                "ZooKeeper cannot tell slow from dead; it counts the time since the last ping.",
            ),
            ("There are two controllers for a while", "One by its own memory, one by `/controller`."),
            ("Brokers stop until it is back", "They wait for nobody: whoever holds a lead goes on."),
        ),
        1,
    ),
    "08.b": Guess(
        "A request of the controller that was replaced arrives late. What does the broker do?",
        (
            ("It obeys: that controller was elected", "It was. The broker has heard of another one since."),
            ("It asks ZooKeeper who is right", "Brokers do not ask ZooKeeper before they obey."),
            ("It refuses: the epoch is old", "A number in the request is all it needs."),
        ),
        2,
    ),
    "08.c": Guess(
        "Three failovers; then somebody deletes the znode /controller_epoch, and /controller. Who is obeyed?",
        (
            ("the new controller, as ever", "It is elected and healthy. Which epoch does it have?"),
            ("nobody", "The brokers remember a number that ZooKeeper has forgotten."),
            ("the old controller", "It has resigned when /controller went."),
        ),
        1,
    ),
    "17.a": Guess(
        "A broker logs: Invalid receive (size = 1195725856 larger than 104857600). What has it received?",
        (
            ("a message of 1.2 GB", "Then raising the limit would help. Write the number as four bytes first."),
            ("a damaged file", "These four bytes are the same in many people's logs."),
            ("the letters GET and a space", "A browser asked a broker for a page."),
            ("a request of another version", "The version comes later; the length comes first."),
        ),
        2,
    ),
    "17.b": Guess(
        "LeaderAndIsr version 4 has every field of version 3. Which has more bytes for the same partition?",
        (
            ("version 4: versions only add", "They do add. But how is a length written?"),
            ("version 3", "Version 4 writes lengths in one byte where they are small."),
            ("both have the same", "Count the bytes of the lengths of arrays and texts."),
        ),
        1,
    ),
    "17.c": Guess(
        "The only server in bootstrap.servers is stopped while a producer writes. What happens to its records?",
        (
            ("they wait until it is back", "That would be so if it passed them on. Does it?"),
            ("they are written", "The producer has asked it once, and knows the leaders since."),
            ("the producer ends with an error", "It does, if it is started after the server has gone."),
        ),
        1,
    ),
    "17.d": Guess(
        "Brokers 1, 2, 3; a broker without an id got 1001; one was configured as 7. Two more come without ids. Theirs?",
        (
            ("1002 and 1003", "ZooKeeper counts what it has given out; 7 was not given out by it."),
            ("8 and 9", "Nobody looks for the highest id."),
            ("4 and 5", "Nobody looks for gaps."),
            ("1001 again, then 1002", "The counter does not know who is alive."),
        ),
        0,
    ),
    "17.e": Guess(
        "A broker's disks are moved to a machine whose configuration has another broker.id. Which id wins?",
        (
            ("the configuration's", "Then the replicas on the disks would belong to a broker that does not exist."),
            ("the disks'", "So it is where the configuration says nothing."),
            ("none: the broker does not start", "Two sources disagree, so it stops and says which."),
        ),
        2,
    ),
    "21.a": Guess(
        "KRaft with its defaults: a broker is killed. After how long do its partitions have leaders again?",
        (
            ("about 1 s", "That is the election of a controller. Here a broker has died."),
            ("about 9 s", "The session timeout of brokers: nobody knows earlier that it is dead."),
            ("at once", "Somebody has to notice it. By what?"),
            ("about 18 s", "So it is with ZooKeeper since 2.5."),
        ),
        1,
    ),
    "21.b": Guess(
        "The museum has 26 bugs. How many cannot happen with KRaft, because their mechanism is gone?",
        (
            ("all: ZooKeeper is gone", "Some of them never touched ZooKeeper."),
            ("about two thirds", "Those that needed a second copy, or a request of the controller."),
            ("about a quarter", "Count the bugs that need two copies of one fact."),
            ("none: bugs are bugs", "A bug needs a mechanism that can go wrong."),
        ),
        1,
    ),
    "21.c": Guess(
        "For a minute the active controller of KRaft is too busy to read heartbeats. What happens to healthy brokers?",
        (
            ("nothing", "They send in time. But who reads it?"),
            ("they elect another controller", "Brokers elect nobody; the quorum of controllers does."),
            ("they may be fenced", "A heartbeat that nobody has read counts as none; KAFKA-15019 is about that."),
        ),
        2,
    ),
}
"""By lesson and letter."""

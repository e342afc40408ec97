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
    "09.a": Guess(
        "30 partitions on 6 brokers, so each leads 5. Broker 1 dies. How many brokers take over its 5 partitions?",
        (
            (
                "1",
                "So it looks in the first rows of a topic's description: 1,2,3. Look at the rows of the second round.",
            ),
            ("2, as many as there are followers", "Each partition has two followers, but they are not the same two."),
            ("5", "The distance of the followers grows with each round, so each list is another one."),
        ),
        2,
    ),
    "09.b": Guess(
        "Five brokers are in rack a, one is in rack b. 60 partitions, two replicas each. How many has the lone one?",
        (
            ("20", "So it would be if 120 replicas were shared by six. But racks come first."),
            ("36", "Which partition may do without a copy in rack b?"),
            ("60", "Each partition needs a copy in each rack, and rack b is one broker."),
        ),
        2,
    ),
    "09.c": Guess(
        "A fourth broker joins three. The topic has 12 replicas. How many has the new broker after ten minutes?",
        (
            ("3", "Databases that rebalance would do so. Who would start it here?"),
            ("0", "Nobody has asked for it."),
            ("some leaders, no followers", "A leader needs a copy, too."),
        ),
        1,
    ),
    "09.d": Guess(
        "A key's partition is its hash modulo the number of partitions. 4 become 8. Which share of the keys stays?",
        (
            ("all: only new keys go to new partitions", "The producer knows no old keys, it computes."),
            ("half", "hash % 8 is hash % 4, or that and 4."),
            ("a quarter", "That would be 16 partitions."),
        ),
        1,
    ),
    "10.a": Guess(
        "Broker 1 is down, the topic on 1, 2, 3 is deleted. How many copies are on disks a second later?",
        (
            ("3: it waits until all can delete", "All or nothing would need somebody who asks all of them first."),
            ("1", "Who can delete does so at once; who cannot is waited for."),
            ("0", "Broker 1 is down. Who should have deleted its copy?"),
        ),
        1,
    ),
    "10.b": Guess(
        "The deletion is stuck. Somebody removes the request's znode. Later broker 1 returns. The topic is ...",
        (
            ("there, as before", "The request is gone from ZooKeeper. Where else is it?"),
            ("deleted", "The controller has had it in memory all the time."),
            ("stuck as before", "The one that was waited for is here now."),
        ),
        1,
    ),
    "10.c": Guess(
        "The same, but the controller changed before broker 1 returned. How many of five records are left?",
        (
            ("5: broker 1 has them", "It has them when it starts. Whom will it follow?"),
            ("none, the topic is deleted", "The new controller finds no request, and so a topic like any other."),
            ("none, the topic is empty", "Brokers 2 and 3 have deleted their copies, and one of them leads now."),
        ),
        2,
    ),
    "10.d": Guess(
        "A topic is being moved, which takes 8 s. After 0.1 s it is deleted. The deletion ...",
        (
            ("waits until the move has ended", "So says a comment in the source. Look at the order of two calls."),
            ("is refused", "The tool looks whether the topic exists, at nothing else."),
            ("goes through at once", "The check comes before the topic is on the list that is checked."),
        ),
        2,
    ),
    "11.a": Guess(
        "Four steps after the wait: Elect a leader, Delete the old copy, write AR, Remove the request. In which order?",
        (
            ("A, E, D, R", "If the controller dies after A, nobody knows of the old copy any more."),
            ("D, E, A, R", "The old leader would be stopped before there is a new one."),
            ("E, D, A, R", "What says that something is left to do goes last."),
            ("E, A, R, D", "If the controller dies before D, nobody knows of the old copy any more."),
        ),
        2,
    ),
    "11.b": Guess(
        "The partition moves from 1, 2, 3 to 4, 5, 6. How many brokers have a copy at the peak?",
        (
            ("3", "A copy is deleted after the new ones are there, not before."),
            ("4, one after the other", "All new followers are announced at once."),
            ("6", "Old and new together; the ISR grows to six, too."),
        ),
        2,
    ),
    "11.c": Guess(
        "The controller dies while broker 5 copies. The copying ...",
        (
            ("stops until there is a new controller", "Does the controller move the data?"),
            ("begins again from the first record", "What broker 5 has on its disk stays there."),
            ("goes on", "Broker 5 fetches from the leader, like any follower."),
        ),
        2,
    ),
    "11.d": Guess(
        "The target, broker 4, is down. The move ...",
        (
            ("fails, and the tool says so", "It did so before 0.10.1. Since then nobody looks."),
            ("waits for ever", "Step 4 has no end and no limit."),
            ("goes on without broker 4", "Then one copy less would be left than was asked for."),
        ),
        1,
    ),
    "12.a": Guess(
        "Kafka 2.0. A plan for orders-0 is running. You execute a plan for orders-1. It ...",
        (
            ("waits until the first is done", "There is no queue: there is one znode."),
            ("runs beside the first", "Both would have to be in the same znode."),
            ("is not written at all", "The tool looks whether the znode is there, and gives up."),
        ),
        2,
    ),
    "12.b": Guess(
        "Broker 5 is down. A move to 1, 2, 5 is asked for, first through ZooKeeper, then through the controller.",
        (
            ("both are refused", "Who checks a plan in ZooKeeper?"),
            ("both wait", "The controller's API answers at once, so it can refuse."),
            ("ZooKeeper: waits; controller: refused", "Only one of the two ways has somebody who answers."),
        ),
        2,
    ),
    "12.c": Guess(
        "Kafka 2.4. 1, 2, 3 moves to 3, 4, 2, and is cancelled after a second. What is AR then?",
        (
            ("1, 2, 3", "The help says: original replicas. But was their order kept anywhere?"),
            ("3, 2, 1", "The lists in the znode say who was added, and no order of before."),
            ("3, 4, 2, 1", "That is AR while it moves."),
        ),
        1,
    ),
    "12.d": Guess(
        "A throttled move is done; nobody ran verify. A week later broker 3 was down for an hour. Its fetches are ...",
        (
            ("unlimited, the move is over", "The settings do not know of the move."),
            ("throttled, where it is in a list", "Who is in a list and out of the ISR is throttled, whatever for."),
            ("refused", "A throttle slows, it refuses nothing."),
        ),
        1,
    ),
}
"""By lesson and letter."""

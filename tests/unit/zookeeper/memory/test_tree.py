"""The tree of a ZooKeeper in memory: what is undone leaves no mark."""

from copy import deepcopy

import pytest

from kafka_ctl.zookeeper.memory.tree import Node, Tree
from kafka_ctl.zookeeper.store import Create, Delete, Set


def state(tree: Tree) -> dict[str, dict[str, object]]:
    """Everything that there is of each znode."""
    return {path: {slot: deepcopy(getattr(node, slot)) for slot in Node.__slots__} for path, node in tree.nodes.items()}


@pytest.mark.parametrize("character", "\0\x01\x1f\x7f\x9f\ue000\uf8ff\ufff0\U0001f600")
def test_characters_that_no_path_may_have(character: str) -> None:
    """ZooKeeper 3.4.14: common/PathUtils.java, validatePath"""
    assert Tree(lambda: 0).problem(Create(f"/a{character}")) == "BADARGUMENTS"
    assert Tree(lambda: 0).problem(Create("/a \xa0\ud7ff\uf900\uffef")) is None


@pytest.mark.parametrize("op", [Create("/new"), Create("/new", ephemeral=True), Set("/0", b"x"), Delete("/0")], ids=str)
def test_a_change_is_undone(op: Create | Set | Delete) -> None:
    """Also where the new child has made its parent's hash table larger."""
    tree, owner = Tree(lambda: 0), 1
    for number in range(40):
        tree.change(Create(f"/{number}"), owner)
        before = state(tree)
        tree.change(op, owner).undo()
        assert state(tree) == before, number

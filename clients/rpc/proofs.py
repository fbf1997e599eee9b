"""Verification of Merkle proofs."""

import rlp
from eth_utils import keccak


def prove(root, key, nodes):
    """Returns the value that a Merkle Patricia proof proves, or None if it proves absence."""
    nodes = list(map(bytes, nodes))
    path = keccak(key).hex()
    expected = root
    while True:
        if isinstance(expected, list):
            node = expected
        else:
            assert nodes, "the proof ends too early"
            raw = nodes.pop(0)
            assert keccak(raw) == expected, "a node is not the one that is committed to"
            node = rlp.decode(raw)
        if node == b"":
            # The root of an empty trie.
            break
        if len(node) == 17:
            expected, path = node[int(path[0], 16)], path[1:]
        else:
            encoded, expected = node[0].hex(), node[1]
            flags = int(encoded[0], 16)
            part = encoded[1:] if flags & 1 else encoded[2:]
            if not path.startswith(part):
                break
            path = path[len(part):]
            if flags & 2:
                assert not nodes, "the proof has nodes too many"
                return expected if not path else None
        if expected == b"":
            break
    assert not nodes, "the proof has nodes too many"
    return None

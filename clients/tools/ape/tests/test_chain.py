"""Uses a chain that ape-foundry has started with its defaults."""

DEAD = "0x000000000000000000000000000000000000dEaD"


def test_the_base_fee_is_zero(accounts, chain):
    alice, bob = accounts[0], accounts[1]
    before = alice.balance
    receipt = alice.transfer(bob, "1 ether")
    assert (receipt.gas_used, chain.blocks.head.base_fee) == (21_000, 0)
    assert alice.balance == before - 10**18 - receipt.total_fees_paid


def test_snapshots_time_and_impersonation(accounts, chain):
    snapshot = chain.snapshot()
    chain.mine(5)
    chain.pending_timestamp += 3_600
    chain.mine(1)
    chain.restore(snapshot)
    dead = accounts[DEAD]
    dead.balance = "5 ether"
    receipt = dead.transfer(accounts[1], "1 ether")
    assert dead.balance == 4 * 10**18 - receipt.total_fees_paid

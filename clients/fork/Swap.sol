// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

// Deployed on the chain that is forked; compiled by solc.mjs.

/// A token. Whoever deploys it owns the supply.
contract Token {
    event Transfer(address indexed from, address indexed to, uint256 value);

    /// Slot 0.
    mapping(address => uint256) public balanceOf;
    /// Slot 1.
    mapping(address => mapping(address => uint256)) public allowance;
    /// Slot 2.
    uint256 public totalSupply;

    constructor(uint256 supply) {
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        return move(msg.sender, to, value);
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        allowance[from][msg.sender] -= value;
        return move(from, to, value);
    }

    function move(address from, address to, uint256 value) private returns (bool) {
        require(balanceOf[from] >= value, "balance too low");
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
        return true;
    }
}

/// Exchanges two tokens, so that the product of its reserves does not shrink.
contract Pool {
    event Swapped(address indexed to, address indexed paid, uint256 given, uint256 received);

    Token public immutable first;
    Token public immutable second;
    /// What it has of each token. Slot 0.
    mapping(Token => uint256) public reserves;

    constructor(Token first_, Token second_) {
        (first, second) = (first_, second_);
    }

    function other(Token token) public view returns (Token) {
        return address(token) == address(first) ? second : first;
    }

    /// Counts what was transferred to this as reserves.
    function fill() external {
        reserves[first] = first.balanceOf(address(this));
        reserves[second] = second.balanceOf(address(this));
    }

    /// Exchanges what was transferred to this.
    function swap(Token paid, address to) external returns (uint256 received) {
        Token wanted = other(paid);
        uint256 given = paid.balanceOf(address(this)) - reserves[paid];
        received = reserves[wanted] * given / (reserves[paid] + given);
        reserves[paid] += given;
        reserves[wanted] -= received;
        wanted.transfer(to, received);
        emit Swapped(to, address(paid), given, received);
    }
}

/// Swaps through several pools.
contract Router {
    error Expired(uint256 deadline, uint256 time);

    function swap(uint256 amount, uint256 least, Token token, Pool[] calldata path, uint256 deadline) external returns (uint256) {
        if (block.timestamp > deadline) revert Expired(deadline, block.timestamp);
        token.transferFrom(msg.sender, address(path[0]), amount);
        for (uint256 index = 0; index < path.length; index++) {
            address to = index + 1 < path.length ? address(path[index + 1]) : msg.sender;
            amount = path[index].swap(token, to);
            token = path[index].other(token);
        }
        require(amount >= least, "too little received");
        return amount;
    }
}

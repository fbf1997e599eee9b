module.exports = {
  solidity: "0.8.28",
  defaultNetwork: "node",
  networks: { node: { url: process.env.NODE_RPC_URL, timeout: 600_000 } },
};

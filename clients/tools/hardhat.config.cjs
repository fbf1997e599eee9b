// Hardhat's sample project, compiled by solc from npm instead of a downloaded one.
const { subtask } = require("hardhat/config");
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require("hardhat/builtin-tasks/task-names");
require("@nomicfoundation/hardhat-toolbox");

subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD).setAction(async () => ({
  compilerPath: require.resolve("solc/soljson.js"),
  isSolcJs: true,
  version: "0.8.28",
  longVersion: require("solc/package.json").version,
}));

module.exports = {
  solidity: "0.8.28",
  networks: { node: { url: process.env.NODE_URL } },
};

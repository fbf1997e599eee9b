// Generates the client from the document that NODE_OPENAPI names.
module.exports = {
  node: {
    input: process.env.NODE_OPENAPI,
    output: {
      target: "node_client/index.ts",
      client: "fetch",
      override: { mutator: { path: "fetcher.ts", name: "fetcher" } },
    },
  },
};

// Runs checks one after the other and prints a line of JSON for each: tool, call, and what came of it.

export async function report(tool, checks) {
  for (const [call, check] of Object.entries(checks)) {
    let result = "works";
    try {
      const value = await check();
      if (typeof value === "string") result = value;
    } catch (error) {
      result = `fails: ${String(error.shortMessage ?? error.message ?? error).split("\n")[0].slice(0, 90)}`;
    }
    console.log(JSON.stringify({ tool, call, result }));
  }
}

export function equal(got, expected) {
  if (String(got) !== String(expected)) throw new Error(`got ${got}, expected ${expected}`);
}

export function within(got, least, most) {
  if (!(least <= got && got <= most)) throw new Error(`got ${got}, expected ${least} to ${most}`);
}

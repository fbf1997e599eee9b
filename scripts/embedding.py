#!/usr/bin/env python3
"""Check that docs/embedding.md shows the programs under examples/ as they are, with their dependencies and line counts.

A block of code after a comment `<!-- examples/NAME/FILE -->` is that file: a program without its tests, or the dependencies in
Cargo.toml with the versions and features of the workspace. The table of programs has the number of their lines without
comments, blank lines and tests; contract-tests is only tests. `--write` updates the document; otherwise the exit status is 1
if it differs.
"""
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/embedding.md"
BLOCK = re.compile(r"<!-- (examples/\S+) -->\n```(\w+)\n.*?^```$", re.M | re.S)
ROW = re.compile(r"^\| \[([\w-]+)\]\(\.\./(examples/\S+)\) \| \d+ \|", re.M)
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]


def program(path: Path) -> str:
    """Returns the program in the file without its tests."""
    text = path.read_text()
    return text.split("\n#[cfg(test)]\n")[0].rstrip() + "\n"


def count(path: Path) -> int:
    """Returns the number of lines of the program that are not blank and not comments."""
    lines = [line.strip() for line in program(path).splitlines()]
    return sum(1 for line in lines if line and not line.startswith("//"))


def dependency(name: str, own: dict) -> str:
    """Returns a line of Cargo.toml for a dependency of an example, as a program outside of the workspace needs it."""
    if own.get("workspace"):
        shared = WORKSPACE["dependencies"][name]
        shared = {"version": shared} if isinstance(shared, str) else dict(shared)
        features = [*shared.pop("features", []), *own.get("features", [])]
        own = shared | ({"features": list(dict.fromkeys(features))} if features else {})
    if "path" in own:
        own["path"] = "../node/" + (own["path"] if own["path"].startswith("crates") else f"examples/{Path(own['path']).name}")
    order = [key for key in ("version", "path", "default-features", "features") if key in own]
    if order == ["version"]:
        return f'{name} = "{own["version"]}"'
    return f"{name} = {{ " + ", ".join(f"{key} = {value(own[key])}" for key in order) + " }"


def value(item: object) -> str:
    """Returns a value of TOML."""
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, list):
        return "[" + ", ".join(map(value, item)) + "]"
    return f'"{item}"'


def dependencies(path: Path) -> str:
    """Returns the dependencies in a Cargo.toml; those of tests only if there are no others."""
    manifest = tomllib.loads(path.read_text())
    section = "dependencies" if "dependencies" in manifest else "dev-dependencies"
    lines = [dependency(name, own) for name, own in manifest[section].items()]
    return "\n".join([f"[{section}]", *lines]) + "\n"


def block(found: re.Match[str]) -> str:
    path = ROOT / found[1]
    text = dependencies(path) if path.name == "Cargo.toml" else program(path)
    return f"<!-- {found[1]} -->\n```{found[2]}\n{text}```"


def row(found: re.Match[str]) -> str:
    return f"| [{found[1]}](../{found[2]}) | {count(ROOT / found[2])} |"


def main() -> int:
    old = DOCUMENT.read_text()
    new = ROW.sub(row, BLOCK.sub(block, old))
    if "--write" in sys.argv:
        DOCUMENT.write_text(new)
        return 0
    if new != old:
        print("docs/embedding.md is not up to date: scripts/embedding.py --write")
    return int(new != old)


if __name__ == "__main__":
    sys.exit(main())

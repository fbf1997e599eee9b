#!/usr/bin/env python3
"""Check the dependency rule of ARCHITECTURE.md: which crates may depend on which others.

Reads `cargo metadata`; checks normal and build dependencies, not dev-dependencies. Also checks that node-core does not
mention what belongs to its interfaces, that files do not import one another in long circles, and that no text has a word
that CONTRIBUTING.md replaces by another. The exit status is 1 on a violation.
"""
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from import_circles import circles

# The crates of this workspace that each crate may use.
LAYERS = {
    "node-types": set(),
    "node-core": {"node-types"},
    "node-evm": {"node-types", "node-core"},
    "node-chain": {"node-types", "node-core"},
    "node-rpc": {"node-types", "node-core"},
    "node-http": {"node-types", "node-core", "node-rpc"},
    "node-store": {"node-types", "node-core"},
    "node-dev": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store"},
    "node-server": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store", "node-dev"},
    "node-tests": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store", "node-dev"},
}

# External dependencies that only some crates may use.
RESERVED = {
    "revm": {"node-evm"},
    "revm-inspectors": {"node-evm"},
    "alloy-rpc-types-trace": {"node-evm"},
    "secp256k1": {"node-evm"},
    "c-kzg": {"node-evm"},
    "actix-web": {"node-http"},
    "tokio": {"node-dev", "node-http", "node-tests"},
    "redb": {"node-store"},
    "ureq": {"node-server", "node-tests"},
    "tungstenite": {"node-tests"},
    "clap": {"node-http", "node-server", "node-tests"},
}

# What must not appear in the sources of node-core, with the reason.
FOREIGN = {
    r"\bwire(_|\b)": "the JSON structures belong to node-http and node-rpc",
    r'"(body|path|query|header|params)\.': "locations in a request belong to node-http",
    r"(?i:http(?!s?://))|\b(REST|OpenAPI)\b": "interfaces belong to node-http",
    r"`(--)?[a-z]+(-[a-z]+)+`|(?<![-|])--[a-z]": "options of the command line belong to node-rpc's table",
}

# Words of the table in CONTRIBUTING.md that are wrong wherever they appear, also as parts of identifiers in snake case, and what was to
# be filled in.
WORDS = {
    r"@@[A-Z]+@@": "a placeholder",
    r"(?i)(?<![a-z])(tells|told|imagined?|elsewhere|so[ _]many|none[ _]where|takes?[ _]back|goes[ _]on|what[ _]is[ _]no|lets|answers|answered|anew|"
    r"is[ _]to[ _]be)(?![a-z])": "a word that CONTRIBUTING.md replaces by another",
}


def matching_lines(files: Iterable[Path], patterns: dict[str, str]) -> list[str]:
    """Lists the lines of `files` that match a pattern, with the reason why they must not."""
    return [
        f"{path}:{number}: {reason}"
        for path in sorted(files)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        for pattern, reason in patterns.items()
        if re.search(pattern, line)
    ]


def texts(root: Path) -> list[Path]:
    """The files with prose: sources, scripts and documents, except the two that list the words."""
    files = [path for folder in ("bin", "crates", "tests", "examples") for path in (root / folder).rglob("*.rs")]
    others = [path for pattern in ("scripts/*.*", "*.md", "docs/*.md") for path in root.glob(pattern) if path.is_file()]
    return files + [path for path in others if path.name not in ("CONTRIBUTING.md", Path(__file__).name)]


def quoted_options(root: Path) -> str:
    """A pattern for the names of options in quotes. Names without a hyphen could be any word."""
    names = re.findall(r"`--([a-z]+(?:-[a-z]+)+)", (root / "docs/configuration.md").read_text())
    return f'"(--)?({"|".join(names)})"'


def main() -> int:
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--no-deps"], check=True, capture_output=True
        ).stdout
    )
    root = Path(__file__).parent.parent
    foreign = FOREIGN | {quoted_options(root): "names of options belong to node-rpc's table"}
    faults = matching_lines((root / "crates/node-core/src").rglob("*.rs"), foreign)
    faults += matching_lines(texts(root), WORDS)
    for package in metadata["packages"]:
        src = Path(package["manifest_path"]).parent / "src"
        faults += [f"{src}: files import one another in a circle: {', '.join(circle)}" for circle in circles(src)]
    packages = {package["name"]: package for package in metadata["packages"]}
    # Examples are programs of users: they may use everything, and nothing uses them.
    packages = {name: package for name, package in packages.items() if not name.startswith("example-")}
    for unknown in packages.keys() - LAYERS.keys():
        faults.append(f"{unknown} has no layer: add it here and in ARCHITECTURE.md")
    for name, package in packages.items():
        for dependency in package["dependencies"]:
            used = dependency["name"]
            if dependency["kind"] == "dev":
                continue
            if used in packages and used not in LAYERS.get(name, set()):
                faults.append(f"{name} may not use {used}")
            if used.startswith("alloy") and used not in RESERVED and name != "node-tests" and not dependency["optional"]:
                faults.append(f"{name} may use {used} only in tests, or behind a feature")
            if name not in RESERVED.get(used, {name}):
                faults.append(f"{name} may not use {used}: only {', '.join(sorted(RESERVED[used]))} may")
    print("\n".join(sorted(faults)) or f"layers hold: {len(packages)} crates checked")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

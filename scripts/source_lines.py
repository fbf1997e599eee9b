#!/usr/bin/env python3
"""Count the lines of source code of each crate, without its tests.

    scripts/source_lines.py [--rev REVISION]

Counts the .rs files under src/ of every crate in crates/ and bin/, without items under `#[cfg(test)]` and without the files of modules that
are declared so. Prints for each crate its files, its lines, and its lines of code: neither blank nor comment. With --rev, counts a git
revision instead of the working tree.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = re.compile(r"(?:crates|bin)/([^/]+)/src/.+\.rs")
TEST_MODULE = re.compile(r"#\[cfg\((?:test|any\(test, feature = \"(?:backend-tests|test-faults)\"\))\)\]\n\s*(?:pub(?:\(.*\))? )?mod (\w+);")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def files(revision):
    """Yields path and text of every Rust file."""
    if revision:
        for path in git("ls-tree", "-r", "--name-only", revision, "crates", "bin").splitlines():
            if path.endswith(".rs"):
                yield path, git("show", f"{revision}:{path}")
    else:
        for path in git("ls-files", "--cached", "--others", "--exclude-standard", "crates", "bin").splitlines():
            if path.endswith(".rs") and (ROOT / path).exists():
                yield path, (ROOT / path).read_text()


def test_modules(sources):
    """The paths, without .rs, of all modules that only tests compile."""
    modules = set()
    for path, text in sources.items():
        folder = pathlib.PurePath(path)
        folder = folder.parent if folder.name in ("lib.rs", "main.rs", "mod.rs") else folder.with_suffix("")
        modules.update(str(folder / name) for name in TEST_MODULE.findall(text))
    return modules


def without_test_items(lines):
    """Leaves out items under `#[cfg(test)]`. rustfmt indents the brace that closes an item like the item itself."""
    kept = []
    position = 0
    while position < len(lines):
        line = lines[position]
        if line.strip() != "#[cfg(test)]":
            kept.append(line)
            position += 1
            continue
        indentation = line[: len(line) - len(line.lstrip())]
        position += 1
        while lines[position].strip().startswith("#["):
            position += 1
        if not lines[position].rstrip().endswith((";", "}")):
            while lines[position].rstrip() not in (f"{indentation}}}", f"{indentation}}};", f"{indentation});"):
                position += 1
        position += 1
    return kept


def is_code(line):
    text = line.strip()
    return bool(text) and not text.startswith("//")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rev", help="git revision to count instead of the working tree")
    revision = parser.parse_args().rev
    sources = {path: text for path, text in files(revision) if SOURCE.fullmatch(path)}
    tests = test_modules(sources)
    counts = {}
    for path, text in sources.items():
        module = pathlib.PurePath(path).with_suffix("")
        if any(str(part) in tests for part in (module, *module.parents)):
            continue
        lines = without_test_items(text.splitlines())
        crate = counts.setdefault(SOURCE.fullmatch(path)[1], [0, 0, 0])
        crate[0] += 1
        crate[1] += len(lines)
        crate[2] += sum(map(is_code, lines))
    if not counts:
        sys.exit("no source files found")
    counts["all"] = [sum(column) for column in zip(*counts.values())]
    print(f"{'crate':<14}{'files':>7}{'lines':>9}{'code':>9}")
    for crate, (number, lines, code) in counts.items():
        print(f"{crate:<14}{number:>7}{lines:>9,}{code:>9,}")


main()

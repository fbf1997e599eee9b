#!/usr/bin/env python3
"""Count the lines of source code of each crate, without its tests.

    scripts/source_lines.py [--rev REVISION]

Counts the .rs files under src/ of every crate in crates/ and bin/, without items under `#[cfg(test)]` and without the files of modules that
are declared so. Prints for each crate its files, its lines, and its lines of code: neither blank nor comment.
"""

import argparse
import re
from pathlib import PurePath

from nodes import ROOT, run

SOURCE = re.compile(r"(?:crates|bin)/([^/]+)/src/.+\.rs")
TEST_MODULE = re.compile(r"#\[cfg\((?:test|any\(test, feature = \"(?:backend-tests|test-faults)\"\))\)\]\n\s*(?:pub(?:\(.*\))? )?mod (\w+);")
# rustfmt indents the brace that closes an item like the item itself.
TEST_ITEM = re.compile(r"^( *)#\[cfg\(test\)\]\n(?: *#\[.*\n)*(?:.*[;}]\n|(?:.*\n)*?\1(?:\}|\};|\);)\n)", re.M)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rev", help="git revision to count instead of the working tree")
    revision = parser.parse_args().rev
    command = ["ls-tree", "-r", "--name-only", revision] if revision else ["ls-files", "--cached", "--others", "--exclude-standard"]
    paths = filter(SOURCE.fullmatch, run("git", *command, "crates", "bin", cwd=ROOT).splitlines())
    if revision:
        texts = {path: run("git", "show", f"{revision}:{path}", cwd=ROOT) for path in paths}
    else:
        texts = {path: (ROOT / path).read_text() for path in paths if (ROOT / path).exists()}
    tests = set()
    for path, text in texts.items():
        file = PurePath(path)
        folder = file.parent if file.name in ("lib.rs", "main.rs", "mod.rs") else file.with_suffix("")
        tests.update(folder / name for name in TEST_MODULE.findall(text))
    counts = {}
    for path, text in texts.items():
        module = PurePath(path).with_suffix("")
        if tests.isdisjoint([module, *module.parents]):
            lines = TEST_ITEM.sub("", text).splitlines()
            code = sum(bool(line.strip()) and not line.strip().startswith("//") for line in lines)
            for crate in (SOURCE.fullmatch(path)[1], "all"):
                counts[crate] = [a + b for a, b in zip(counts.get(crate, [0, 0, 0]), (1, len(lines), code))]
    print(f"{'crate':<14}{'files':>7}{'lines':>9}{'code':>9}")
    for crate, (number, lines, code) in sorted(counts.items(), key=lambda entry: entry[0] == "all"):
        print(f"{crate:<14}{number:>7}{lines:>9,}{code:>9,}")


if __name__ == "__main__":
    main()

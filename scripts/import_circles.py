"""Finds circles of imports between the source files of a crate.

A file imports another if it uses an item that the other defines; items that a parent re-exports count for the file that
defines them. Only `use` declarations and `crate::` paths outside tests are read.
"""

import re
from pathlib import Path

# Circles of a type and its methods in another file are hard to avoid; longer ones are not.
LONGEST = 3

TEST_MODULE = re.compile(r"#\[cfg\((?:test|any\(test, .*\))\)\]\n\s*(?:pub(?:\(.*\))? )?mod (\w+);")
USE = re.compile(r"^\s*(pub(?:\([^)]*\))? )?use ([^;]+);", re.M)

Module = tuple[str, ...]


def expand(path: str) -> list[str]:
    """Splits `a::{b, c::d}` into single paths."""
    head, brace, rest = path.strip().partition("{")
    if not brace:
        return [head.split(" as ")[0].strip()]
    parts, depth = [""], 0
    for char in rest[: rest.rindex("}")]:
        depth += (char == "{") - (char == "}")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [head.strip() + single for part in parts if part.strip() for single in expand(part)]


class Crate:
    def __init__(self, src: Path):
        texts = {path: path.read_text() for path in src.rglob("*.rs")}
        tests = {name for text in texts.values() for name in TEST_MODULE.findall(text)}
        self.files: dict[Module, str] = {}
        for path, text in texts.items():
            parts = path.relative_to(src).with_suffix("").parts
            module = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
            if not tests.intersection(module):
                code = re.sub(r"#\[cfg\(test\)\]\s*mod tests \{.*\Z", "", text, flags=re.S)
                self.files[module] = re.sub(r"//.*|pub\(in [^)]*\)", "", code)
        self.exports = {
            (*module, name): target
            for module in self.files
            for public, path in self.uses(module)
            if public
            for name, target in self.exported(module, path)
        }

    def exported(self, module: Module, path: str) -> list[tuple[str, Module]]:
        """The names that `pub use path` in `module` exports, each with what it stands for."""
        target = self.absolute(module, path)
        if target is None:
            return []
        if target[-1] != "*":
            return [(target[-1], target)]
        # `wire_objects!` declares a struct as `request` or `response`.
        names = re.findall(r"\b(?:pub (?:struct|enum|trait|type|fn)|request|response) (\w+)", self.files.get(target[:-1], ""))
        return [(name, (*target[:-1], name)) for name in names]

    def uses(self, module: Module) -> list[tuple[bool, str]]:
        found = USE.findall(self.files[module])
        return [(bool(public), path) for public, paths in found for path in expand(paths)]

    def absolute(self, module: Module, path: str) -> Module | None:
        """The path from the root of the crate. `None` if it leads to another crate."""
        base, names = module, path.split("::")
        if names[0] == "crate":
            return tuple(names[1:])
        if names[0] not in ("self", "super") and (*module, names[0]) not in self.files:
            return None
        while names and names[0] in ("self", "super"):
            base = base[:-1] if names.pop(0) == "super" else base
        return (*base, *names)

    def definer(self, item: Module) -> Module:
        """The module that defines an item."""
        for length in range(len(item), -1, -1):
            if (module := item[:length]) in self.files:
                name = item[: length + 1]
                exported = self.exports.get(name, name)
                return module if exported == name else self.definer(exported)
        return ()

    def imports(self, module: Module) -> set[Module]:
        paths = [path for public, path in self.uses(module) if not public]
        paths += re.findall(r"\b(?:crate|super|self)(?:::\w+)+", USE.sub("", self.files[module]))
        items = (self.absolute(module, path) for path in paths)
        return {self.definer(item) for item in items if item is not None} - {module}


def circles(src: Path) -> list[list[str]]:
    """Lists the sets of more than `LONGEST` files below `src` that all import one another, directly or not."""
    crate = Crate(src)
    graph = {module: crate.imports(module) for module in crate.files}
    reached = {module: reachable(graph, module) for module in graph}
    found = {frozenset(other for other in reached[module] if module in reached[other]) for module in graph}
    return [sorted("::".join(module) or "crate" for module in circle) for circle in found if len(circle) > LONGEST]


def reachable(graph: dict[Module, set[Module]], start: Module) -> set[Module]:
    seen: set[Module] = set()
    stack = [start]
    while stack:
        for target in graph.get(stack.pop(), ()):
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return seen

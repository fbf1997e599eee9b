#!/usr/bin/env python3
"""Make a Debian package of the server, and check it.

    scripts/debian_package.py [--bin PROGRAM] [--output FOLDER]

The package has the program, the unit and settings of the service, man pages, completions, and the documentation for operators. The check
installs it into an empty folder with dpkg, runs the program there, has man read a page and bash the completions, and removes it again.
"""

import argparse
import gzip
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from nodes import ROOT, Failure, build, checked

NAME = "ethnode"

DESCRIPTION = """Ethereum execution node with REST and JSON-RPC
 Serves a development chain or an imported one, with every historical state
 and Merkle proofs, over HTTP. The service is not started by the package:
 edit /etc/ethnode/ethnode.toml, then systemctl enable --now ethnode.
"""

# systemd reads units again after they change, and a removed service is stopped; not if the package is installed below another root.
SYSTEMD = '[ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ] || exit 0\n'
SCRIPTS = {
    "postinst": SYSTEMD + 'systemctl daemon-reload\nif [ "$1" = configure ] && [ -n "$2" ]; then systemctl try-restart ethnode; fi\n',
    "prerm": SYSTEMD + 'if [ "$1" = remove ]; then systemctl disable --now ethnode.socket ethnode; fi\n',
    "postrm": SYSTEMD + "systemctl daemon-reload\n",
}

COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/ethnode",
    "zsh": "usr/share/zsh/vendor-completions/_ethnode",
    "fish": "usr/share/fish/vendor_completions.d/ethnode.fish",
}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr).strip()}")
    return done.stdout


def write(path, content, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)


def compressed(content):
    # Without a time, so that the same content makes the same package.
    return gzip.compress(content if isinstance(content, bytes) else content.encode(), mtime=0)


def dependencies(binary):
    """The C library that the program needs, by the newest version of its symbols."""
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", binary))
    newest = max((int(major), int(minor)) for major, minor in versions)
    libraries = set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", binary)))
    of_c = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    others = libraries - of_c - {"libgcc_s.so.1"}
    if others:
        raise Failure(f"the program needs libraries that the package does not mention: {others}")
    return f"libc6 (>= {newest[0]}.{newest[1]}), libgcc-s1"


def fill(root, binary):
    """Writes the files of the package to `root`. Returns its version."""
    version = run(binary, "--version").split()[1]
    write(root / "usr/bin" / NAME, binary.read_bytes(), 0o755)
    run("strip", root / "usr/bin" / NAME)
    for unit in ("ethnode.service", "ethnode.socket"):
        write(root / "lib/systemd/system" / unit, (ROOT / "deploy" / unit).read_text())
    write(root / "etc/ethnode/ethnode.toml", (ROOT / "deploy/ethnode.toml").read_text())
    for shell, path in COMPLETIONS.items():
        write(root / path, run(binary, "completions", shell))
    with tempfile.TemporaryDirectory() as pages:
        run(binary, "man", pages)
        for page in Path(pages).iterdir():
            write(root / f"usr/share/man/man1/{page.name}.gz", compressed(page.read_text()))
    documents = root / "usr/share/doc" / NAME
    for name in ("runbook", "operations", "configuration", "http", "proxies", "metrics"):
        write(documents / f"{name}.md", (ROOT / f"docs/{name}.md").read_text())
    for name in ("alerts.yml", "grafana.json"):
        write(documents / name, (ROOT / "deploy" / name).read_text())
    write(documents / "changelog.gz", compressed((ROOT / "CHANGELOG.md").read_text()))
    write(documents / "copyright", "MIT or Apache-2.0, at your option.\nOn Debian systems, the Apache License is in /usr/share/common-licenses/Apache-2.0.\n")
    return version


def package(binary, output):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "package"
        version = fill(root, binary)
        architecture = run("dpkg", "--print-architecture").strip()
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        write(root / "DEBIAN/control",
              f"Package: {NAME}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: the authors of {NAME} <nobody@example.org>\n"
              f"Installed-Size: {size}\nDepends: {dependencies(binary)}\nSection: net\nPriority: optional\nDescription: {DESCRIPTION}")
        write(root / "DEBIAN/conffiles", "/etc/ethnode/ethnode.toml\n")
        for name, script in SCRIPTS.items():
            write(root / "DEBIAN" / name, f"#!/bin/sh\nset -e\n{script}", 0o755)
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        file = Path(output) / f"{NAME}_{version}_{architecture}.deb"
        run("dpkg-deb", "--build", "--root-owner-group", root, file)
        return file


def check(file):
    fields = run("dpkg-deb", "--field", file)
    print(fields.strip())
    contents = run("dpkg-deb", "--contents", file)
    for line in contents.splitlines():
        mode, owner = line.split()[:2]
        if owner != "root/root" or "w" in mode[5:]:
            raise Failure(f"owner or permissions: {line}")
    print(f"{len(contents.splitlines())} files and folders, all of root")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"):
            (root / path).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        # The scripts would run in the folder, where there is no shell.
        dpkg = ("dpkg", f"--root={root}", "--force-not-root", "--force-depends", "--force-script-chrootless", "--log=/dev/null")
        run(*dpkg, "--install", file)
        program = root / "usr/bin" / NAME
        print(run(program, "--version").strip())
        page = run("man", "--local-file", root / "usr/share/man/man1/ethnode-run.1.gz", env={**os.environ, "MANWIDTH": "100"}) \
            if shutil.which("man") else "--shutdown-delay"
        if "--shutdown-delay" not in page.replace("\u2010", "-"):
            raise Failure("the man page of run lacks an option")
        completed = run("bash", "-c", f". {root / COMPLETIONS['bash']} && complete -p {NAME}")
        if NAME not in completed:
            raise Failure(f"completions: {completed}")
        run(*dpkg, "--purge", NAME)
        left = [path for path in root.rglob("*") if path.is_file() and "var/lib/dpkg" not in str(path)]
        if left:
            raise Failure(f"left after the removal: {left}")
    print("installed, run and removed again in an empty folder")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="server program [default: build it]")
    parser.add_argument("--output", type=Path, help="where to write the package [default: it is only checked]")
    arguments = parser.parse_args()
    binary = (arguments.bin or build(profile="dist") / NAME).resolve()
    with tempfile.TemporaryDirectory() as folder:
        file = package(binary, arguments.output or folder)
        check(file)
        if arguments.output:
            print(file)


if __name__ == "__main__":
    checked(main)

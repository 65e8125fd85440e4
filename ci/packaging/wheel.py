#!/usr/bin/env python3
"""Packs an installed tree of weir as a wheel, weir-gate, which pip and uv install beside Python's own scripts.

    ci/packaging/wheel.py VERSION TAG TREE FOLDER      prints the name of the wheel in FOLDER

TAG is that of the platform: manylinux_2_31_x86_64. The same tree and SOURCE_DATE_EPOCH give the same bytes.
The format: https://packaging.python.org/specifications/binary-distribution-format/
"""

import base64
import hashlib
import os
import stat
import sys
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
# Python's environments have their own places for man pages and completions, and no C++ compiler looks into them.
LEFT_OUT = ("share/man", "share/bash-completion", "share/fish", "share/doc/weir/docs", "lib/pkgconfig", "include/")


def metadata(version: str) -> str:
    fields = [
        "Metadata-Version: 2.1",
        "Name: weir-gate",
        f"Version: {version}",
        "Summary: Performance-regression gate for LLM inference engines",
        "License: MIT",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
    ]
    repository = os.environ.get("GITHUB_REPOSITORY", "OWNER/weir")
    if repository != "OWNER/weir":
        fields.append(f"Project-URL: Source, https://github.com/{repository}")
    about = (HERE / "wheel" / "README.md").read_text().replace("OWNER/weir", repository)
    return "\n".join(fields) + "\n\n" + about


def files_of(version: str, tag: str, tree: Path):
    """Yields each file of the wheel: its name, its bytes, whether it is a program."""
    package = HERE / "wheel" / "weir_gate"
    for file in sorted(package.glob("*.py")):
        yield f"weir_gate/{file.name}", file.read_bytes(), False
    for file in sorted(tree.rglob("*")):
        name = file.relative_to(tree).as_posix()
        is_left_out = name.startswith(LEFT_OUT) or "-linux-gnu/" in name or "libweir_instrument" in name
        if is_left_out or not file.is_file():
            continue
        kind = "scripts" if name.startswith("bin/") else "data"
        inside = name.removeprefix("bin/") if kind == "scripts" else name
        is_program = bool(file.stat().st_mode & stat.S_IXUSR)
        yield f"weir_gate-{version}.data/{kind}/{inside}", file.read_bytes(), is_program
    about = f"weir_gate-{version}.dist-info"
    yield f"{about}/METADATA", metadata(version).encode(), False
    wheel = f"Wheel-Version: 1.0\nGenerator: weir\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
    yield f"{about}/WHEEL", wheel.encode(), False
    yield f"{about}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), False


def write_wheel(version: str, tag: str, tree: Path, folder: Path) -> str:
    name = f"weir_gate-{version}-py3-none-{tag}.whl"
    changed = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")) or time.time())[:6]
    record = f"weir_gate-{version}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name: str, content: bytes, is_program: bool) -> None:
            entry = zipfile.ZipInfo(name, changed)
            entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

        for file, content, is_program in files_of(version, tag, tree):
            add(file, content, is_program)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{file},sha256={digest},{len(content)}\n")
        add(record, ("".join(lines) + f"{record},,\n").encode(), False)
    return name


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    print(write_wheel(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))

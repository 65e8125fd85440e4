"""Finds the weir program that this package has installed."""

import os
import sysconfig
from pathlib import Path


def find_weir() -> str:
    """Returns the path of the program. FileNotFoundError says where it was looked for."""
    package = Path(__file__).resolve().parent
    # Of this environment; of pip install --user; of pip install --target.
    folders = [Path(sysconfig.get_path("scripts"))]
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        folders.append(Path(sysconfig.get_path("scripts", scheme=user)))
    folders.append(package.parent / "bin")
    for folder in folders:
        if (folder / "weir").is_file():
            return str(folder / "weir")
    places = ", ".join(map(str, folders))
    raise FileNotFoundError(f"the program weir is in none of {places}: install weir-gate again")

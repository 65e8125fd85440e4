"""Starts weir in place of Python: python -m weir_gate."""

import os
import sys

from weir_gate import find_weir

if __name__ == "__main__":
    try:
        program = find_weir()
    except FileNotFoundError as error:
        print(f"weir_gate: {error}", file=sys.stderr)
        sys.exit(2)
    os.execv(program, [program, *sys.argv[1:]])

"""Compiles a Triton kernel for AMD's GPUs, which need not be there: compile.py FOLDER [BLOCK]

The .hsaco files beside this one are of Triton 3.9.0 from PyPI, with a block of 1024.
"""
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * n + at, values / tl.sum(values, axis=0), mask=at < n)


folder, block = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1024
folder.mkdir(exist_ok=True)
for arch, wave in (("gfx942", 64), ("gfx1100", 32)):
    source = ASTSource(fn=softmax, signature={"out": "*fp32", "x": "*fp32", "n": "i32", "BLOCK": "constexpr"},
                       constexprs={"BLOCK": block})
    compiled = triton.compile(source, target=GPUTarget("hip", arch, wave))
    (folder / f"softmax-{arch}.hsaco").write_bytes(compiled.asm["hsaco"])

# Steps of tinygrad, on the driver's API.
import ctypes.util
import glob
import os
import sys
from importlib.metadata import version

import museum  # first: it sets variables that tinygrad reads

# tinygrad looks for libraries by the linker's names, which a machine without CUDA does not have.
nvrtc = glob.glob(f"{sys.prefix}/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.*")[0]
cuda = [path for folder in os.environ["LD_LIBRARY_PATH"].split(":") if os.path.exists(path := f"{folder}/libcuda.so.1")][0]
libraries = {"cuda": cuda, "nvrtc": nvrtc}
os.environ.update({"DEV": "CUDA"} if version("tinygrad") >= "0.13" else {"CUDA": "1"})
os.environ.update(CUDA_PATH=cuda, NVRTC_PATH=nvrtc)
find_library = ctypes.util.find_library
ctypes.util.find_library = lambda name: libraries.get(name) or find_library(name)
from tinygrad import Tensor, TinyJit, Variable, dtypes, nn


def zeros(*shape):
    return Tensor.ones(*shape, dtype=dtypes.float).contiguous().realize()


class Block:
    # Attention with a cache of 64 tokens, and a feed-forward part: as GPT-2 or as Llama has them.
    def __init__(self, llama, size=64, heads=2):
        self.llama, self.size, self.heads = llama, size, heads
        self.qkv, self.out = nn.Linear(size, 3 * size, bias=not llama), nn.Linear(size, size, bias=not llama)
        self.up, self.down = nn.Linear(size, 4 * size, bias=not llama), nn.Linear(4 * size, size, bias=not llama)
        self.gate = nn.Linear(size, 4 * size, bias=False)
        make = nn.RMSNorm if llama else nn.LayerNorm
        self.norms = [make(size), make(size)]
        self.cache = zeros(2, 1, 64, heads, size // heads)

    def attend(self, x, position):
        q, k, v = (one.reshape(1, 1, self.heads, -1) for one in self.qkv(x).chunk(3, -1))
        if self.llama:
            angle = Tensor.arange(self.size // self.heads // 2) * position
            q, k = (self.turn(one, angle.cos(), angle.sin()) for one in (q, k))
        self.cache.shrink((None, None, (position, position + 1), None, None)).assign(Tensor.stack(k, v)).realize()
        keys, values = (self.cache[one].shrink((None, (0, position + 1), None, None)).transpose(1, 2) for one in (0, 1))
        done = q.transpose(1, 2).scaled_dot_product_attention(keys, values)
        return self.out(done.transpose(1, 2).reshape(1, 1, self.size))

    @staticmethod
    def turn(x, cos, sin):
        a, b = x.chunk(2, -1)
        return (a * cos - b * sin).cat(a * sin + b * cos, dim=-1)

    def __call__(self, x, position):
        x = x + self.attend(self.norms[0](x), position)
        y = self.norms[1](x)
        y = self.up(y).silu() * self.gate(y) if self.llama else self.up(y).gelu()
        return (x + self.down(y)).contiguous()


# One token of two blocks, jitted, and greedy.
def decode(llama=False, jit=True):
    embedding, blocks = nn.Embedding(128, 64), [Block(llama), Block(llama)]
    head = nn.Linear(64, 128, bias=False)

    def token(ids, position):
        x = embedding(ids)
        for block in blocks:
            x = block(x, position)
        return head(x)[:, -1].argmax(-1).realize()

    fast = TinyJit(token) if jit else token
    ids = Tensor([[5]]).realize()
    position = Variable("position", 1, 32).bind(16)
    for _ in range(3):
        fast(ids, position)
    return lambda: fast(ids, position)


# A layer, realized each time.
def layer(kind="softmax"):
    x, w = zeros(64, 64), zeros(64, 64)
    image, kernel = zeros(1, 8, 16, 16), zeros(8, 8, 3, 3)
    formulas = {
        "softmax": lambda: x.softmax(-1),
        "layernorm": lambda: x.layernorm(),
        "matmul": lambda: (x @ w).relu(),
        "conv": lambda: image.conv2d(kernel, padding=1).relu(),
        "attention": lambda: x.reshape(1, 1, 64, 64).scaled_dot_product_attention(w.reshape(1, 1, 64, 64), w.reshape(1, 1, 64, 64)),
        "argmax": lambda: x.argmax(-1),
        "cumsum": lambda: x.cumsum(-1),
        "gather": lambda: x[Tensor([3, 1, 2]).realize()],
    }
    fast = TinyJit(lambda: formulas[kind]().realize())
    for _ in range(3):
        fast()
    return lambda: fast()


museum.main(globals())

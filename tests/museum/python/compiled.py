# Steps that torch.compile made: Inductor's kernels, replayed as CUDA graphs.
import contextlib
import os
import sys
import tempfile

import museum  # first: it sets variables that PyTorch reads

# Triton wants a folder with the driver's library, and older releases its linker's name.
libcuda = [path for folder in os.environ["LD_LIBRARY_PATH"].split(":") if os.path.exists(path := f"{folder}/libcuda.so.1")][0]
os.makedirs("driver", exist_ok=True)
for name in ("libcuda.so.1", "libcuda.so"):
    with contextlib.suppress(FileExistsError):  # another process of this side was first
        os.symlink(libcuda, f"driver/{name}")
# Each process compiles anew: counts of its start are compared, too.
os.environ.update(TRITON_LIBCUDA_PATH=os.path.abspath("driver"), TORCHINDUCTOR_CACHE_DIR=tempfile.mkdtemp(),
                  TRITON_CACHE_DIR=tempfile.mkdtemp(), TORCHINDUCTOR_COMPILE_THREADS="1")
# What Triton compiles is linked to that name, which the loader finds from the start alone.
if not os.environ["LD_LIBRARY_PATH"].endswith("/driver"):
    os.environ["LD_LIBRARY_PATH"] += ":" + os.path.abspath("driver")
    os.execv(sys.executable, [sys.executable, *sys.argv])
import torch

torch.set_grad_enabled(False)


# Calls a function until its graph is recorded, and returns the step.
def replay(function):
    def step():
        torch.compiler.cudagraph_mark_step_begin()
        function()

    for _ in range(4):
        step()
    return step


# A function with or without a step on the CPU in it.
def function(cpu_step=True):
    weights = torch.ones(256, 256, dtype=torch.bfloat16, device="cuda")
    rows = torch.ones(4, 256, dtype=torch.bfloat16, device="cuda")
    scale = torch.ones((), dtype=torch.bfloat16)

    def formula(rows):
        rows = torch.relu(rows @ weights)
        if cpu_step:
            rows = rows * (scale + 1).to("cuda")
        return torch.sigmoid(rows @ weights)

    fast = torch.compile(formula, mode="reduce-overhead")
    return replay(lambda: fast(rows))


# A token of a model with a static cache.
def static_cache(kind, compiled=True, **more):
    from transformers import AutoConfig, AutoModelForCausalLM, StaticCache

    config = AutoConfig.for_model(kind, hidden_size=256, intermediate_size=512, num_hidden_layers=1, num_attention_heads=4, vocab_size=512, **more)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    torch.set_default_dtype(torch.float32)
    cache = StaticCache(config=config, max_batch_size=1, max_cache_len=64, device="cuda", dtype=torch.bfloat16)
    token, position = torch.full((1, 1), 5, device="cuda"), torch.full((1,), 16, device="cuda")
    forward = torch.compile(model.forward, mode="reduce-overhead") if compiled else model.forward
    return replay(lambda: forward(token, past_key_values=cache, cache_position=position, use_cache=True))


museum.main(globals())

# Steps of PyTorch's own operators.
import museum  # first: it sets variables that PyTorch reads
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.set_grad_enabled(False)
torch.set_default_device("cuda")


def tensor(*shape, dtype="bfloat16"):
    return torch.ones(*shape, dtype=getattr(torch, dtype))


# A patch embedding, as vision models have.
def conv(dimensions=3, dtype="bfloat16"):
    size = (2, 14, 14)[-dimensions:]
    layer = getattr(torch.nn, f"Conv{dimensions}d")(3, 32, size, stride=size, dtype=getattr(torch, dtype))
    images = tensor(4, 3, *size, dtype=dtype)
    return lambda: layer(images)


def norm(kind="RMSNorm", dtype="bfloat16", weights="bfloat16"):
    layer = getattr(torch.nn, kind)(256, dtype=getattr(torch, weights))
    rows = tensor(4, 256, dtype=dtype)
    return lambda: layer(rows)


# Attention of 8 heads. Keys and values have `heads`; they are repeated before or by the operator.
def attention(heads=8, repeat="before", dtype="bfloat16", head_size=64, backend=None, causal=False, mask=False):
    query = tensor(1, 8, 64, head_size, dtype=dtype)
    key, value = tensor(1, heads, 64, head_size, dtype=dtype), tensor(1, heads, 64, head_size, dtype=dtype)
    options = {"is_causal": causal}
    if mask:
        options["attn_mask"] = torch.ones(64, 64, dtype=torch.bool)
    if repeat == "inside":
        options["enable_gqa"] = True

    def step():
        keys, values = (key, value) if repeat == "inside" else (one.repeat_interleave(8 // heads, 1) for one in (key, value))
        return F.scaled_dot_product_attention(query, keys, values, **options)

    if backend is None:
        return step

    def step_of_backend():
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return step()

    return step_of_backend


# Rows of a GPU's tensor are assigned by a mask or by indices.
def assign(by="mask", device="cpu"):
    rows = tensor(8, 256)
    values = tensor(8, 256)
    if by == "mask":
        where = torch.ones(8, dtype=torch.bool, device=device)
    else:
        where = torch.arange(8, device=device)

    def step():
        rows[where] = values

    return step


museum.main(globals())

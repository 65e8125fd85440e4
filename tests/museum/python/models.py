# Steps of Hugging Face's transformers, with models of two layers and made-up weights.
import museum  # first: it sets variables that PyTorch reads
import torch
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 512}


def make(kind, attention="sdpa", dtype="bfloat16", **more):
    config = AutoConfig.for_model(kind, **{**sizes, **more})
    config._attn_implementation = attention
    torch.set_default_dtype(getattr(torch, dtype))
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()
    torch.set_default_dtype(torch.float32)
    return model


# One forward of a prompt.
def forward(kind, use_cache=True, tokens=64, **more):
    model = make(kind, **more)
    prompt = torch.arange(2, tokens + 2, device="cuda").unsqueeze(0)
    return lambda: model(prompt, use_cache=use_cache)


# One token after a prompt. The cache grows by one each time; its kernels stay the same.
def decode(kind, **more):
    model = make(kind, **more)
    cache = model(torch.arange(2, 18, device="cuda").unsqueeze(0), use_cache=True).past_key_values
    token = torch.full((1, 1), 5, device="cuda")

    return lambda: model(token, past_key_values=cache, use_cache=True)


museum.main(globals())

# transformers.py MODEL TOKENS [NAME=VALUE ...]: Hugging Face's transformers generates on a GPU. MODEL is a folder with
# config.json; weights are made up. NAME=VALUE goes to the model: attn_implementation=eager.
import sys
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM

folder, tokens, *given = sys.argv[1:]
settings = dict(one.split("=", 1) for one in given)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16, **settings).eval()
model.generation_config.eos_token_id = None  # tokens are counted: no sequence ends before
prompt = torch.arange(2, 18, device="cuda").unsqueeze(0)
start = time.perf_counter()
done = model.generate(prompt, max_new_tokens=int(tokens), do_sample=False)
generated = done.shape[1] - prompt.shape[1]
print(f"{generated} tokens, {generated / (time.perf_counter() - start)} tokens/s")

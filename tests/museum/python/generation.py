# Tokens of generate(), of a model of two layers with made-up weights.
import sys
import time

import museum  # first: it sets variables that PyTorch reads
import torch
from transformers import AutoConfig, AutoModelForCausalLM, LogitsProcessor, LogitsProcessorList


class Enough(Exception):
    pass


# Ends generate() after as many tokens as weir asks for. Its own check reads what no kernel wrote.
class Limit(LogitsProcessor):
    def __init__(self, tokens):
        self.left = tokens

    def __call__(self, ids, scores):
        self.left -= 1
        if self.left < 0:
            raise Enough
        return scores


def tokens(kind, mask=False, **more):
    config = AutoConfig.for_model(kind, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, vocab_size=512, **more)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    torch.set_default_dtype(torch.float32)
    model.generation_config.eos_token_id = None
    prompt = torch.arange(2, 18, device="cuda").unsqueeze(0)
    given = {"attention_mask": torch.ones_like(prompt)} if mask else {}
    count, start = int(sys.argv[1]), time.perf_counter()
    try:
        model.generate(prompt, max_new_tokens=64, do_sample=False, logits_processor=LogitsProcessorList([Limit(count)]), **given)
    except Enough:
        museum.report(count, start)
    sys.exit()


museum.main(globals())

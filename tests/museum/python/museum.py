# What the museum's scripts share: side.json beside the script says which step runs, and with what.
import json
import os
import sys
import time

side = json.load(open("side.json"))
os.environ.update(side["environment"])


# Prints what the preset torch-script reads: how many steps ran, and how fast.
def report(tokens, start):
    print(f"{tokens} tokens, {tokens / (time.perf_counter() - start)} tokens/s")


# Makes the step that the side names, and repeats it as often as weir asks.
def main(steps):
    step = steps[side["step"]](**side["settings"])
    tokens = int(sys.argv[1])
    start = time.perf_counter()
    for _ in range(tokens):
        step()
    report(tokens, start)

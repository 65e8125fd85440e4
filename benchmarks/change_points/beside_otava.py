"""Apache Otava's answer beside weir's, on the same series of 150 nights, by both programs as published.

    python3 -m venv otava && otava/bin/pip install apache-otava==0.8.0
    benchmarks/change_points/beside_otava.py --otava otava/bin/otava --weir build/weir

Prints two Markdown tables. Series depend on --seed alone; the recorded ones are in
benchmarks/decision_quality/traces, taken as tokens a second in the order of their recording.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import subprocess
import tempfile

NIGHTS, STEP, BEGIN = 150, 100, 1767225600
TRACES = pathlib.Path(__file__).parent.parent / "decision_quality/traces"


def t3(draw):
    """Student's t with 3 degrees of freedom, of variance 1."""
    return draw.gauss(0, 1) / (sum(draw.gauss(0, 1) ** 2 for _ in range(3)) / 3) ** 0.5 / 3**0.5


def spikes(draw):
    return draw.gauss(0, 1) + (draw.choice((-8, 8)) if draw.random() < 0.03 else 0)


def noise(draw, kind, correlation):
    """NIGHTS values of variance 1 around 0, with autocorrelation from night to night."""
    value, values = kind(draw), []
    for _ in range(NIGHTS):
        values.append(value)
        value = correlation * value + (1 - correlation**2) ** 0.5 * kind(draw)
    return values


def made(draw, kind=lambda draw: draw.gauss(0, 1), correlation=0.0, spread=0.02, step=0.0, drift=0.0):
    """A series around 100: `step` in standard deviations at night STEP, `drift` a night from 60 on."""
    return [
        100 * (1 + spread * (value + (step if night >= STEP else 0))) * (1 + drift) ** max(0, night - 60)
        for night, value in enumerate(noise(draw, kind, correlation))
    ]


def recorded():
    """All whole stretches of NIGHTS runs of the recorded traces."""
    for name, tokens in (("tg48", 48), ("tg300", 300), ("pp128", 128), ("pp256", 256)):
        rates = [tokens / (int(line) / 1e9) for line in (TRACES / f"{name}.txt").read_text().split()]
        for begin in range(0, len(rates) - NIGHTS + 1, NIGHTS):
            yield rates[begin : begin + NIGHTS]


def otava(program, series, folder):
    """→ for each series the nights at which it sees a change."""
    names = [f"s{number}" for number in range(len(series))]
    with open(folder / "otava.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", *names])
        for night, values in enumerate(zip(*series)):
            rows.writerow([BEGIN + night * 86400, *values])
    metrics = "".join(f"      {name}: {{column: {name}, direction: 1}}\n" for name in names)
    (folder / "otava.yaml").write_text(
        f"tests:\n  t:\n    type: csv\n    file: {folder}/otava.csv\n    time_column: time\n    attributes: []\n    metrics:\n{metrics}"
    )
    printed = subprocess.run(
        [program, "analyze", "t", "--since", "2020-01-01", "--output", "json"],
        env={**os.environ, "OTAVA_CONFIG": str(folder / "otava.yaml")}, check=True, capture_output=True, text=True,
    ).stdout
    places = [[] for _ in series]
    for group in json.loads(printed[printed.index("{") :])["t"]:
        for change in group["changes"]:
            places[int(change["metric"][1:])].append(change["index"])
    return places


def weir(program, series, folder):
    """→ for each series the nights at which it sees a change."""
    database = folder / "history.db"
    database.unlink(missing_ok=True)
    with open(folder / "weir.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["cell", "metric", "time", "value"])
        for night, values in enumerate(zip(*series)):
            for number, value in enumerate(values):
                rows.writerow([f"made/s{number}/cpu/p", "decode_tokens_per_second", BEGIN + night * 86400, value])
    subprocess.run([program, "trend", "import", "--csv", folder / "weir.csv", "--db", database], check=True, capture_output=True)
    asked = [program, "trend", "changes", "--db", database, "--all", "--json"]
    ended = subprocess.run(asked, capture_output=True, text=True, cwd=folder)
    if ended.returncode not in (0, 1):  # 1: a change for the worse
        raise RuntimeError(ended.stderr)
    places = [[] for _ in series]
    for change in json.loads(ended.stdout):
        places[int(change["cell"].split("/")[1][1:])].append(change["index"])
    return places


def share(part, whole):
    return f"{100 * part / whole:.0f} %"


def is_step(place):
    return abs(place - STEP) <= 3


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--otava", required=True)
    options.add_argument("--weir", required=True)
    options.add_argument("--series", type=int, default=100, help="of each kind (default: 100)")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    draw = random.Random(given.seed)
    programs = ((weir, os.path.abspath(given.weir)), (otava, os.path.abspath(given.otava)))
    kinds = {
        "nothing: normal": {},
        "nothing: normal, correlation 0.6": {"correlation": 0.6},
        "nothing: Student's t": {"kind": t3},
        "nothing: spikes": {"kind": spikes},
        "a step of -3 σ": {"step": -3},
        "a step of -10 σ": {"step": -10},
        "a step of -3 σ, correlation 0.6": {"correlation": 0.6, "step": -3},
        "a drift of -0.1 % a night": {"spread": 0.005, "drift": -0.001},
    }
    all_series = {name: [made(draw, **kind) for _ in range(given.series)] for name, kind in kinds.items()}
    all_series["recorded, nothing changed"] = list(recorded())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print("| what changed | series | with a change: weir | Otava | step within 3 nights of its place: weir | Otava | other changes a series: weir | Otava |")
        print("| --- | --: | --: | --: | --: | --: | --: | --: |")
        for name, series in all_series.items():
            answers = [ask(program, series, folder) for ask, program in programs]
            stepped = "step" in name
            cells = [share(sum(map(bool, places)), len(series)) for places in answers]
            cells += [share(sum(any(map(is_step, of)) for of in places), len(series)) if stepped else "" for places in answers]
            cells += [f"{sum(sum(not (stepped and is_step(at)) for at in of) for of in places) / len(series):.2f}" for places in answers]
            print("|", " | ".join([name, str(len(series)), *cells]), "|", flush=True)
        print("\n| what changed | program | 3 nights after | 5 | 8 | 12 | 24 |\n| --- | --- | --: | --: | --: | --: | --: |")
        for name in [name for name in kinds if "step" in name]:
            for ask, program in programs:
                found = []
                for nights in (3, 5, 8, 12, 24):
                    places = ask(program, [values[: STEP + nights] for values in all_series[name]], folder)
                    found.append(share(sum(any(map(is_step, of)) for of in places), len(places)))
                print("|", " | ".join([name, ask.__name__, *found]), "|", flush=True)


if __name__ == "__main__":
    main()

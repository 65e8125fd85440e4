// Load tools as their users run them, against the tests' own server of a model: weir reads from a tool's file what the tool
// itself prints. Each runs twice, 24 requests of 12 tokens by four clients: all are answered, or every fourth with HTTP 503.
// ci/load-tools gets the tools; WEIR_BUILD names the build folder. Nothing here depends on how fast they are.
import assert from "node:assert/strict";
import {execFileSync, spawn} from "node:child_process";
import {existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createServer} from "node:net";
import {tmpdir} from "node:os";
import {join} from "node:path";
import test from "node:test";
import {fileURLToPath} from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url)), build = process.env.WEIR_BUILD ?? join(root, "build");
const tools = join(root, ".cache/load-tools"), requests = 24, tokens = 12, clients = 4;
const stand_in = (names, module, call) => [join(root, "tests/load_tools/without_torch.py"), names, module, call];

// The last number of the line that begins with `label`, as it stands there.
const after = label => text => [...text.matchAll(new RegExp(`^ *${label.replace(/[()/]/g, "\\$&")}: +(\\S+)`, "gm"))].at(-1)?.[1];
// The cell in `column` of the last row that `row` begins, in the last table with `heading` above it; columns count from 0.
const cell = (heading, row, column) => text => {
  const table = text.slice(text.lastIndexOf(heading));
  const cells = table.split("\n").map(line => line.split(/[|│]/).slice(1, -1).map(one => one.trim())).find(([first]) => first === row);
  return cells?.[column]?.replace(/[,*]/g, "");
};
const of_serving = (end_to_end, failed) => ({
  completed: after("Successful requests"), failed, input: after("Total input tokens"), output: after("Total generated tokens"),
  figures: [
    ["output_tokens_per_second", "mean", 1, after("Output token throughput (tok/s)")],
    ["requests_per_second", "mean", 1, after("Request throughput (req/s)")],
    ["time_to_first_token_seconds", 50, 1e3, after("Median TTFT (ms)")],
    ["time_to_first_token_seconds", 99, 1e3, after("P99 TTFT (ms)")],
    ["time_per_output_token_seconds", 50, 1e3, after("Median TPOT (ms)")],
    ["inter_token_latency_seconds", 99, 1e3, after("P99 ITL (ms)")],
    ["end_to_end_latency_seconds", 50, 1e3, after(`Median ${end_to_end} (ms)`)],
    ["end_to_end_latency_seconds", 99, 1e3, after(`P99 ${end_to_end} (ms)`)],
  ],
});
const aiperf = (row, column = 1) => cell("NVIDIA AIPerf | LLM Metrics", row, column);
const guidellm = (heading, column) => cell(heading, `concurrent@${clients}`, column);

const table = [
  {
    name: "vllm bench serve", format: "vllm", file: "result.json",
    console: true,
    command: (url, tokenizer, file) => [
      ...stand_in("torch,vllm.env_override,vllm.inputs,vllm.lora,vllm.multimodal,vllm.platforms,vllm.utils.torch_utils", "vllm.benchmarks.serve",
                  "parser = __import__('vllm.utils.argparse_utils', fromlist=['_']).FlexibleArgumentParser(); add_cli_args(parser); main(parser.parse_args())"),
      "--backend", "openai", "--base-url", url, "--model", "m", "--tokenizer", tokenizer, "--dataset-name", "random", "--random-input-len", "20",
      "--random-output-len", `${tokens}`, "--num-prompts", `${requests}`, "--max-concurrency", `${clients}`, "--percentile-metrics", "ttft,tpot,itl,e2el",
      "--save-result", "--result-filename", file],
    printed: of_serving("E2EL", after("Failed requests")),
  },
  {
    name: "SGLang's bench_serving", format: "sglang", file: "result.jsonl",
    console: true,
    command: (url, tokenizer, file) => [
      ...stand_in("torch,triton,IPython,sglang.lang,sglang.srt.disaggregation,sglang.srt.utils.common,sglang.srt.utils.hf_transformers_patches",
                  "sglang.benchmark.serving", "cli_main()"),
      "--backend", "vllm", "--base-url", url, "--model", "m", "--tokenizer", tokenizer, "--dataset-name", "random-ids", "--random-input-len", "20",
      "--random-output-len", `${tokens}`, "--random-range-ratio", "1", "--num-prompts", `${requests}`, "--max-concurrency", `${clients}`, "--output-file", file],
    printed: of_serving("E2E Latency"),
  },
  {
    name: "AIPerf", format: "aiperf", file: "profile_export_aiperf.json",
    env: {HF_HUB_OFFLINE: ""},  // with it AIPerf takes no folder for a tokenizer
    command: (url, tokenizer) => [
      join(tools, "bin/aiperf"), "profile", "--model", "m", "--endpoint-type", "completions", "--streaming", "--url", url, "--tokenizer", tokenizer,
      "--concurrency", `${clients}`, "--request-count", `${requests}`, "--prompt-input-tokens-mean", "20", "--prompt-input-tokens-stddev", "0",
      "--prompt-output-tokens-mean", `${tokens}`, "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics", "--max-workers", "1",
      "--record-processor-service-count", "1", "--output-artifact-dir", "."],
    printed: {
      completed: aiperf("Request Count (requests)"), failed: cell("NVIDIA AIPerf | Error Summary", "503", 3),
      figures: [
        ["output_tokens_per_second", "mean", 1, aiperf("Output Token Throughput (tokens/sec)")],
        ["requests_per_second", "mean", 1, aiperf("Request Throughput (requests/sec)")],
        ["time_to_first_token_seconds", 50, 1e3, aiperf("Time to First Token (ms)", 6)],
        ["time_to_first_token_seconds", 99, 1e3, aiperf("Time to First Token (ms)", 4)],
        ["time_per_output_token_seconds", 50, 1e3, aiperf("Inter Token Latency (ms)", 6)],
        ["end_to_end_latency_seconds", 50, 1e3, aiperf("Request Latency (ms)", 6)],
        ["end_to_end_latency_seconds", 99, 1e3, aiperf("Request Latency (ms)", 4)],
      ],
    },
  },
  {
    name: "guidellm", format: "guidellm", file: "result.json",
    command: (url, tokenizer, file) => [
      ...stand_in("torch", "guidellm.__main__", "cli()"), "run", "--backend", `kind=openai_http,target=${url},model=m`,
      "--profile", `kind=concurrent,streams=${clients}`, "--constraint", `kind=max_requests,count=${requests}`,
      "--tokenizer", `kind=huggingface_auto,model=${tokenizer}`, "--data", `kind=synthetic_text,prompt_tokens=20,output_tokens=${tokens}`,
      "--output", `kind=json,path=${file}`, "--output", "kind=console", "--disable-console-interactive"],
    printed: {
      completed: guidellm("Run Summary Info", 6), failed: guidellm("Run Summary Info", 8), input: guidellm("Run Summary Info", 9),
      output: guidellm("Run Summary Info", 12),
      figures: [
        ["output_tokens_per_second", "mean", 1, guidellm("Server Throughput Statistics", 5)],
        ["time_to_first_token_seconds", 50, 1e3, guidellm("Request Latency Statistics", 5)],
        ["time_to_first_token_seconds", 95, 1e3, guidellm("Request Latency Statistics", 6)],
        ["time_per_output_token_seconds", 50, 1e3, guidellm("Request Latency Statistics", 11)],
        ["end_to_end_latency_seconds", 50, 1, guidellm("Request Latency Statistics", 2)],
      ],
    },
  },
  {
    name: "inference-perf", format: "inference-perf", file: "stage_0_lifecycle_metrics.json",
    command: (url, tokenizer) => [
      ...stand_in("av,boto3,botocore,google,opentelemetry", "inference_perf.main", "main_cli()"), "--server.type", "vllm", "--server.base_url", url,
      "--server.model_name", "m", "--tokenizer.pretrained_model_name_or_path", tokenizer, "--data.type", "random",
      ...[["input", 20], ["output", tokens]].flatMap(([what, number]) =>
        [["type", "fixed"], ["min", number], ["mean", number], ["max", number]].flatMap(([key, value]) => [`--data.${what}_distribution.${key}`, `${value}`])),
      "--load.type", "concurrent", "--load.num_workers", "1", "--load.stages", JSON.stringify([{num_requests: requests, concurrency_level: clients}]),
      "--api.streaming", "true", "--storage.local_storage.path", "."],
    printed: {
      completed: cell("Request Error Summary", "0", 1), failed: text => cell("Request Error Summary", "0", 2)(text) ?? "0",
      figures: [
        ["output_tokens_per_second", "mean", 1, cell("Throughput and Goodput Summary", "0", 6)],
        ["requests_per_second", "mean", 1, cell("Throughput and Goodput Summary", "0", 4)],
        ["time_to_first_token_seconds", 50, 1e3, cell("Request & Token Latency", "0", 5)],
        ["time_to_first_token_seconds", 90, 1e3, cell("Request & Token Latency", "0", 6)],
        ["inter_token_latency_seconds", 50, 1e3, cell("Request & Token Latency", "0", 8)],
        ["end_to_end_latency_seconds", 50, 1e3, cell("Request & Token Latency", "0", 2)],
        ["end_to_end_latency_seconds", 90, 1e3, cell("Request & Token Latency", "0", 3)],
      ],
    },
  },
];

// A word is a token, so that a tool that counts the server's words counts its tokens.
function write_tokenizer(folder) {
  mkdirSync(folder);
  const vocab = Object.fromEntries(["[UNK]", ...Array.from({length: 256}, (_, i) => `t${i}`)].map((word, i) => [word, i]));
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify({
    version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: {type: "WhitespaceSplit"},
    post_processor: null, decoder: null, model: {type: "WordLevel", vocab, unk_token: "[UNK]"}}));
  writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify({tokenizer_class: "PreTrainedTokenizerFast", model_max_length: 4096}));
}

const free_port = () => new Promise(use => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const {port} = server.address();
    server.close(() => use(port));
  });
});

async function start_server(mode) {
  const port = await free_port();
  const server = spawn(join(build, "tests/fake_engines/fake_server"), [mode, `${port}`], {stdio: ["ignore", "pipe", "ignore"]});
  await new Promise((use, fail) => server.stdout.once("data", use).once("end", () => fail(new Error("the server ended"))));
  return {url: `http://127.0.0.1:${port}`, stop: () => server.kill("SIGKILL")};
}

// → what the tool printed
function run_tool(command, folder, more) {
  const env = {
    PATH: `${tools}/bin:${process.env.PATH}`, HOME: folder, COLUMNS: "240", LC_ALL: "C.UTF-8", HF_HUB_OFFLINE: "1", HF_HUB_DISABLE_TELEMETRY: "1",
    NO_COLOR: "1", ...more};
  return new Promise((use, fail) => {
    const tool = spawn(join(tools, "bin/python"), command, {cwd: folder, env, stdio: ["ignore", "pipe", "pipe"]});
    let text = "";
    for (const stream of [tool.stdout, tool.stderr]) stream.setEncoding("utf8").on("data", piece => { text += piece; });
    tool.on("error", fail).on("close", code => code === 0 ? use(text) : fail(new Error(`exit code ${code}:\n${text.slice(-4000)}`)));
  });
}

const read = file => JSON.parse(execFileSync(join(build, "weir"), ["profile", file, "--json"], {encoding: "utf8", stdio: ["ignore", "pipe", "pipe"]}));
const value_of = (profile, metric, figure) => figure === "mean"
  ? profile.timings.find(one => one.metric === metric)?.mean
  : profile.latencies.find(one => one.metric === metric && (one.percentile === figure || (figure === 50 && one.figure === "median")))?.seconds;

// `printed` is rounded: the last place may be half off.
function assert_printed(value, factor, printed, what) {
  assert.match(printed ?? "", /^[\d.]+$/, `${what}: the tool prints a number`);
  const places = (printed.split(".")[1] ?? "").length;
  assert.ok(Math.abs(value * factor - Number(printed)) <= 0.5001 * 10 ** -places, `${what}: weir reads ${value * factor}, the tool prints ${printed}`);
}

function assert_same(profile, printed, text, answered) {
  const [run] = profile.cases;
  assert.equal(profile.cases.length, 1);
  assert.equal(Number(printed.completed(text)), answered);
  assert.equal(Number(run.facts.completed ?? answered), answered);
  if (printed.failed) assert.equal(Number(printed.failed(text) ?? 0), requests - answered);
  assert.equal(run.generated_tokens, answered * tokens);
  for (const [name, value] of [["input", run.prompt_tokens], ["output", run.generated_tokens]]) {
    if (printed[name]) assert_printed(value, 1, printed[name](text), `${name} tokens`);
  }
  for (const [metric, figure, factor, find] of printed.figures) {
    assert_printed(value_of(profile, metric, figure), factor, find(text), `${metric} ${figure}`);
  }
  // The server takes 15 ms to the first token and 3 ms for each: no clock sees less.
  assert.ok(value_of(profile, "time_to_first_token_seconds", 50) >= 0.015);
  assert.ok(value_of(profile, "end_to_end_latency_seconds", 50) >= 0.015 + 0.003 * tokens);
}

for (const tool of table) {
  for (const [mode, answered] of [["steady", requests], ["overloaded", requests * 3 / 4]]) {
    test(`${tool.name}: ${answered} of ${requests} requests answered`, {timeout: 300_000}, async t => {
      if (!existsSync(join(tools, "stamp"))) return t.skip("run ci/load-tools");
      const folder = mkdtempSync(join(tmpdir(), "weir-load-tool-"));
      const server = await start_server(mode);
      try {
        write_tokenizer(join(folder, "tokenizer"));
        const text = await run_tool(tool.command(server.url, join(folder, "tokenizer"), tool.file), folder, tool.env);
        writeFileSync(join(folder, "console.txt"), text);
        const profile = read(join(folder, tool.file));
        assert.equal(profile.format, tool.format);
        assert_same(profile, tool.printed, text, answered);
        const failures = tool.printed.failed && answered < requests ? [`${requests - answered} of ${requests} requests failed`] : [];
        assert.deepEqual((profile.errors ?? []).map(error => error.replace(/^.*: /, "")), failures);
        const silent = tool.printed.failed ? [] : ["run 0: it does not say how many requests failed"];
        assert.deepEqual((profile.warnings ?? []), silent);
        if (tool.console) assert_same(read(join(folder, "console.txt")), tool.printed, text, answered);
      } finally {
        server.stop();
        rmSync(folder, {recursive: true, force: true});
      }
    });
  }
}

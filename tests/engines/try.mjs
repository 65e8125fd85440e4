// try.mjs WEIR PACKAGES LLAMA NAME...: each engine under weir, in a folder of its own: accepted from three processes a
// length, gated unchanged, gated with its change. Prints a row for each; exits 1 where one is not as engines.mjs says.
import {execFileSync, spawnSync} from "node:child_process";
import {cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {engines} from "./engines.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [weir, packages, llama, ...names] = process.argv.slice(2);

const makers = {
  gguf: folder => execFileSync(weir, ["model", "make", join(folder, "model")]),
  onnx: folder => execFileSync("node", [join(here, "onnx_model.mjs"), join(folder, "model")]),
  whisper: folder => execFileSync("node", [join(here, "../e2e/node/hollow_whisper.mjs"), join(folder, "model")]),
};

function config_of(name, engine) {
  const text = JSON.stringify(engine.config).replaceAll("{llama}", llama);
  const backends = engine.twins
    ? Object.fromEntries(engine.twins.map(twin => [twin, {device: "vulkan", twin, compile: "off", ...(engine.args && {args: engine.args})}]))
    : {[engine.device ?? "cpu"]: engine.args ? {args: engine.args} : {}};
  return {version: 1, engines: {[name]: JSON.parse(text)}, models: {tiny: engine.model ? "model" : "/dev/null"}, backends,
    prompts: engine.prompts ?? {decode: {prompt_tokens: 0, tokens: 32}}};
}

function gate(folder, env) {
  const ended = spawnSync(weir, ["gate", "--counts-only", "--baselines", "base", "--quiet", "--json", "-"],
    {cwd: folder, env: {...process.env, ...env}, encoding: "utf8", maxBuffer: 1 << 28});
  let verdict = null;
  try { verdict = JSON.parse(ended.stdout); } catch { /* what it said instead stands in stderr */ }
  return {code: ended.status, verdict, said: ended.stderr};
}

function files_below(folder) {
  return readdirSync(folder, {withFileTypes: true}).flatMap(one =>
    one.isDirectory() ? files_below(join(folder, one.name)) : [join(folder, one.name)]);
}

// What of a baseline is exact, and what is not; of counts per token alone.
function natures(folder) {
  const exact = new Set(), others = new Set();
  for (const file of files_below(folder)) {
    for (const [name, count] of Object.entries(JSON.parse(readFileSync(file)).counts ?? {})) {
      if (/_(fixed|bytes)$/.test(name)) continue;
      (count !== null && (typeof count !== "object" || count.exact !== undefined) ? exact : others).add(name);
    }
  }
  return {exact, others};
}

let bad = 0;
for (const name of names) {
  const engine = engines[name];
  if (engine === undefined) throw new Error(`no engine "${name}": ${Object.keys(engines).join(", ")}`);
  const folder = mkdtempSync(join(tmpdir(), "weir-engine-"));
  const from = Date.now();
  const problems = [];
  try {
    for (const file of readdirSync(here)) if (file.endsWith(".mjs")) cpSync(join(here, file), join(folder, file));
    if (!engine.native) symlinkSync(packages, join(folder, "node_modules"));
    if (engine.model) makers[engine.model](folder);
    writeFileSync(join(folder, "weir.yaml"), JSON.stringify(config_of(name, engine), null, 1));
    const accepted = spawnSync(weir, ["baseline", "accept", "--counts-only", "--baselines", "base"], {cwd: folder, encoding: "utf8"});
    if (accepted.status !== 0) throw new Error(`not accepted: ${accepted.stdout}${accepted.stderr}`);
    const {exact, others} = natures(join(folder, "base"));
    if (exact.size === 0) problems.push("nothing is exact");
    const same = gate(folder, {});
    if (same.code !== 0) problems.push(`unchanged, exit ${same.code}: ${same.said}`);
    const changed = gate(folder, engine.change.env);
    if (changed.code !== 1) problems.push(`changed, exit ${changed.code}: ${changed.said}`);
    const cells = changed.verdict?.cells ?? [];
    for (const cell of cells) {
      const first = cell.findings?.[0];
      if (first?.kind !== engine.change.want) problems.push(`${cell.cell}: wanted ${engine.change.want}, got ${first?.kind}: ${first?.text ?? cell.verdict}`);
    }
    const per_token = same.verdict?.cells[0]?.judgements.filter(one => /^(dispatches|barriers|syncs)_per_(token|prefill)$/.test(one.subject))
      .map(one => `${one.subject.replace(/_per.*/, "")} ${one.current}`).join(", ");
    console.log(`${problems.length === 0 ? "ok " : "BAD"} ${name}: ${cells.length} cells, ${exact.size} counts exact, ${others.size} vary; ` +
      `a token of the first: ${per_token}; changed: ${cells[0]?.findings?.[0]?.text.split("\n")[0] ?? "nothing"} (${((Date.now() - from) / 1000).toFixed(0)} s)`);
  } catch (error) {
    problems.push(error.message);
    console.log(`BAD ${name}`);
  }
  for (const problem of problems) console.log(`    ${problem}`);
  bad += problems.length > 0 ? 1 : 0;
  if (problems.length > 0 && process.env.KEEP) console.log(`    kept in ${folder}`);
  else rmSync(folder, {recursive: true, force: true});
}
process.exit(bad > 0 ? 1 : 0);

// What docs/how-to/script-engines.md says, as a new user types it: its five commands, for each engine of its table, end in a green gate within
// three minutes. So do its four for llama-bench, which ci/llama.cpp puts into engines/, and the weir.yaml of docs/how-to/webgpu.md, on Dawn. `npm install` and `curl` are stood in for: packages come from
// .cache/engines, where ci/engines puts them, scripts from this checkout. WEIR_PROGRAM names weir.
import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import test from "node:test";
import {fileURLToPath} from "node:url";
import {make_model} from "./onnx_model.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url)), packages = join(root, ".cache/engines/node_modules");
const weir = process.env.WEIR_PROGRAM ?? join(root, "build/weir");
const page = name => readFileSync(join(root, "docs/how-to", name), "utf8");
const block = (text, kind = "") => text.match(new RegExp("```" + kind + "\\n([^]*?)```"))[1];
const lines = text => block(text).trim().split("\n"), [, after_five] = page("script-engines.md").split("A program needs four.");
const commands = lines(page("script-engines.md")), for_a_program = lines(after_five), bench = join(root, "engines/llama.cpp");
const rows = [...page("script-engines.md").matchAll(/^\| `(.*?)` +\| (.*?) +\| (.*?) +\| `tests\/engines\/(.*?)` +\|$/gm)].map(([, preset, names, model, script]) =>
  ({preset, packages: [...names.matchAll(/`(.*?)`/g)].map(([, name]) => name), model, script}));

const models = {
  GGUF: null,  // by the command itself
  ONNX: () => writeFileSync("models/tiny.onnx", make_model(4)),
  "whisper.cpp's `.bin`": () => execFileSync("node", [join(root, "tests/e2e/node/hollow_whisper.mjs"), "models/tiny.bin"]),
};

function in_a_new_folder(needed, run, from = packages) {
  return t => {
    const missing = needed.filter(name => !existsSync(join(from, name)));
    if (missing.length > 0) return t.skip(`${missing} not in ${from}: run ci/engines`);
    const folder = mkdtempSync(join(tmpdir(), "weir-new-user-"));
    process.chdir(folder);
    mkdirSync("bin");
    writeFileSync("bin/npx", `#!/bin/sh\nshift\nexec ${weir} "$@"\n`, {mode: 0o755});
    process.env.PATH = `${folder}/bin:${process.env.PATH}`;
    try {
      run();
    } finally {
      process.chdir(root);
      rmSync(folder, {recursive: true, force: true});
    }
  };
}
const type = command => execFileSync("sh", ["-c", command], {encoding: "utf8", stdio: ["ignore", "pipe", "pipe"]});
const install = names => {
  writeFileSync("package.json", JSON.stringify({dependencies: Object.fromEntries(names.map(name => [name, "*"]))}));
  symlinkSync(packages, "node_modules");
};

test("the page has five commands, and a table of engines", () => {
  assert.deepEqual(commands.map(line => line.split(" ").slice(0, 2).join(" ")), ["npm install", "curl -o", "npx weir", "npx weir", "npx weir"]);
  assert.equal(rows.length, 5);
  assert.equal(for_a_program.length, 4);
});

for (const one of rows) {
  test(`${one.preset}: from nothing to a green gate`, {timeout: 180_000}, in_a_new_folder(one.packages, () => {
    const [, , make, init, gate] = commands;
    install(one.packages);
    cpSync(join(root, "tests/engines", one.script), "engine.mjs");
    if (models[one.model]) mkdirSync("models"), models[one.model]();
    else type(make);
    type(init);
    assert.match(readFileSync("weir.yaml", "utf8"), new RegExp(`${one.preset}: \\{preset: ${one.preset}\\}`));
    assert.match(type(gate), /PASS {2}1 cell/);
  }));
}

test("dawn: the configuration of the page on WebGPU", {timeout: 180_000}, in_a_new_folder(["webgpu"], () => {
  install(["webgpu"]);
  cpSync(join(root, "tests/engines/dawn.mjs"), "engine.mjs");
  writeFileSync("weir.yaml", block(page("webgpu.md"), "yaml"));
  writeFileSync("model.bin", "");
  assert.match(type(commands[4]), /PASS {2}2 cells/);
}));

test("llama-bench: from nothing to a green gate", {timeout: 180_000}, in_a_new_folder(["llama-bench"], () => {
  mkdirSync("build");
  symlinkSync(bench, "build/bin");
  const [, ...typed] = for_a_program;
  assert.match(typed.map(type).at(-1), /PASS {2}2 cells/);
  assert.match(readFileSync("weir.yaml", "utf8"), /preset: llama-bench, program: \.\/build\/bin\/llama-bench/);
}, bench));

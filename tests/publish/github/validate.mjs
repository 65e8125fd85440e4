// Holds requests to GitHub's own description of its API.
//
//   node validate.mjs FOLDER REQUESTS
//
// FOLDER has node_modules as ci/github-api puts them there; REQUESTS is a file with one JSON object
// a line: {"method", "target", "body"}. Each is sent to a mock server (prism) that knows the
// description, cut down to the paths below, and answers what does not fit it with an error. Prints
// those; exit 1 where there is one, 3 where the server cannot be used.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";

const paths = [
  "/user",
  "/repos/{owner}/{repo}/issues/{issue_number}/comments",
  "/repos/{owner}/{repo}/issues/comments/{comment_id}",
  "/repos/{owner}/{repo}/check-runs",
  "/repos/{owner}/{repo}/check-runs/{check_run_id}",
  "/repos/{owner}/{repo}/check-runs/{check_run_id}/annotations",
  "/repos/{owner}/{repo}/collaborators/{username}/permission",
  "/repos/{owner}/{repo}/contents/{path}",
  "/repos/{owner}/{repo}/commits/{ref}/check-runs",
  "/repos/{owner}/{repo}/commits/{ref}/statuses",
  "/repos/{owner}/{repo}/commits/{commit_sha}/pulls",
  "/repos/{owner}/{repo}/compare/{basehead}",
  "/repos/{owner}/{repo}/statuses/{sha}",
  "/repos/{owner}/{repo}/pulls",
  "/repos/{owner}/{repo}/pulls/{pull_number}",
];

// The description with these paths alone, and of its components those that they lead to.
function reduced(all) {
  const result = { openapi: all.openapi, info: all.info, paths: {}, components: {} };
  const missing = paths.filter((path) => !all.paths[path]);
  if (missing.length) throw new Error(`not in the description: ${missing.join(", ")}`);
  const visit = (node) => {
    if (node === null || typeof node !== "object") return;
    for (const [key, value] of Object.entries(node)) {
      if (key !== "$ref" || typeof value !== "string") {
        visit(value);
        continue;
      }
      const [, , kind, name] = value.split("/");
      const component = all.components[kind][name];
      result.components[kind] ??= {};
      if (name in result.components[kind]) continue;
      result.components[kind][name] = component;
      visit(component);
    }
  };
  for (const path of paths) {
    result.paths[path] = all.paths[path];
    visit(all.paths[path]);
  }
  return result;
}

// Some examples in the description do not fit it themselves: that is not the request's fault.
function onlyItsOwn(text) {
  try {
    const { validation } = JSON.parse(text);
    return validation.length > 0 && validation.every(({ location }) => location[0] === "response");
  } catch {
    return false;
  }
}

// {path} of contents has folders in it ("x-multi-segment" in the description), which OpenAPI has no
// word for: the mock server takes them as one.
const asOneSegment = (target) =>
  target.replace(/(\/contents\/)([^?]*)/, (_, head, path) => head + path.replaceAll("/", "%2F"));

function freePort() {
  return new Promise((done) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

async function listening(port, ended) {
  for (let i = 0; i < 600 && !ended(); ++i) {
    try {
      await fetch(`http://127.0.0.1:${port}/user`);
      return true;
    } catch {
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  return false;
}

// The mock server keeps nothing, so that a request whose connection it resets is asked again.
async function ask(url, request) {
  for (let left = 5; ; --left) {
    try {
      const answer = await fetch(url, request);
      return { ok: answer.ok, status: answer.status, text: await answer.text() };
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

const [folder, requestsFile] = process.argv.slice(2);
const modules = join(folder, "node_modules");
const all = readFileSync(join(modules, "@octokit/openapi/generated/api.github.com.json"), "utf8");
const description = join(folder, "used-paths.json");
writeFileSync(description, JSON.stringify(reduced(JSON.parse(all))));

const port = await freePort();
const prism = spawn(
  process.execPath,
  [join(modules, "@stoplight/prism-cli/dist/index.js"), "mock", "--errors", "-v", "error",
   "-h", "127.0.0.1", "-p", String(port), description],
  { stdio: ["ignore", "inherit", "inherit"] },
);
let ended = false;
prism.on("exit", () => { ended = true; });
let code = 0;
try {
  if (!(await listening(port, () => ended))) {
    console.error("the mock server does not answer");
    code = 3;
  }
  const requests = readFileSync(requestsFile, "utf8").split("\n").filter((line) => line);
  for (const line of code ? [] : requests) {
    const { method, target, body } = JSON.parse(line);
    const answer = await ask(`http://127.0.0.1:${port}${asOneSegment(target)}`, {
      method,
      headers: {
        // GitHub wants application/vnd.github+json, which its description does not have.
        accept: "application/json",
        // A connection that is kept may be closed by the server as the next request comes.
        connection: "close",
        ...(body ? { "content-type": "application/json" } : {}),
      },
      body: body || undefined,
    });
    if (answer.ok || onlyItsOwn(answer.text)) continue;
    console.error(`${method} ${target}\n  ${answer.status} ${answer.text.slice(0, 2000)}`);
    console.error(`  ${(body ?? "").slice(0, 500)}`);
    code = 1;
  }
  console.log(`${requests.length} requests held to GitHub's description`);
} finally {
  prism.kill();
}
process.exitCode = code;

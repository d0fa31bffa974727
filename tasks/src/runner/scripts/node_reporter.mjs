// Reports every test as one JSON line to $TADPOLE_REPORT. Ids are `file > suite > test`.
import { appendFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { inspect } from "node:util";

const write = (event, fields = {}) =>
  appendFileSync(process.env.TADPOLE_REPORT, JSON.stringify({ event, ...fields }) + "\n");

const file = (path) => relative(process.cwd(), path).replaceAll("\\", "/");

const describe = (error) => {
  const cause = error?.cause ?? error;
  const text = cause instanceof Error || cause?.stack ? (cause.stack ?? cause.message) : inspect(cause);
  const compared = "expected" in Object(cause) ? `\nexpected: ${inspect(cause.expected)}\nactual: ${inspect(cause.actual)}` : "";
  return text.split("\n").filter((line) => !line.includes("node:internal")).join("\n") + compared;
};

const place = (message) => {
  const match = /\(?(?:file:\/\/)?(\/[^()\n]*?):(\d+):\d+\)?/.exec(message);
  return match && !match[1].includes("node_modules") ? { file: match[1], line: Number(match[2]) } : {};
};

export default async function* reporter(source) {
  const stacks = new Map();
  for await (const { type, data } of source) {
    const path = data?.file;
    if (!path) continue;
    const stack = stacks.get(path) ?? stacks.set(path, []).get(path);
    const id = () => [file(path), ...stack.slice(0, data.nesting), data.name].join(" > ");
    if (type === "test:start") {
      stack.length = data.nesting;
      stack.push(data.name);
    } else if (type === "test:pass" || type === "test:fail") {
      const failed = type === "test:fail" && !data.todo;
      const message = failed ? describe(data.details?.error) : "";
      // A file that cannot be loaded is reported as a test that has its path as name.
      if (data.nesting === 0 && resolve(data.name) === path) {
        if (failed) write("broken", { id: file(path), message, ...place(message) });
      } else if (data.details?.type !== "suite") {
        const outcome = data.skip !== undefined ? "skipped" : failed ? "failed" : "passed";
        write("finished", { id: id(), outcome, message, ...place(message) });
      }
    }
  }
  write("end");
}

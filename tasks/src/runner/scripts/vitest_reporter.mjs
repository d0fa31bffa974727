// Reports every test as one JSON line to $TADPOLE_REPORT. Ids are `file > suite > test`.
import { appendFileSync } from "node:fs";
import { relative } from "node:path";

const write = (event, fields = {}) =>
  appendFileSync(process.env.TADPOLE_REPORT, JSON.stringify({ event, ...fields }) + "\n");

const file = (path) => relative(process.cwd(), path).replaceAll("\\", "/");

const describe = (errors) => {
  const parts = (errors ?? []).map((error) => {
    const stack = (error.stack ?? "").split("\n").filter((line) => /^\s*at |:\d+:\d+/.test(line));
    const shown = stack.filter((line) => !line.includes("node_modules")).slice(0, 12).join("\n");
    return [`${error.name ?? "Error"}: ${error.message}`, error.diff, shown].filter(Boolean).join("\n");
  });
  return parts.join("\n\n");
};

const place = (errors) => {
  for (const error of errors ?? []) {
    const frames = error.stacks ?? error.parsedStack ?? [];
    const own = frames.find((frame) => frame.file && !frame.file.includes("node_modules"));
    if (own) return { file: own.file, line: own.line };
    const match = /\(?((?:\/|[A-Za-z]:\\)[^()\n]*?):(\d+):\d+\)?/.exec(error.stack ?? "");
    if (match && !match[1].includes("node_modules")) return { file: match[1], line: Number(match[2]) };
  }
  return {};
};

const OUTCOMES = { passed: "passed", pass: "passed", failed: "failed", fail: "failed" };

export default class Reporter {
  #modern = false;
  #broken = new Set();

  onTestModuleCollected(module) {
    this.#modern = true;
    for (const test of module.children.allTests()) write("collected", { id: this.#id(test) });
  }

  #id(test) {
    const names = [test.name];
    for (let suite = test.parent; suite && suite.type === "suite"; suite = suite.parent) names.unshift(suite.name);
    return [file(test.module.moduleId), ...names].join(" > ");
  }

  onTestCaseReady(test) {
    write("started", { id: this.#id(test) });
  }

  onTestCaseResult(test) {
    const { state, errors } = test.result();
    const outcome = OUTCOMES[state] ?? "skipped";
    write("finished", { id: this.#id(test), outcome, message: describe(errors), ...place(errors) });
  }

  // Called at the end for all modules too, as one that could not be loaded has no end of its own.
  onTestModuleEnd(module) {
    const errors = module.errors();
    if (!errors.length || this.#broken.has(module.moduleId)) return;
    this.#broken.add(module.moduleId);
    write("broken", { id: file(module.moduleId), message: describe(errors), ...place(errors) });
  }

  onTestRunEnd(modules, errors) {
    this.#modern = true;
    modules.forEach((module) => this.onTestModuleEnd(module));
    if (errors.length) write("broken", { id: "", message: describe(errors), ...place(errors) });
    write("end");
  }

  // Vitest 1 and 2 only know this one.
  onFinished(files = [], errors = []) {
    if (this.#modern) return;
    const visit = (task, names) => {
      if (task.tasks) return task.tasks.forEach((inner) => visit(inner, [...names, inner.name]));
      const problems = task.result?.errors;
      const outcome = OUTCOMES[task.result?.state] ?? "skipped";
      write("finished", { id: names.join(" > "), outcome, message: describe(problems), ...place(problems) });
    };
    for (const module of files) {
      const id = file(module.filepath);
      module.tasks.forEach((task) => visit(task, [id, task.name]));
      const problems = module.result?.errors;
      if (problems?.length) write("broken", { id, message: describe(problems), ...place(problems) });
    }
    if (errors.length) write("broken", { id: "", message: describe(errors), ...place(errors) });
    write("end");
  }
}

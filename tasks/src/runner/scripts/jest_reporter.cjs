// Reports every test as one JSON line to $TADPOLE_REPORT. Ids are `file > suite > test`.
const { appendFileSync } = require("node:fs");
const { relative } = require("node:path");

const write = (event, fields = {}) =>
  appendFileSync(process.env.TADPOLE_REPORT, JSON.stringify({ event, ...fields }) + "\n");

const file = (path) => relative(process.cwd(), path).replaceAll("\\", "/");
const plain = (text) => text.replace(/\u001b\[[0-9;]*m/g, "");
const OUTCOMES = { passed: "passed", failed: "failed" };

const place = (message) => {
  for (const [, path, line] of message.matchAll(/\(?((?:\/|[A-Za-z]:\\)[^()\n]*?):(\d+):\d+\)?/g)) {
    if (!path.includes("node_modules")) return { file: path, line: Number(line) };
  }
  return {};
};

module.exports = class Reporter {
  onTestCaseStart(test, info) {
    write("started", { id: [file(test.path), ...info.ancestorTitles, info.title].join(" > ") });
  }

  onTestFileResult(test, result) {
    for (const one of result.testResults) {
      const id = [file(test.path), ...one.ancestorTitles, one.title].join(" > ");
      const lines = plain(one.failureMessages.join("\n\n")).split("\n");
      const message = lines.filter((line) => !line.includes("node_modules")).join("\n");
      write("finished", { id, outcome: OUTCOMES[one.status] ?? "skipped", message, ...place(message) });
    }
    if (result.testExecError) {
      const message = plain(result.failureMessage ?? String(result.testExecError.message));
      write("broken", { id: file(test.path), message, ...place(message) });
    }
  }

  onRunComplete() {
    write("end");
  }
};

// Holds dashboards against the types that Grafana publishes: node check.mjs FILE.json…
// Each dashboard becomes a constant that must satisfy `Dashboard`, each panel's options and custom field settings constants
// that must satisfy the types of its visualization. What the compiler says is printed; the exit code is 1 if it says anything.
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import ts from "typescript";

const RAW = "./node_modules/@grafana/schema/dist/types/raw";
const VISUALIZATIONS = {
  heatmap: "heatmap", stat: "stat", "state-timeline": "statetimeline", table: "table", text: "text", timeseries: "timeseries",
};
// In JSON an enum is written as its value.
const LOOSE = "type Loose<T> = T extends string ? T | `${T}` "
  + ": T extends number ? T | (`${T}` extends `${infer N extends number}` ? N : never) "
  + ": T extends (infer U)[] ? Loose<U>[] : T extends object ? { [K in keyof T]: Loose<T[K]> } : T;";

function asTypeScript(dashboard) {
  const lines = [`import type { Dashboard } from "${RAW}/dashboard/x/types.gen";`, LOOSE];
  for (const name of new Set(Object.values(VISUALIZATIONS))) {
    lines.push(`import type * as ${name} from "${RAW}/composable/${name}/panelcfg/x/types.gen";`);
  }
  let count = 0;
  const must = (value, type) =>
    lines.push(`export const value${count++} = ${JSON.stringify(value)} satisfies Loose<${type}>;`);
  must(dashboard, "Dashboard");
  for (const panel of dashboard.panels.filter((panel) => panel.type !== "row")) {
    const visualization = VISUALIZATIONS[panel.type];
    if (!visualization) throw new Error(`no types for ${panel.type}`);
    must(panel.options, `Partial<${visualization}.Options>`);
    const custom = panel.fieldConfig?.defaults?.custom;
    if (custom) must(custom, `Partial<${visualization}.FieldConfig>`);
  }
  return lines.join("\n") + "\n";
}

const sources = process.argv.slice(2).map((file) => {
  const source = basename(file, ".json") + ".ts";
  writeFileSync(source, asTypeScript(JSON.parse(readFileSync(file, "utf8"))));
  return source;
});
const program = ts.createProgram(sources, {
  noEmit: true, strict: true, skipLibCheck: true, types: [],
  target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
});
const faults = ts.getPreEmitDiagnostics(program);
for (const fault of faults) {
  console.log(`${fault.file?.fileName}: ${ts.flattenDiagnosticMessageText(fault.messageText, " ").slice(0, 500)}`);
}
console.log(`${sources.length} dashboards, ${faults.length} faults`);
process.exit(sources.length > 0 && faults.length === 0 ? 0 : 1);

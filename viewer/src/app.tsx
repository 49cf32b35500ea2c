// The frame of the page: which run, which view, how things are.

import { source } from "./api/source";
import type { RunSummary } from "./api/types";
import { grouped } from "./model/number";
import { Empty, Waiting } from "./parts/empty";
import { RunProgress, RunStateBadge } from "./parts/run_state";
import { connection, runs, server, startProblem } from "./state/live";
import { go, linkTo, place, VIEWS, type View } from "./state/place";
import { currentRun } from "./state/run";
import { theme, toggleTheme } from "./state/theme";
import { Compare } from "./views/compare";
import { Facts } from "./views/facts";
import { FindingsView } from "./views/findings";
import { Metrics } from "./views/metrics";
import { Overview } from "./views/overview";
import { TensorView } from "./views/tensor";

const NAMES: Record<View, string> = {
  overview: "Overview",
  metrics: "Metrics",
  tensor: "Tensor",
  findings: "Findings",
  compare: "Compare",
  facts: "Run",
};
const COMPONENTS: Record<View, (props: { run: RunSummary }) => preact.JSX.Element> = {
  overview: Overview,
  metrics: Metrics,
  tensor: TensorView,
  findings: FindingsView,
  compare: Compare,
  facts: Facts,
};

export function App() {
  const run = currentRun.value;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header class="head">
        <a class="brand" href={linkTo({ view: "overview" })}>
          smdebug
        </a>
        <RunPicker run={run} />
        {run && <RunStateBadge run={run} />}
        {run && <RunProgress run={run} />}
        <nav aria-label="Views">
          {VIEWS.map((view) => (
            <a
              key={view}
              href={linkTo({ view })}
              aria-current={view === place.value.view ? "page" : undefined}
            >
              {NAMES[view]}
              {view === "findings" && run && <FindingCount run={run} />}
            </a>
          ))}
        </nav>
        <button
          type="button"
          class="theme"
          onClick={toggleTheme}
          aria-label={theme.value === "dark" ? "Use light colours" : "Use dark colours"}
        >
          {theme.value === "dark" ? "☀" : "☾"}
        </button>
      </header>
      <Notices run={run} />
      <main id="main" tabIndex={-1}>
        <Content run={run} />
      </main>
    </>
  );
}

function Content({ run }: { run: RunSummary | null }) {
  if (runs.value === null) {
    if (startProblem.value === null) return <Waiting />;
    return (
      <Empty title="The server does not tell its runs.">
        <p>{startProblem.value}</p>
        <p>The page tries again by itself.</p>
      </Empty>
    );
  }
  if (runs.value.length === 0) {
    return (
      <Empty title="There is no run here yet.">
        Start a training that records, or serve another folder: <code>smdebug serve DIR</code>. The page shows
        the run as soon as it is there.
      </Empty>
    );
  }
  if (!run) {
    return (
      <Empty title="This run is not here.">
        <p>
          No run has the id <code>{place.value.run}</code>. It may have been removed, or be served from
          elsewhere.
        </p>
        <p>
          <a href={linkTo({ run: null })}>Show the newest run</a>
        </p>
      </Empty>
    );
  }
  if (run.state === "failed") {
    return <Empty title="This run cannot be read.">{run.error ?? "Its files are damaged."}</Empty>;
  }
  const Shown = COMPONENTS[place.value.view];
  return <Shown key={run.id} run={run} />;
}

function RunPicker({ run }: { run: RunSummary | null }) {
  const all = runs.value ?? [];
  if (all.length === 0) return null;
  if (all.length === 1 && run) {
    return (
      <span class="run-name">
        <bdi>{run.name}</bdi>
      </span>
    );
  }
  return (
    <select
      class="run-name"
      aria-label="Run"
      value={run?.id ?? ""}
      onChange={(event) => go({ run: event.currentTarget.value, other: null })}
    >
      {!run && <option value="">–</option>}
      {all.map(({ id, name }) => (
        <option key={id} value={id} selected={id === run?.id}>
          {name}
        </option>
      ))}
    </select>
  );
}

function FindingCount({ run }: { run: RunSummary }) {
  if (!run.findings) return null;
  const { error, warning, info } = run.findings;
  const total = error + warning + info;
  if (total === 0) return null;
  const worst = error > 0 ? "error" : warning > 0 ? "warning" : "info";
  return <span class={`count count-${worst}`}>{grouped(total)}</span>;
}

function Notices({ run }: { run: RunSummary | null }) {
  const notices: string[] = [];
  if (connection.value === "lost") {
    notices.push(
      "The server does not answer. What you see is what it told last; the page tries again by itself.",
    );
  }
  if (run?.state === "gone") {
    notices.push("The files of this run were removed. What you see is what was read before.");
  }
  if (run?.state === "silent") {
    notices.push(
      "Nothing was written for ten minutes, and the run has not said that it ended. It may have died.",
    );
  }
  if (source.isReport)
    notices.push(`A saved report, made by smdebug ${server.value?.version ?? ""}. It does not change.`);
  return (
    <div class="notices" role="status">
      {notices.map((notice) => (
        <p key={notice} class={source.isReport ? "notice notice-quiet" : "notice"}>
          {notice}
        </p>
      ))}
    </div>
  );
}

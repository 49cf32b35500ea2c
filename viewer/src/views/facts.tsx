// What is known about a run besides its numbers: configuration, collections, workers, cost, files.

import type { ComponentChildren } from "preact";
import type { Bill, JsonFile, RunFacts, RunSummary } from "../api/types";
import { formatBytes, formatDuration, formatTime, grouped } from "../model/number";
import { Trouble, Waiting } from "../parts/empty";
import { RunStateBadge } from "../parts/run_state";
import { useFacts } from "../state/run";

const MOST_WORKERS = 64;

export function Facts({ run }: { run: RunSummary }) {
  const answer = useFacts(run);
  const facts = answer.value;
  if (answer.problem && !facts) return <Trouble problem={answer.problem} />;
  if (!facts) return <Waiting />;
  return (
    <>
      <h1 class="visually-hidden">Facts about {run.name}</h1>
      <div class="facts">
        <Panel title="Run">
          <Pairs
            pairs={[
              ["State", <RunStateBadge key="state" run={run} />],
              ["Path", <code key="path">{facts.path}</code>],
              ["Layout", facts.layout],
              ["First step", formatTime(facts.first_wall_secs)],
              ["Last step", formatTime(facts.last_wall_secs)],
              ["Saved steps", grouped(facts.steps)],
              ["Tensors", grouped(facts.tensors)],
              ...facts.modes.map(
                ({ mode, steps, first_step, last_step }) =>
                  [mode, `${grouped(steps)} steps, ${grouped(first_step)} to ${grouped(last_step)}`] as Pair,
              ),
            ]}
          />
        </Panel>
        <Panel title="Files">
          <Health facts={facts} />
          <Pairs
            pairs={[
              ["Event files", `${grouped(facts.files.event_files)}, ${formatBytes(facts.files.event_bytes)}`],
              ["Index files", `${grouped(facts.files.index_files)}, ${formatBytes(facts.files.index_bytes)}`],
              ["Newest file", formatTime(facts.files.newest_secs)],
              ["Incomplete steps", grouped(facts.incomplete_steps)],
            ]}
          />
        </Panel>
        <Panel title="Workers">
          <Pairs
            pairs={[
              ["Announced", grouped(facts.announced_workers)],
              ["Seen", grouped(facts.worker_names.length)],
            ]}
          />
          <ul class="plain">
            {facts.worker_names.slice(0, MOST_WORKERS).map((name) => (
              <li key={name}>
                <bdi>{name}</bdi>
              </li>
            ))}
          </ul>
          {facts.worker_names.length > MOST_WORKERS && (
            <p class="muted">and {grouped(facts.worker_names.length - MOST_WORKERS)} more</p>
          )}
        </Panel>
        <Panel title="What recording cost" isWide>
          {facts.bill.length === 0 ? (
            <p class="muted">No worker of this run has told what recording cost.</p>
          ) : (
            <BillTable bill={facts.bill} />
          )}
        </Panel>
        <Panel title="Collections" isWide>
          <CollectionTable facts={facts} />
        </Panel>
        {facts.configuration.length > 0 && (
          <Panel title="Configuration" isWide>
            <JsonFiles files={facts.configuration} />
          </Panel>
        )}
        {facts.notes.length > 0 && (
          <Panel title="Notes beside the run" isWide>
            <JsonFiles files={facts.notes} />
          </Panel>
        )}
      </div>
    </>
  );
}

function Panel({
  title,
  isWide = false,
  children,
}: {
  title: string;
  isWide?: boolean;
  children: ComponentChildren;
}) {
  return (
    <section class={`panel ${isWide ? "panel-wide" : ""}`}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

type Pair = [string, ComponentChildren];

function Pairs({ pairs }: { pairs: readonly Pair[] }) {
  return (
    <dl class="pairs">
      {pairs.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Health({ facts }: { facts: RunFacts }) {
  const { health } = facts;
  const complaints = [
    health.index_files_left_out > 0 && `${grouped(health.index_files_left_out)} index files cannot be read`,
    health.event_files_missing > 0 && `${grouped(health.event_files_missing)} event files are missing`,
    health.temporary_files > 0 && `${grouped(health.temporary_files)} temporary files are left`,
  ].filter(Boolean);
  if (health.is_well && complaints.length === 0) return <p class="well">✓ All files are well.</p>;
  return (
    <ul class="plain alarm">
      {complaints.map((complaint) => (
        <li key={String(complaint)}>{complaint}</li>
      ))}
    </ul>
  );
}

function BillTable({ bill }: { bill: readonly Bill[] }) {
  return (
    <div class="scroll-x">
      <table>
        <thead>
          <tr>
            <th>worker</th>
            <th class="number">share of training</th>
            <th class="number">cost</th>
            <th class="number">training</th>
            <th class="number">saved steps</th>
            <th class="number">tensors</th>
            <th class="number">bytes</th>
            <th class="number">every</th>
          </tr>
        </thead>
        <tbody>
          {bill.map((line) => (
            <tr key={line.worker}>
              <td class="name">
                <bdi>{line.worker}</bdi>
              </td>
              <td class="number">{(line.share * 100).toFixed(2)} %</td>
              <td class="number">{formatDuration(line.cost_secs)}</td>
              <td class="number">{formatDuration(line.training_secs)}</td>
              <td class="number">
                {grouped(line.saved_steps)} of {grouped(line.steps)}
              </td>
              <td class="number">{grouped(line.tensors)}</td>
              <td class="number">{formatBytes(line.bytes)}</td>
              <td class="number">{line.stride <= 1 ? "step" : `${grouped(line.stride)} steps`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function CollectionTable({ facts }: { facts: RunFacts }) {
  return (
    <div class="scroll-x">
      <table>
        <thead>
          <tr>
            <th>collection</th>
            <th class="number">tensors</th>
            <th>saves</th>
            <th>patterns</th>
          </tr>
        </thead>
        <tbody>
          {facts.collections.map((collection) => (
            <tr key={collection.name}>
              <td class="name">
                <bdi>{collection.name}</bdi>
              </td>
              <td class="number">{grouped(collection.tensors)}</td>
              <td class="list">
                {[collection.value && "values", collection.shape && "shapes", ...collection.reductions]
                  .filter(Boolean)
                  .join(", ") || "–"}
              </td>
              <td class="name">
                <bdi>{collection.patterns.join("  ")}</bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function JsonFiles({ files }: { files: readonly JsonFile[] }) {
  return (
    <>
      {files.map(({ file, content }) => (
        <details key={file}>
          <summary>
            <bdi>{file}</bdi>
          </summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable */}
          <pre tabIndex={0}>
            {content === null ? "This file cannot be read." : JSON.stringify(content, null, 2)}
          </pre>
        </details>
      ))}
    </>
  );
}

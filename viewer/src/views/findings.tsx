// What the rules found, the probable cause first, with what they saw and what to do.

import type { Finding, Findings as FindingsAnswer, Note, Rule, RunSummary } from "../api/types";
import { formatNumber, grouped, plural } from "../model/number";
import { plainText } from "../model/plain_text";
import { Empty, Trouble, Waiting } from "../parts/empty";
import { RichText } from "../parts/rich_text";
import { SeverityBadge } from "../parts/severity";
import { useJson } from "../state/answer";
import { linkTo, place } from "../state/place";
import { useFindings } from "../state/run";

const MOST_TENSORS = 12;
// Steps that are shown before and behind the place of a finding.
const AROUND = 20;

export function FindingsView({ run }: { run: RunSummary }) {
  const answer = useFindings(run);
  const rules = useJson<{ rules: Rule[] }>("/api/rules").value?.rules ?? [];
  if (answer.problem && !answer.value) return <Trouble problem={answer.problem} />;
  if (!answer.value) return <Waiting>The rules are looking at the run…</Waiting>;
  const { findings } = answer.value;
  const open = findings.find((finding) => finding.rank === place.value.rank) ?? findings[0];
  return (
    <>
      <h1 class="visually-hidden">Findings in {run.name}</h1>
      <Progress answer={answer.value} />
      {open ? (
        <div class="findings">
          <ol class="finding-list" aria-label="Findings, the probable cause first">
            {findings.map((finding) => (
              <li key={finding.rank}>
                <a
                  href={linkTo({ view: "findings", rank: finding.rank })}
                  aria-current={finding === open ? "true" : undefined}
                >
                  <span class="finding-head">
                    <SeverityBadge severity={finding.severity} />
                    <span class="finding-rule">{finding.rule}</span>
                    <span class="muted">since {grouped(finding.first.step)}</span>
                  </span>
                  <bdi>{plainText(finding.message)}</bdi>
                </a>
              </li>
            ))}
          </ol>
          <FindingDetail finding={open} rule={rules.find((rule) => rule.name === open.rule)} />
        </div>
      ) : (
        <Empty
          title={
            answer.value.state === "pending" ? "Nothing found so far." : "The rules found nothing wrong."
          }
        >
          {plural(answer.value.no_issues_found.length, "rule")} looked at {plural(answer.value.steps, "step")}
          .
        </Empty>
      )}
      <OtherRules answer={answer.value} />
    </>
  );
}

function Progress({ answer }: { answer: FindingsAnswer }) {
  const words = {
    pending: `The rules have seen ${grouped(answer.steps)} of ${plural(answer.total_steps, "step")}.`,
    live: `The rules have seen all ${plural(answer.steps, "step")} so far and go on looking.`,
    final: `The rules have seen all ${plural(answer.steps, "step")}.`,
  };
  return (
    <p class="muted findings-progress" role="status">
      {words[answer.state]}
      {answer.unreadable_steps > 0 &&
        ` ${plural(answer.unreadable_steps, "step")} could not be read: ${answer.first_problem ?? ""}`}
    </p>
  );
}

function FindingDetail({ finding, rule }: { finding: Finding; rule: Rule | undefined }) {
  const { first, last, evidence } = finding;
  const worst = finding.tensors[0];
  const part = { from: Math.max(0, first.step - AROUND), to: last.step + AROUND, first: null, count: null };
  return (
    <article class="finding panel" aria-labelledby="finding-title">
      <header>
        <SeverityBadge severity={finding.severity} />
        <h2 id="finding-title">
          <bdi>{plainText(finding.message)}</bdi>
        </h2>
        <p class="muted">
          {finding.rule} · {plural(finding.hits, "hit")} from step {grouped(first.step)} to{" "}
          {grouped(last.step)}
          {finding.workers.length > 1 && ` · ${plural(finding.workers.length, "worker")}`}
          {finding.explained_by && <> · probably because of {finding.explained_by}</>}
        </p>
        <p class="actions">
          <a class="button button-main" href={linkTo({ view: "overview", mode: "GLOBAL", ...part })}>
            Show in the overview
          </a>
          {worst && (
            <a
              class="button"
              href={linkTo({ view: "tensor", tensor: worst.tensor, step: worst.first_step, slice: "" })}
            >
              Open the tensor
            </a>
          )}
        </p>
      </header>
      <h3>What to do</h3>
      <RichText text={finding.fix} />
      <h3>Why it matters</h3>
      <RichText text={finding.why} />
      <h3>Evidence at step {grouped(evidence.step)}</h3>
      <EvidenceTable finding={finding} />
      <h3>Tensors</h3>
      <ul class="tensor-list">
        {finding.tensors.slice(0, MOST_TENSORS).map(({ tensor, first_step, hits }) => (
          <li key={tensor}>
            <a href={linkTo({ view: "tensor", tensor, step: first_step, slice: "" })}>
              <bdi>{tensor}</bdi>
            </a>
            <span class="muted">
              {" "}
              since step {grouped(first_step)}, {plural(hits, "hit")}
            </span>
          </li>
        ))}
      </ul>
      {finding.tensors.length + finding.tensors_left_out > MOST_TENSORS && (
        <p class="muted">
          and {plural(finding.tensors.length + finding.tensors_left_out - MOST_TENSORS, "more tensor")}
        </p>
      )}
      {rule && <RuleText rule={rule} parameters={evidence.parameters} />}
    </article>
  );
}

function EvidenceTable({ finding }: { finding: Finding }) {
  const { violations, violation_count } = finding.evidence;
  return (
    <>
      <div class="scroll-x">
        <table>
          <thead>
            <tr>
              <th>tensor</th>
              <th>what</th>
              <th class="number">seen</th>
              <th class="number">limit</th>
              <th>worker</th>
            </tr>
          </thead>
          <tbody>
            {violations.slice(0, MOST_TENSORS).map((violation, at) => (
              <tr key={at}>
                <td class="name">
                  <bdi>{violation.tensor}</bdi>
                </td>
                <td>{violation.metric}</td>
                <td class="number">{formatNumber(violation.value)}</td>
                <td class="number">
                  {violation.op} {formatNumber(violation.threshold)}
                </td>
                <td>{violation.worker}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {violation_count > MOST_TENSORS && (
        <p class="muted">and {grouped(violation_count - MOST_TENSORS)} more at this step</p>
      )}
    </>
  );
}

function RuleText({ rule, parameters }: { rule: Rule; parameters: Record<string, unknown> }) {
  return (
    <details>
      <summary>How the rule {rule.name} works</summary>
      <RichText text={rule.summary} />
      <RichText text={rule.sees} />
      {rule.parameters.length > 0 && (
        <div class="scroll-x">
          <table>
            <thead>
              <tr>
                <th>parameter</th>
                <th>here</th>
                <th>usually</th>
                <th>meaning</th>
              </tr>
            </thead>
            <tbody>
              {rule.parameters.map((parameter) => (
                <tr key={parameter.name}>
                  <td class="name">{parameter.name}</td>
                  <td>{String(parameters[parameter.name] ?? "–")}</td>
                  <td>{parameter.default || "–"}</td>
                  <td>{parameter.help}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

function OtherRules({ answer }: { answer: FindingsAnswer }) {
  return (
    <section class="other-rules">
      <NoteList title="Could not run" notes={answer.failed} isOpen />
      <NoteList title="Remarks" notes={answer.remarks} isOpen />
      <NoteList title="Not evaluated" notes={answer.not_evaluated} />
      {answer.no_issues_found.length > 0 && (
        <details>
          <summary>No issue found by {plural(answer.no_issues_found.length, "rule")}</summary>
          <p>{answer.no_issues_found.join(", ")}</p>
        </details>
      )}
    </section>
  );
}

function NoteList({
  title,
  notes,
  isOpen = false,
}: {
  title: string;
  notes: readonly Note[];
  isOpen?: boolean;
}) {
  if (notes.length === 0) return null;
  return (
    <details open={isOpen}>
      <summary>
        {title} ({grouped(notes.length)})
      </summary>
      <dl class="notes">
        {notes.map((note, at) => (
          <div key={at}>
            <dt>{note.rule}</dt>
            <dd>{plainText(note.message)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

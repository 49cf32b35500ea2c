// What stands where there is nothing to show, and what to do about it.

import type { ComponentChildren } from "preact";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <div class="empty-text">{children}</div>
    </div>
  );
}

export function Trouble({ problem }: { problem: Error }) {
  return (
    <div class="empty" role="alert">
      <p class="empty-title">This could not be read.</p>
      <div class="empty-text">{problem.message}</div>
    </div>
  );
}

export function Waiting({ children }: { children?: ComponentChildren }) {
  return (
    <div class="waiting" role="status">
      {children ?? "Reading…"}
    </div>
  );
}

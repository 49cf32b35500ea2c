// Dark or light: as the system says, until the reader chooses.

import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";
const KEY = "smdebug.theme";

export const theme = signal<Theme>("light");

export function followTheme(): void {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    theme.value = chosen() ?? (system.matches ? "dark" : "light");
  };
  follow();
  system.addEventListener("change", follow);
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  try {
    window.localStorage.setItem(KEY, theme.value);
  } catch {
    // Pages from disk may have no storage; the choice then lasts until the page is closed.
  }
}

function chosen(): Theme | null {
  try {
    const kept = window.localStorage.getItem(KEY);
    return kept === "dark" || kept === "light" ? kept : null;
  } catch {
    return null;
  }
}

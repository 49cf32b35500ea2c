// Finds a tensor by a part of its name.

import { useId, useState } from "preact/hooks";
import type { Catalogue, Tensor } from "../api/types";

const MOST = 40;

export function TensorSearch({ catalogue, onOpen }: { catalogue: Catalogue; onOpen(tensor: Tensor): void }) {
  const id = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = text.trim() === "" ? [] : matches(catalogue.tensors, text);
  const open = (tensor: Tensor | undefined) => {
    if (!tensor) return;
    setText("");
    onOpen(tensor);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") open(found[at]);
    else if (event.key === "Escape") setText("");
    else return;
    event.preventDefault();
  };
  return (
    <div class="search">
      <input
        type="search"
        role="combobox"
        placeholder="Find a tensor"
        aria-label="Find a tensor"
        aria-expanded={found.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        {...(found.length > 0 ? { "aria-activedescendant": `${id}-${at}` } : {})}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
        onBlur={() => setText("")}
      />
      <div
        id={id}
        role="listbox"
        aria-label="Matching tensors"
        class="search-list"
        hidden={text.trim() === ""}
      >
        {found.map((tensor, i) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, as comboboxes have it
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the field
          <div
            key={tensor.id}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => open(tensor)}
          >
            <bdi>{tensor.name}</bdi> <span class="muted">{tensor.role}</span>
          </div>
        ))}
        {found.length === 0 && <div class="search-none">No tensor has a name like this.</div>}
      </div>
    </div>
  );
}

// Every word must be somewhere in the name.
function matches(tensors: readonly Tensor[], text: string): Tensor[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found: Tensor[] = [];
  for (const tensor of tensors) {
    const name = tensor.name.toLowerCase();
    if (words.every((word) => name.includes(word)) && found.push(tensor) === MOST) break;
  }
  return found;
}

// Files that the page makes itself, handed to the reader as downloads.

export function saveText(text: string, name: string, ending: string): void {
  save(new Blob([text], { type: "text/plain;charset=utf-8" }), `${fileName(name)}.${ending}`);
}

export function saveCanvas(canvas: HTMLCanvasElement, name: string): void {
  canvas.toBlob((blob) => {
    if (blob) save(blob, `${fileName(name)}.png`);
  });
}

// Letters and digits of any language stay, everything else is a dash.
export function fileName(name: string): string {
  return (
    name
      .replace(/[^\p{L}\p{N}._]+/gu, "-")
      .replace(/^[-.]+|-+$/g, "")
      .slice(0, 80) || "smdebug"
  );
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

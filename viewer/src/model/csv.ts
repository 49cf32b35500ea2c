// Comma separated values as RFC 4180 has them.

export type CsvCell = string | number | null;

export function csv(rows: Iterable<readonly CsvCell[]>): string {
  let text = "";
  for (const row of rows) text += `${row.map(cell).join(",")}\r\n`;
  return text;
}

function cell(value: CsvCell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  // Spreadsheets take texts that begin so for formulas; names of tensors come from strangers.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Where answers come from: a server, or the report that this page is a part of.
// All data of the page comes through `source`; nothing else asks the network.

import { ReportSource } from "./report_source";
import { ServerSource } from "./server_source";

export interface Source {
  readonly isReport: boolean;
  json<T>(address: string, signal?: AbortSignal): Promise<T>;
  binary(address: string, signal?: AbortSignal): Promise<ArrayBuffer>;
}

const embedded = typeof document === "undefined" ? null : document.getElementById("smdebug-report");
export const source: Source = embedded ? ReportSource.parse(embedded.textContent ?? "") : new ServerSource();

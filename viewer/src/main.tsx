// Starts the page.

import { render } from "preact";
import { App } from "./app";
import { startLive } from "./state/live";
import { followAddress } from "./state/place";
import { followTheme } from "./state/theme";
import "uplot/dist/uPlot.min.css";
import "./style/page.css";

followTheme();
followAddress();
render(<App />, document.getElementById("page")!);
void startLive();

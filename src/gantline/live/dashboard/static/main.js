// Where the page begins.

import { h, render } from "./vendor/preact.js";
import { App } from "./app.js";
import { useKeptTheme } from "./theme.js";

useKeptTheme();
render(h(App), document.getElementById("root"));

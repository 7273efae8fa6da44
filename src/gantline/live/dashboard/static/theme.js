// Light or dark: as the system has it, unless the reader has said otherwise in this browser.

const KEPT = "gantline.theme";
const NEXT = { "": "dark", dark: "light", light: "" };

export const themeNow = () => document.documentElement.dataset.theme ?? "";

export function useKeptTheme() {
  setTheme(localStorage.getItem(KEPT) ?? "");
}

export function nextTheme() {
  setTheme(NEXT[themeNow()] ?? "");
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  if (theme) localStorage.setItem(KEPT, theme);
  else localStorage.removeItem(KEPT);
}

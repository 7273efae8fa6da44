// Which colour a name has. A name keeps its colour as long as the page is open; the largest at first sight get one, all others share a grey.

export const COLOURS = 7; // --c0 to --c6 in style/base.css
export const REST = 7; // --c7

export class Palette {
  constructor() {
    this.given = new Map();
  }

  /** Give colours out to the largest names that have none yet, while there are any. */
  offer(names) {
    for (const name of names) {
      if (this.given.size >= COLOURS) return;
      if (!this.given.has(name)) this.given.set(name, this.given.size);
    }
  }

  of(name) {
    return this.given.get(name) ?? REST;
  }
}

/** The colours of the theme as a canvas wants them. */
export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    categories: Array.from({ length: COLOURS + 1 }, (_, at) => read(`c${at}`)),
    ground: read("ground"), text: read("text"), quiet: read("quiet"), line: read("line"), accent: read("accent"), free: read("free"), hatch: read("hatch"),
  };
}

/** Call back when the theme changes, by the system or by the button. */
export function onTheme(listener) {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(listener);
  media.addEventListener("change", listener);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    media.removeEventListener("change", listener);
    observer.disconnect();
  };
}

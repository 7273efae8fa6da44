// How numbers, durations and instants are spelled, everywhere alike.

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const NONE = "–";

export const count = (value) => (value == null ? NONE : grouped.format(value));
export const number = (value) => (value == null || Number.isNaN(value) ? NONE : Math.abs(value) >= 1000 ? grouped.format(value) : short.format(value));
export const percent = (share) => (share == null || !Number.isFinite(share) ? NONE : `${grouped.format(100 * share)} %`);
export const plural = (many, thing, things = `${thing}s`) => `${count(many)} ${many === 1 ? thing : things}`;

/** Seconds in the two largest units that matter. */
export function duration(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return NONE;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s < 600 && s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.round(s / 60)} min`;
  const minutes = Math.round(s / 60);
  if (minutes < 1440) return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
  const hours = Math.round(minutes / 60);
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

/** Seconds in one unit, for narrow columns. */
export function brief(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return NONE;
  const s = Math.max(0, seconds);
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} d`;
}

const two = (value) => String(value).padStart(2, "0");
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** An instant (seconds since 1970) on the reader's clock: with its day where that is another one. */
export function clock(at, now = Date.now() / 1000, seconds = false) {
  if (at == null || !Number.isFinite(at)) return NONE;
  const then = new Date(1000 * at), today = new Date(1000 * now);
  const time = `${two(then.getHours())}:${two(then.getMinutes())}${seconds ? `:${two(then.getSeconds())}` : ""}`;
  if (then.toDateString() === today.toDateString()) return time;
  if (Math.abs(at - now) < 6 * 86400) return `${DAYS[then.getDay()]} ${time}`;
  return `${then.getDate()} ${MONTHS[then.getMonth()]}${then.getFullYear() === today.getFullYear() ? "" : ` ${then.getFullYear()}`} ${time}`;
}

/** An instant on an axis whose ticks lie so many seconds apart. */
export function axisTime(at, apart) {
  const then = new Date(1000 * at);
  if (apart >= 86_400) return `${then.getDate()} ${MONTHS[then.getMonth()]}`;
  return `${two(then.getHours())}:${two(then.getMinutes())}${apart < 60 ? `:${two(then.getSeconds())}` : ""}`;
}

/** A name cut to a length that fits; the whole of it belongs into a title. */
export const cut = (text, length = 80) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

export const bytes = (value) => {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  for (; value >= 1000 && at < units.length - 1; at++) value /= 1000;
  return `${short.format(value)} ${units[at]}`;
};

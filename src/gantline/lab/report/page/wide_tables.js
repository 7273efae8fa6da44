"use strict";
// A table that is wider than the screen says so, as long as there is more of it to the right.
const WideTables = (() => {
  const tell = (frame) => frame.classList.toggle("more", frame.scrollLeft + frame.clientWidth < frame.scrollWidth - 2);
  const tellAll = () => document.querySelectorAll(".scroll").forEach(tell);
  const watch = () => {
    document.querySelectorAll(".scroll").forEach((frame) => frame.addEventListener("scroll", () => tell(frame), { passive: true }));
    document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", tellAll));
    window.addEventListener("resize", tellAll);
    tellAll();
  };
  return { watch, tellAll };
})();

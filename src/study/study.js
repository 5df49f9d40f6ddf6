/* Contents, and what is under the pointer; all else is in the page already. */
const contents = byId("contents");
for (const [i, heading] of [...document.querySelectorAll("h2")].entries()) {
  heading.id = "chapter-" + (i + 1);
  const link = element("a", "", heading.textContent);
  link.href = "#" + heading.id;
  contents.append(link);
}

/* The browser's own tip of an SVG title comes late and can't be styled: ours takes its words. */
for (const title of document.querySelectorAll("figure svg > * > title")) {
  const part = title.parentNode, words = title.textContent;
  part.setAttribute("aria-label", words);
  title.remove();
  part.addEventListener("pointermove", (e) => tip.show(e, [[words, "b"]]));
  part.addEventListener("pointerleave", () => tip.hide());
}
document.documentElement.setAttribute("data-ready", "");

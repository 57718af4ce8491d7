// What the scripts of all pages share. Names are set as text, never as markup.
"use strict";
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

const button = (words, action) => {
  const made = make("button", { type: "button", textContent: words });
  made.addEventListener("click", action);
  return made;
};

function download(name, type, content) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A cell of a CSV.
function field(content) {
  if (content === null) return "";
  let words = String(content);
  if (typeof content === "string" && /^[=+\-@\t\r]/.test(words)) words = "'" + words;  // no formula
  return /[",\n\r]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}

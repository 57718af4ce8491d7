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

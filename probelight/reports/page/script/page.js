"use strict";
// What is folded opens where a link leads into it, and on paper, where nothing can be unfolded.
(() => {
  const open = (element) => {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    open(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.long:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });
})();

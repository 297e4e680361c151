// Looks at a page again without loading it again, so that the place and the focus stay.
"use strict";
(function () {
  const main = document.getElementById("main");
  const pause = Number(main && main.dataset.refresh) * 1000;
  if (!pause) return;
  async function again() {
    const busy = main.contains(document.activeElement) && document.activeElement !== main;
    if (!document.hidden && !busy) {
      try {
        const answer = await fetch(location.href, { credentials: "same-origin" });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of ["main", "footer"]) {
          const now = document.querySelector(part), next = page.querySelector(part);
          if (now && next) now.replaceChildren(...next.childNodes);
        }
      } catch (error) {
        if (!document.getElementById("lost")) {
          const told = document.createElement("p");
          told.id = "lost";
          told.className = "bad";
          told.setAttribute("role", "alert");
          told.textContent = "The console does not answer.";
          main.prepend(told);
        }
      }
    }
    setTimeout(again, pause);
  }
  setTimeout(again, pause);
})();

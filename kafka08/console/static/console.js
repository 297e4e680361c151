// Looks at a page again without loading it again, so that the place and the focus stay.
"use strict";
(function () {
  const main = document.getElementById("main");
  const pause = Number(main && main.dataset.refresh) * 1000;
  if (!pause) return;

  // A line on top of the page; an empty text takes it away.
  function say(text, kind) {
    let line = document.getElementById("updating");
    if (!text) {
      if (line) line.remove();
      return;
    }
    if (!line) {
      line = document.createElement("p");
      line.id = "updating";
      line.setAttribute("role", "status");
      main.before(line);
    }
    if (line.textContent !== text) line.textContent = text;
    line.className = kind;
  }

  function whyNot() {
    const active = document.activeElement;
    if (main.contains(active) && active.matches("input, select, textarea")) return "while you fill in a field";
    const chosen = document.getSelection();
    if (chosen && chosen.type === "Range" && main.contains(chosen.anchorNode)) return "while text is selected";
    return "";
  }

  // The place of a text that opens, by its row.
  function placeOf(details) {
    const row = details.closest("[id]");
    return row.id + " " + [...row.querySelectorAll("details")].indexOf(details);
  }

  // What is open stays open, and the link or the opened text that has the focus keeps it.
  function replaceKeepingFocus(part, next) {
    const active = part.contains(document.activeElement) ? document.activeElement : null;
    const target = active && active.getAttribute("href");
    const text = active && active.closest("details");
    const place = text && placeOf(text), tag = active && active.tagName;
    const open = new Set([...part.querySelectorAll("details[open]")].map(placeOf));
    part.replaceChildren(...next.childNodes);
    for (const each of part.querySelectorAll("details")) {
      const found = placeOf(each);
      each.open = open.has(found);
      const again = found === place && each.querySelector(tag);
      if (again) again.focus({ preventScroll: true });
    }
    if (!target) return;
    for (const link of part.querySelectorAll("a")) {
      if (link.getAttribute("href") === target) {
        link.focus({ preventScroll: true });
        return;
      }
    }
  }

  async function look() {
    const answer = await fetch(location.href, {
      credentials: "same-origin", headers: { Accept: "text/html" },
    });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!page.querySelector("main")) {
      say(answer.status === 401 ? "You are not logged in any more: load the page again." : "The console answered with code " + answer.status + ".", "bad");
      return;
    }
    for (const part of ["main", "footer"]) {
      const now = document.querySelector(part), next = page.querySelector(part);
      if (now && next) replaceKeepingFocus(now, next);
    }
    say("");
  }

  async function again() {
    if (!document.hidden) {
      const reason = whyNot();
      if (reason) {
        say("This page is not updated " + reason + ".", "quiet");
      } else {
        try {
          await look();
        } catch (error) {
          say("The console does not answer.", "bad");
        }
      }
    }
    setTimeout(again, pause);
  }
  setTimeout(again, pause);
})();

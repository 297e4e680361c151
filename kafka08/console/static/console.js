// What pages have with JavaScript alone: buttons that copy, and a look at the page again that keeps
// the place and the focus.
"use strict";

// A button beside each element with data-copy, which names what it copies: the text of the element,
// the address of a link, or with data-fetch what the link gives.
const addCopies = (function () {
  const line = document.createElement("p");
  line.id = "copied";
  line.setAttribute("role", "status");
  document.body.append(line);
  let timer;

  function say(text) {
    clearTimeout(timer);
    line.textContent = text;
    timer = setTimeout(() => { line.textContent = ""; }, 4000);
  }

  async function textOf(element) {
    if (element.dataset.fetch === undefined) return element.matches("a") ? element.href : element.textContent;
    const answer = await fetch(element.href, { credentials: "same-origin" });
    if (!answer.ok) throw new Error("the console answered with code " + answer.status);
    return answer.text();
  }

  // Browsers have no clipboard for pages without TLS, but for those of this machine.
  async function put(text, button) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "aside";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    button.focus({ preventScroll: true });
    if (!done) throw new Error("the browser does not allow it");
  }

  async function copy(element, button) {
    try {
      await put(await textOf(element), button);
      say("Copied " + element.dataset.copy + ".");
    } catch (error) {
      say("Not copied: " + error.message + ". Select the text instead.");
    }
  }

  return function (part) {
    for (const element of part.querySelectorAll("[data-copy]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.title = "Copy " + element.dataset.copy;
      button.setAttribute("aria-label", button.title);
      button.addEventListener("click", () => copy(element, button));
      const payload = element.closest(".payload");
      if (payload) payload.querySelector(".meta").append(button);
      else element.after(button);
    }
  };
})();
addCopies(document);

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
    const attribute = active && active.matches(".copy") ? "aria-label" : "href";
    const target = active && active.getAttribute(attribute);
    const text = active && active.closest("details");
    const place = text && placeOf(text), tag = active && active.tagName;
    const open = new Set([...part.querySelectorAll("details[open]")].map(placeOf));
    part.replaceChildren(...next.childNodes);
    addCopies(part);
    for (const each of part.querySelectorAll("details")) {
      const found = placeOf(each);
      each.open = open.has(found);
      const again = found === place && each.querySelector(tag);
      if (again) again.focus({ preventScroll: true });
    }
    if (!target) return;
    for (const link of part.querySelectorAll("a, .copy")) {
      if (link.getAttribute(attribute) === target) {
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

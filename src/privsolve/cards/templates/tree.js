"use strict";
const tree = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
let answers = "";

function nodes() {
  const found = [tree];
  for (const way of answers) found.push(found[found.length - 1][way]);
  return found;
}

function show() {
  const path = nodes();
  const here = path[path.length - 1];
  const asking = "asks" in here;
  at("step").textContent = asking ? `Question ${answers.length + 1}` : "Answer";
  at("question").textContent = asking ? here.asks : "";
  at("question").hidden = !asking;
  for (const id of ["yes", "no"]) at(id).hidden = !asking;
  at("says").hidden = asking;
  at("says").textContent = asking ? "" : here.says;
  at("back").disabled = at("over").disabled = answers === "";
  at("path").replaceChildren(...[...answers].map((way, i) => {
    const item = document.createElement("li");
    item.textContent = `${path[i].asks} ${way === "y" ? "yes" : "no"}`;
    return item;
  }));
  for (const e of document.querySelectorAll(".picture .on")) e.classList.remove("on");
  for (let i = 0; i <= answers.length; i += 1) {
    for (const id of [`box-${answers.slice(0, i)}`, `way-${answers.slice(0, i)}`]) at(id)?.classList.add("on");
  }
  at("asking").dataset.state = asking ? "open" : "done";
}

function answer(way) {
  answers += way;
  show();
}

at("yes").addEventListener("click", () => answer("y"));
at("no").addEventListener("click", () => answer("n"));
at("back").addEventListener("click", () => { answers = answers.slice(0, -1); show(); });
at("over").addEventListener("click", () => { answers = ""; show(); });
at("print").addEventListener("click", () => window.print());
show();

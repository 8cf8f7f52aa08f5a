"use strict";
const form = document.querySelector("form.filter");
const records = [...document.querySelectorAll("article.record")].map((article) => ({
  article,
  quarantined: "quarantined" in article.dataset,
  heading: article.querySelector("h3").textContent.toLowerCase(),
  reason: (article.querySelector(".reason")?.textContent ?? "").toLowerCase(),
  lines: [...article.querySelectorAll("tbody tr")].map((row) => ({
    row,
    changed: "changed" in row.dataset,
    columns: JSON.parse(row.dataset.columns),
    text: row.textContent.toLowerCase(),
  })),
}));
const filter = () => {
  const { entity, show, column, text } = form.elements;
  const wanted = text.value.toLowerCase();
  let shown = 0;
  for (const { article, quarantined, heading, reason, lines } of records) {
    const whole = heading.includes(wanted) || reason.includes(wanted);
    let left = 0;
    for (const line of lines) {
      const fits = (show.value !== "changed" || line.changed)
        && (!column.value || line.columns.includes(column.value))
        && (whole || line.text.includes(wanted));
      line.row.hidden = !fits;
      left += fits;
    }
    const fits = (!entity.value || article.dataset.entity === entity.value)
      && (show.value !== "quarantined" || quarantined) && left > 0;
    article.hidden = !fits;
    shown += fits;
  }
  form.querySelector("output").textContent = shown === records.length ? `${shown} rows` : `${shown} of ${records.length} rows`;
  document.getElementById("none").hidden = shown > 0;
};
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
for (const cell of document.querySelectorAll(".by")) {
  cell.addEventListener("keydown", (event) => { if (event.key === "Escape") cell.classList.add("shut"); });
  for (const gone of ["focusout", "mouseleave"]) cell.addEventListener(gone, () => cell.classList.remove("shut"));
}

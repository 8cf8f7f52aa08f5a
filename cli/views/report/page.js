"use strict";
for (const form of document.querySelectorAll("form.filter")) {
  const rows = [...document.querySelectorAll(`#${form.dataset.for} tbody tr`)];
  const [entity, text] = [form.querySelector("select"), form.querySelector("input")];
  const told = form.querySelector("output");
  const filter = () => {
    const wanted = text.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = (!entity.value || row.cells[0].textContent === entity.value)
        && row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits;
      shown += fits;
    }
    told.textContent = shown === rows.length ? `${shown} lines` : `${shown} of ${rows.length} lines`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
}

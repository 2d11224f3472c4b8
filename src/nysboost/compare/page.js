"use strict";
// A click on a column's name sorts a table by it.
document.querySelectorAll("th").forEach(head => head.addEventListener("click", () => {
  const body = head.closest("table").tBodies[0], column = head.cellIndex;
  const value = row => row.cells[column].textContent.replace(/,/g, "");
  const order = (a, b) => parseFloat(value(a)) - parseFloat(value(b)) || value(a).localeCompare(value(b));
  const rows = [...body.rows], sorted = [...rows].sort(order);
  if (sorted.every((row, i) => row === rows[i])) sorted.reverse();
  body.append(...sorted);
}));

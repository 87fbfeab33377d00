const search = document.getElementById("search"), found = document.getElementById("found");
const sections = [...document.querySelectorAll("section")];
const says = (element, wanted) => element.textContent.toLowerCase().includes(wanted);
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  let views = 0, columns = 0;
  for (const section of sections) {
    const named = says(section.querySelector("h2"), wanted) || says(section.querySelector("p"), wanted);
    let any = named;
    for (const row of section.querySelectorAll("tbody tr")) {
      row.hidden = !named && !says(row, wanted);
      any ||= !row.hidden;
      columns += !row.hidden;
    }
    section.hidden = !any;
    views += any;
  }
  found.textContent = wanted ? `${views} views, ${columns} columns` : "";
});

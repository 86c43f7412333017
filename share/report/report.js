"use strict";
// Filters of the list of items. The page can be read without this; nothing is made from text of the items.
(function () {
    var form = document.getElementById("filter");
    var items = Array.prototype.slice.call(document.querySelectorAll("details.item"));
    if (!form || items.length === 0) return;
    var count = document.getElementById("shown");
    var fields = ["class", "status", "suite"];

    function fill(field) {
        var select = form.elements[field], seen = Object.create(null);
        items.forEach(function (item) { seen[item.getAttribute("data-" + field)] = (seen[item.getAttribute("data-" + field)] || 0) + 1; });
        Object.keys(seen).sort().forEach(function (value) {
            var option = document.createElement("option");
            option.value = "=" + value;
            option.textContent = value + " (" + seen[value] + ")";
            select.appendChild(option);
        });
        select.parentNode.hidden = Object.keys(seen).length < 2;
    }

    function apply() {
        var words = form.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
        items.forEach(function (item) {
            var fits = fields.every(function (field) {
                var wanted = form.elements[field].value;
                return wanted === "" || wanted === "=" + item.getAttribute("data-" + field);
            });
            if (fits && words.length > 0) {
                var text = item.textContent.toLowerCase();
                fits = words.every(function (word) { return text.indexOf(word) >= 0; });
            }
            item.hidden = !fits;
            shown += fits ? 1 : 0;
        });
        count.textContent = shown + " of " + items.length + " shown";
    }

    function all(open) {
        return function () { items.forEach(function (item) { if (!item.hidden) item.open = open; }); };
    }

    fields.forEach(fill);
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("reset", function () { setTimeout(apply, 0); });
    document.getElementById("open").addEventListener("click", all(true));
    document.getElementById("close").addEventListener("click", all(false));
    apply();
})();

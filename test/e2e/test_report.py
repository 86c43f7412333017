#!/usr/bin/env python3
"""The page that `hotcell eval --report` writes, and comparisons: what it counts, that nothing in it comes from elsewhere or from
hostile text, that it is laid out well. With chromium it is looked at in a browser, light and dark, wide and narrow. Prints TAP.

    HOTCELL=build/hotcell test/e2e/test_report.py [--list] [part of a name]...
"""
import base64
import hashlib
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import HOTCELL, Skip, check, equal, main, scratch, test  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
HOSTILE = ["</script><script>document.title='pwned'</script>", "<img src=x onerror=\"document.title='pwned'\">",
           "</pre></div></details></section></main><svg onload=document.title='pwned'>", "\"' onmouseover=document.title='pwned' x='",
           "<!--", "--><script>document.title='pwned'</script>", "]]>", "&lt;b&gt;&amp;", "\x1b[31mred\x07", "a\u202egnirts\u2069",
           "<style>*{display:none}</style>", "<base href=http://example.org/>", "<meta http-equiv=refresh content=0;url=http://example.org/>",
           "</textarea></title></style><plaintext>", "\u00fc\u4e2d\U0001f600"]
ITEMS = [dict(id="good/%d" % n, language="bash", suite="plain", program="echo %d" % n, expect={"kind": "stdout_number", "value": n})
         for n in range(8)]
ITEMS += [dict(id="wrong/%d" % n, language="bash", suite="plain", program="echo 1", question="What is %d?" % n,
               expect={"kind": "stdout_number", "value": 10 + n}) for n in range(3)]
ITEMS += [dict(id="bad %d %s" % (n, re.sub(r"[\x00-\x1f]", "", text)), language="python", suite="suite " + text[:40].replace("\x1b", "").replace("\x07", ""),
               question=text, program="# " + text.replace("\n", " ") + "\nimport sys\nprint(%r)\nraise ValueError(%r)" % (text, text),
               expect={"kind": "stdout_trim", "value": text}) for n, text in enumerate(HOSTILE)]
ITEMS += [dict(id="type", language="python", suite="t", program="class %s(Exception): pass\nraise %s('x')" % (("A" * 200,) * 2)),
          dict(id="syntax", language="python", suite="t", program="print("),
          dict(id="time", language="bash", suite="t", program="while :; do :; done", limits={"wall_s": 0.5}),
          dict(id="long", language="bash", suite="t", program="exit 3 # " + "x" * 30000),
          dict(id="network", language="python", suite="t", program="import socket\nsocket.socket().connect(('10.1.2.3', 80))"),
          dict(id="unknown", language="cobol", suite="t", program="x")]


def hotcell(*arguments, stdin=None, wanted=0):
    done = subprocess.run([HOTCELL, "eval", *arguments], capture_output=True, input=stdin, text=True, timeout=120)
    equal(done.returncode, wanted, "exit code (%r)" % done.stderr)
    return done


_made = {}


def report():
    """(page, results, report) of one evaluation, made once per test program."""
    folder = scratch("report")
    os.makedirs(folder)
    page, results, items = folder + "/page.html", folder + "/results.jsonl", folder + "/it<e>ms.jsonl"
    with open(items, "w") as file:
        file.write("".join(json.dumps(item) + "\n" for item in ITEMS) + "<script>no item</script>\n")
    done = hotcell("--json", "--store", "none", "--jobs", "2", "--results", results, "--report", page, items, wanted=1)
    return page, [json.loads(line) for line in open(results)], json.loads(done.stdout), items


class Page(html.parser.HTMLParser):
    """Elements with their attributes, text, and what is not balanced."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.text, self.stack, self.wrong, self.scripts, self.styles = [], "", [], [], [], []
        self.source = open(path, encoding="utf-8", newline="").read()
        self.feed(self.source)
        self.close()
        self.wrong += ["%s is not closed" % tag for tag in self.stack]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.stack or self.stack[-1] != tag:
            self.wrong.append("</%s> within %s" % (tag, self.stack[-3:]))
        elif self.stack:
            self.stack.pop()

    def handle_data(self, data):
        if self.stack and self.stack[-1] in ("script", "style"):
            (self.scripts if self.stack[-1] == "script" else self.styles).append(data)
        else:
            self.text += data


def digest(text):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def harmless(page):
    """Only our own style and script, no address of anything, no handler, no inline style; and it is well formed."""
    equal(page.wrong, [], "elements that are not balanced")
    equal((len(page.scripts) <= 1, len(page.styles)), (True, 1), "scripts and styles")
    allowed = {"html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section", "div", "h1", "h2", "h3", "p", "b",
               "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "svg", "text", "rect", "line", "details", "summary", "span",
               "pre", "form", "label", "input", "select", "option", "button", "script", "time"}
    for tag, attributes in page.elements:
        check(tag in allowed, "an element that we do not write", tag, attributes)
        for name in attributes:
            check(not name.startswith("on") and name not in ("style", "src", "href", "action", "srcset", "formaction"),
                  "an attribute that we do not write", tag, name)
    policy = [a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    equal(len(policy), 1, "policies")
    check(policy[0].startswith("default-src 'none'; ") and digest(page.styles[0]) in policy[0], "the policy", policy[0])
    for script in page.scripts:
        check(digest(script) in policy[0], "the script's digest", policy[0])
    check("unsafe" not in policy[0] and "http" not in policy[0], "nothing else is allowed", policy[0])


@test(timeout=120)
def the_page_says_what_the_results_say():
    path, results, summary, _ = report()
    page = Page(path)
    harmless(page)
    failed = [one for one in results if one["status"] != "ok" or one["accepted"] is False]
    cards = [a for t, a in page.elements if t == "details" and a.get("class") == "item"]
    equal(len(cards), len(failed), "cards")
    statuses = {}
    for one in results:
        statuses[one["status"]] = statuses.get(one["status"], 0) + 1
    equal(summary["execution"]["statuses"], statuses, "statuses of the report")
    rows = dict(re.findall(r"<dt>([a-z_]+)</dt><dd>(\d+)</dd>", page.source.split('id="execution"')[1].split("</section>")[0]))
    equal({name: int(count) for name, count in rows.items()}, statuses, "statuses of the page")
    card = page.source.split('id="acceptance"')[1].split("</section>")[0]
    equal([int(n) for n in re.findall(r"<dd>(\d+)</dd>", card)],
          [sum(one["accepted"] is value for one in results if one["status"] != "fault") for value in (True, False, None)], "acceptance")
    bars = page.source.split("Items by status: ")[1].split('"')[0]
    equal(dict((name, int(count)) for name, count in re.findall(r"([a-z_]+) (\d+)", bars)), statuses, "the plot, for who does not see it")
    classes = {}
    for one in cards:
        classes[one["data-class"]] = classes.get(one["data-class"], 0) + 1
    equal({name: row["count"] for name, row in summary["errors"].items()}, classes, "classes")
    equal((classes["logical"], classes["syntax"], classes["resource"], classes["policy"]), (3, 1, 1, 1), "one of each")
    equal(summary["errors"]["resource"]["kinds"], {"wall_time": 1}, "the axis")
    equal(summary["findings"]["items_with_network_attempts"], 1, "security")
    check("1 of them" not in page.text and "it<e>ms.jsonl" in page.text, "the title")


@test(timeout=120)
def hostile_text_is_text():
    path, results, _, _ = report()
    page = Page(path)
    harmless(page)
    for text in HOSTILE:
        shown = text.replace("\x1b", "\\x1b").replace("\x07", "\\x07").replace("\u202e", "\\u{202E}").replace("\u2069", "\\u{2069}")
        check(page.text.count(shown) >= 2, "the text as text", shown)
    check("\x1b" not in page.source and "\u202e" not in page.source, "controls are shown, not sent")
    check("A" * 100 in page.text and "more bytes" in page.text, "long texts are cut")
    check("What is 2?" in page.text and '"value": 12' in page.text, "question and expectation of an item")
    check("<script>no item</script>" not in page.source and "not JSON" in page.text, "bad lines")


@test(timeout=120)
def a_page_from_results_of_earlier():
    path, results, _, items = report()
    folder = os.path.dirname(path)
    whole = Page(path)
    part = folder + "/part.jsonl"
    with open(part, "w") as file:
        file.write("".join(json.dumps(one) + "\n" for one in results[: len(results) // 2]))
    hotcell("--store", "none", "--results", part, "--resume", "--report", folder + "/second.html", items, wanted=1)
    second = Page(folder + "/second.html")
    harmless(second)

    def ids(page):
        return sorted(re.findall(r"<summary><b>(.*?)</b>", page.source))
    equal(ids(second), ids(whole), "items that failed")
    for text in ("What is 2?", "Expectation", "Program"):
        equal(second.text.count(text), whole.text.count(text), "%r, though the item ran earlier" % text)
    for name, why in (("/none/such/x.html", "No such file"), ("/dev/null", "no plain file"), (folder, "no plain file")):
        done = hotcell("--store", "none", "--report", name, items, wanted=125)
        check("--report" in done.stderr and why in done.stderr, "a place that can't be written", done.stderr)
    equal([name for name in os.listdir(folder) if name.endswith(".tmp")], [], "files that were left")


def result(id, status="ok", accepted=None, wall=1000, **more):
    return dict(more, id=id, status=status, cause=None, exit_code=0, accepted=accepted, stdout_sha256=None, wall_us=wall, total_us=wall)


@test(timeout=60)
def two_results_beside_each_other():
    folder = scratch("compare")
    os.makedirs(folder)
    first = [result("same", accepted=True), result("lost", accepted=True), result("won", accepted=False), result("broke"),
             result("other", "timeout"), result("gone"), result("<b>&'\"", "runtime_error"), result("slow", accepted=True, wall=2000)]
    second = [result("<b>&'\""), result("slow", accepted=True, wall=6000), result("same", accepted=True, wall=3000),
              result("lost", accepted=False, wall=3100), result("won", accepted=True, wall=2900), result("broke", "memory_limit"),
              result("other", "memory_limit"), result("new"), result("same", "fault")]
    paths = []
    for name, rows in (("a.jsonl", first), ("b.jsonl", second)):
        paths.append(folder + "/" + name)
        with open(paths[-1], "w") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
    with open(paths[1], "a") as file:
        file.write('{"id": "cut')
    done = hotcell("--json", "--compare", *paths, "--report", folder + "/c.html", wanted=1)
    found = json.loads(done.stdout)
    equal({name: found[name] for name in ("common", "same", "better", "worse", "changed")},
          {"common": 7, "same": 2, "better": 2, "worse": 2, "changed": 1}, "counts")
    equal(sorted((one["id"], one["direction"]) for one in found["items"]),
          [("<b>&'\"", "better"), ("broke", "worse"), ("lost", "worse"), ("other", "changed"), ("won", "better")], "items")
    equal((found["first"]["only_here_first"], found["second"]["only_here_first"]), (["gone"], ["new"]), "in one file alone")
    equal(round(found["wall_ratio"]["p50"]), 3, "ratio of wall times")
    equal(found["moves"]["ok, right -> ok, wrong"], 1, "moves")
    page = Page(folder + "/c.html")
    harmless(page)
    check("<b>&'\"" in page.text and "gone" in page.text and "ok, right -> ok, wrong" in page.text, "the page", page.text[-800:])
    text = hotcell("--compare", *paths, wanted=1).stdout
    check(re.search(r"^  worse +2$", text, re.M) and re.search(r"^    lost +ok, right -> ok, wrong$", text, re.M), "for people", text)
    equal(hotcell("--json", "--compare", paths[0], paths[0]).returncode, 0, "with itself")
    for arguments, why in (([paths[0]], "two files"), ([paths[0], folder + "/none"], "No such file"),
                           ([paths[0], HOTCELL], ":1: is no result"), ([paths[0], paths[1], paths[1]], "two files with --compare")):
        check(why in hotcell("--compare", *arguments, wanted=125).stderr, "wrong use: " + why)
    check("one data set at a time" in hotcell(*paths, wanted=125).stderr, "two data sets")


# ---- contrast, by the rule of WCAG ----

def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@test()
def colours_can_be_told_apart():
    css = open(os.path.join(ROOT, "share", "report", "report.css")).read()
    roots = [dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", part)) for part in re.findall(r":root \{(.*?)\}", css, re.S)]
    equal(len(roots), 2, "light and dark")
    for name, root in zip(("light", "dark"), roots):
        for ink in ("ink", "soft", "good", "bad", "warn", "note"):
            for ground in ("page", "card", "code"):
                a, b = sorted((luminance(root[ink]), luminance(root[ground])))
                check((b + 0.05) / (a + 0.05) >= 4.5, "%s: %s on %s" % (name, ink, ground), (b + 0.05) / (a + 0.05))
        for bar in ("good", "bad", "warn", "note"):
            a, b = sorted((luminance(root[bar]), luminance(root["track"])))
            check((b + 0.05) / (a + 0.05) >= 3, "%s: bar %s on its track" % (name, bar))


# ---- in a browser ----

def browser(*arguments):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise Skip("chromium is not installed (300 MB: not in the list of packages)")
    done = subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                           "--user-data-dir=" + scratch("profile"), *arguments], capture_output=True, timeout=90,
                          env=dict(os.environ, HOME=scratch("home")))
    return done.stdout.decode("utf-8", "replace")


PROBE = """<script>
var wrong = [], width = document.documentElement.clientWidth;
document.querySelectorAll("details").forEach(function (one) { one.open = true; });
if (document.documentElement.scrollWidth > width) wrong.push("the page is " + document.documentElement.scrollWidth + " wide");
document.querySelectorAll("body *").forEach(function (one) {
    if (one.closest(".scroll, pre, form[hidden], script, title") && !one.matches(".scroll, pre")) return;
    var box = one.getBoundingClientRect();
    if (box.width > 0 && (box.right > width + 1 || box.left < -1)) wrong.push(one.tagName + "." + one.className + " from " + box.left + " to " + box.right);
    if (one.tagName === "text" && box.height < 9) wrong.push("text of " + box.height + " px: " + one.textContent);
});
var clipped = document.querySelectorAll("svg text");
clipped.forEach(function (one) {
    var box = one.getBoundingClientRect(), drawing = one.ownerSVGElement.getBoundingClientRect();
    if (box.left < drawing.left - 1 || box.right > drawing.right + 1) wrong.push("cut: " + one.textContent);
});
document.title = "PROBE " + JSON.stringify({width: width, cards: document.querySelectorAll("details.item").length, wrong: wrong.slice(0, 10)});
</script></body>"""


def probe(path, width):
    source = open(path, encoding="utf-8", newline="").read()
    source = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", source)
    # in a frame: a window itself has a least width
    inner, outer = os.path.dirname(path) + "/inner.html", os.path.dirname(path) + "/outer.html"
    with open(inner, "w", encoding="utf-8", newline="") as file:
        file.write(source.replace("</body>", PROBE.replace("document.title =", "parent.document.title =")) if source.count("</body>") == 1 else "")
    with open(outer, "w") as file:
        file.write("<!DOCTYPE html><title>none</title><iframe src=inner.html width=%d height=900 frameborder=0></iframe>" % width)
    dom = browser("--allow-file-access-from-files", "--disable-web-security", "--virtual-time-budget=8000", "--window-size=1400,1000",
                  "--dump-dom", "file://" + outer)
    match = re.search(r"<title>PROBE (.*?)</title>", dom, re.S)
    check(match, "the page was measured", dom[:300])
    return json.loads(match[1].replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&"))


@test(timeout=200)
def nothing_leaves_the_window():
    path, results, _, _ = report()
    compared = os.path.dirname(path) + "/compared.html"
    hotcell("--json", "--compare", os.path.dirname(path) + "/results.jsonl", os.path.dirname(path) + "/results.jsonl", "--report", compared)
    for width in (390, 820, 1280):
        found = probe(path, width)
        equal((found["width"], found["wrong"]), (width, []), "what is too wide, too small or cut at %d px" % width)
        equal(found["cards"], len([one for one in results if one["status"] != "ok" or one["accepted"] is False]), "cards in the browser")
        equal(probe(compared, width)["wrong"], [], "the comparison at %d px" % width)


@test(timeout=200)
def the_script_runs_and_no_other():
    path, results, _, _ = report()
    dom = browser("--virtual-time-budget=5000", "--dump-dom", "file://" + path)
    failed = len([one for one in results if one["status"] != "ok" or one["accepted"] is False])
    check("%d of %d shown" % (failed, failed) in dom, "the filter counts", dom[:200])
    check(re.search(r"<title>Evaluation of", dom) and "<title>pwned" not in dom, "no other script ran")
    check(re.search(r'<option value="=logical">logical \(3\)</option>', dom), "classes to choose from")
    check("<plaintext" not in dom and "<img" not in dom and "<base" not in dom, "no element of an item's making")


@test(timeout=200)
def light_and_dark():
    try:
        from PIL import Image
    except ImportError:
        raise Skip("python3-pil is not installed")
    path, _, _, _ = report()
    means = []
    for number in (1, 0):  # what the reader prefers: light, dark
        picture = "%s/%d.png" % (os.path.dirname(path), number)
        browser("--window-size=1000,1000", "--blink-settings=preferredColorScheme=%d" % number, "--screenshot=" + picture, "file://" + path)
        check(os.path.exists(picture), "a picture was taken")
        image = Image.open(picture).convert("L")
        histogram = image.histogram()
        means.append(sum(i * n for i, n in enumerate(histogram)) / sum(histogram))
        check(len([n for n in histogram if n]) > 30, "there is something in it")
    check(means[0] > 200 and means[1] < 70, "one is light, one is dark", means)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Files that a run left: what is found in them, what keeps them from leaving, and that names can be shown.

    HOTCELL=build/hotcell test/cell/test_artifacts.py [--list] [--times] [part of a name]...

The files are real, made by the programs themselves.
"""
import base64
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403

HELP = """
import io, os, struct, tarfile, zipfile, zlib, gzip, bz2, lzma
def put(name, data):
    with open(name, "wb") as f: f.write(data if isinstance(data, bytes) else data.encode())
def packed(**members):
    b = io.BytesIO()
    with zipfile.ZipFile(b, "w", zipfile.ZIP_DEFLATED) as z:
        for n, d in members.items(): z.writestr(n, d)
    return b.getvalue()
def tar(*members):
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w") as t:
        for name, kind, target in members:
            i = tarfile.TarInfo(name); i.type = kind; i.linkname = target
            if kind == tarfile.REGTYPE: i.size = 2; t.addfile(i, io.BytesIO(b"hi"))
            else: t.addfile(i)
    return b.getvalue()
def png(w, h):
    def chunk(k, d): return struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d))
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\\0" * 100)) + chunk(b"IEND", b"")
"""


def found(code, **options):
    """path → sorted findings; the record."""
    record = run(HELP + code, **options)[0]
    ends(record, "ok", None)
    equal(record["residue"], {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0}, "residue")
    return {item["path"]: sorted(f["rule"] for f in item["findings"]) for item in record["artifacts"]}, record


@test()
def harmless_files_have_no_findings():
    got, record = found("""
put("t.csv", "a,b\\n-3,+1.5e3\\n-1,234.50%\\n2020-01-03,-\\n")
put("ok.png", png(640, 480)); put("page.html", "<html><body><p>on = 1</p><a href='#x'>x</a></body></html>")
put("pic.svg", "<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0'/></svg>")
put("a.zip", packed(**{"d/a.txt": "x", "b.txt": "y" * 1000})); put("a.tar", tar(("a", tarfile.REGTYPE, ""), ("d", tarfile.DIRTYPE, "")))
put("a.txt.gz", gzip.compress(b"hello")); put("a.tar.xz", lzma.compress(tar(("a", tarfile.REGTYPE, ""))))
put("notes.txt", "BM is no picture, MZ no program"); put("data.json", "{}"); put("e.png", b"")
""")
    equal({name: rules for name, rules in got.items() if rules}, {}, "findings")
    types = {item["path"]: item["type"] for item in record["artifacts"]}
    equal([types[n] for n in ("ok.png", "pic.svg", "page.html", "a.zip", "a.tar", "notes.txt", "t.csv")],
          ["image/png", "image/svg+xml", "text/html", "application/zip", "application/x-tar", "text/plain", "text/csv"], "types")


@test()
def tables_markup_and_pictures():
    got, _ = found("""
for i, cell in enumerate(("=1+1", "@SUM(A1)", "+1+cmd|' /C calc'!A0", "-2+3", "\\t=1", '"=HYPERLINK(1)"', "\\uff1d1")):
    put(f"f{i}.csv", "a,b\\n1," + cell + "\\n")
put("semi.csv", "a;b\\n1;=1\\n"); put("tab.tsv", "a\\tb\\n1\\t=1\\n"); put("broken.csv", 'a,"x"y\\n1,=2\\n')
put("s.svg", "<svg><script>alert(1)</script></svg>"); put("h.svg", "<svg onload = 'x()'/>"); put("u.html", "<a HREF='JavaScript:x'>")
put("r.html", "<img src='//evil.example/x.png'>"); put("c.svg", "<svg><style>@import 'x'</style></svg>"); put("x.svg", "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><svg/>")
put("big.png", png(60000, 60000)); put("many.png", png(15000, 15000)); put("cut.png", png(1, 1)[:20]); put("zero.png", png(0, 5))
put("big.gif", b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\\0" * 9)
put("big.bmp", b"BM" + b"\\0" * 12 + struct.pack("<Iii", 40, 30000, -30000) + b"\\0" * 20)
put("big.jpg", b"\\xff\\xd8\\xff\\xe0\\0\\x04ab\\xff\\xc0\\0\\x11\\x08" + struct.pack(">HH", 65000, 65000) + b"\\0" * 20)
put("big.webp", b"RIFF\\0\\0\\0\\0WEBPVP8X" + b"\\0" * 8 + b"\\xff\\xff\\xff\\xff\\xff\\xff" + b"\\0" * 8)
""", artifact_count=100)
    for name in [f"f{i}.csv" for i in range(7)] + ["semi.csv", "tab.tsv", "broken.csv"]:
        equal(got[name], ["formula"], name)
    for name, rules in {"s.svg": ["active_content"], "h.svg": ["active_content"], "u.html": ["active_content"], "r.html": ["foreign_reference"],
                        "c.svg": ["foreign_reference"], "x.svg": ["xml_entities"], "big.png": ["huge_image"], "many.png": ["huge_image"],
                        "cut.png": ["broken_image"], "zero.png": ["broken_image"], "big.gif": ["huge_image"], "big.bmp": ["huge_image"],
                        "big.jpg": ["huge_image"], "big.webp": ["huge_image"]}.items():
        equal(got[name], rules, name)


@test()
def programs_and_endings():
    got, _ = found("""
import pickle, shutil
shutil.copy("/bin/true", "tool"); shutil.copy("/bin/true", "picture.png"); put("w.exe", b"MZ\\x90\\0" + b"\\0" * 60)
put("run.txt", "#!/bin/sh\\necho\\n"); put("p.pkl", pickle.dumps([1])); put("page.txt", "<html><script>x</script></html>")
put("t.csv", png(1, 1)); put("doc.pdf", "%PDF-1.4 /OpenAction << /JavaScript >>"); put("m.doc", b"\\xd0\\xcf\\x11\\xe0\\xa1\\xb1\\x1a\\xe1" + b"_\\0V\\0B\\0A\\0_\\0P\\0R\\0O\\0J\\0E\\0C\\0T\\0")
""")
    for name, rules in {"tool": ["executable"], "picture.png": ["ending_differs", "executable"], "w.exe": ["executable"], "run.txt": ["script"],
                        "p.pkl": ["pickle"], "page.txt": ["active_content", "ending_differs"], "t.csv": ["ending_differs"],
                        "doc.pdf": ["active_content"], "m.doc": ["office_macros"]}.items():
        equal(got[name], rules, name)


@test()
def archives():
    got, record = found("""
put("up.zip", packed(**{"../up.txt": "x"})); put("root.zip", packed(**{"/etc/x": "x"})); put("drive.zip", packed(**{"C:\\\\x": "x"}))
put("up.tar", tar(("../../x", tarfile.REGTYPE, ""))); put("link.tar", tar(("a", tarfile.SYMTYPE, "b")))
put("out.tar", tar(("d/a", tarfile.SYMTYPE, "../../etc/passwd"))); put("hard.tar", tar(("a", tarfile.LNKTYPE, "../x"))); put("fifo.tar", tar(("p", tarfile.FIFOTYPE, "")))
put("m.docx", packed(**{"[Content_Types].xml": "<x/>", "word/vbaProject.bin": "x"})); put("m.xlsm", packed(**{"xl/macrosheets/s.xml": "x"}))
put("bomb.zip", packed(zero=b"\\0" * (30 << 20))); put("bomb.gz", gzip.compress(b"\\0" * (30 << 20)))
put("many.zip", packed(**{str(i): "" for i in range(10500)}))
put("in.zip", packed(inner=packed(**{"../x": "x"}))); put("deep.zip", packed(a=packed(a=packed(a=packed(a="x")))))
put("in.tar.gz", gzip.compress(tar(("../x", tarfile.REGTYPE, "")))); put("prog.zip", packed(tool=open("/bin/true", "rb").read()))
put("cut.zip", packed(a=os.urandom(5000))[:3000]); put("lie.gz", b"\\x1f\\x8b" + b"x" * 100)
""", artifact_count=100)
    for name, rules in {
            "up.zip": ["archive_escapes"], "root.zip": ["archive_escapes"], "drive.zip": ["archive_escapes"], "up.tar": ["archive_escapes"],
            "link.tar": ["archive_links"], "out.tar": ["archive_escapes", "archive_links"], "hard.tar": ["archive_escapes", "archive_links"],
            "fifo.tar": ["archive_links"], "m.docx": ["office_macros"], "m.xlsm": ["office_macros"], "bomb.zip": ["archive_bomb"],
            "bomb.gz": ["archive_bomb"], "many.zip": ["archive_bomb"], "in.zip": ["archive_escapes"], "deep.zip": ["archive_nested"],
            "in.tar.gz": ["archive_escapes"], "prog.zip": ["archive_executable"], "cut.zip": ["archive_broken"], "lie.gz": ["archive_broken"]}.items():
        equal(got[name], rules, name)
    severities = {f["severity"] for item in record["artifacts"] for f in item["findings"] if f["rule"] in ("archive_escapes", "archive_bomb")}
    equal(severities, {"error"}, "severity of findings that block")


@test()
def what_blocks_keeps_everything_in():
    for code, part in (("put('up.zip', packed(**{'../x': 'x'}))", "up.zip: archive_escapes"), ("put('b.gz', gzip.compress(bytes(30 << 20)))", "b.gz: archive_bomb")):
        folder = scratch("out")
        ending = invoke(command(HELP + code + "\nput('fine.txt', 'x')", json_=False, out=folder))
        equal((ending.code, os.path.exists(folder)), (0, False), "exit code and folder")
        check(part in ending.stderr.decode(), "the line that says why", ending.stderr)
    folder = scratch("out")
    record = run(HELP + "put('m.docx', packed(**{'word/vbaProject.bin': 'x'})); put('t.csv', '=1')", out=folder)[0]
    equal(sorted(os.listdir(folder)), ["m.docx", "t.csv"], "what is only reported leaves")
    equal({i["path"]: i["exported"] for i in record["artifacts"]}, {"m.docx": True, "t.csv": True}, "exported")


@test()
def names_that_deceive():
    got, record = found("put('gpj.\\u202eexe', 'x'); put('zero\\u200bwidth', 'x'); put('new\\nline', 'x'); os.close(os.open(b'bad-\\xff', os.O_CREAT)); put('\\u00e4.txt', 'x')")
    paths = {item["path"]: item["path_base64"] for item in record["artifacts"]}
    equal(paths.pop("\u00e4.txt"), None, "an ordinary name")
    equal({base64.b64decode(value) for value in paths.values()},
          {"gpj.\u202eexe".encode(), "zero\u200bwidth".encode(), b"new\nline", b"bad-\xff"}, "exact bytes")
    check(all(p.isprintable() and p.isascii() for p in paths), "names for people", paths)
    equal(got["gpj.\\xE2\\x80\\xAEexe"], ["deceptive_name"], "bidirectional")
    equal(got["zero\\xE2\\x80\\x8Bwidth"], ["deceptive_name"], "without width")


@test()
def a_run_without_archives_needs_no_scanner():
    _, record = found("put('a.txt', 'x' * 1000); put('t.csv', 'a,b\\n1,2\\n')")
    check(record["timing"]["collect_us"] < 200000, "collecting took %d us" % record["timing"]["collect_us"])


@test(timeout=60)
def a_profile_says_what_may_leave():
    """The words of `artifacts`: types by content, and which findings keep everything in."""
    profile = write(scratch("p.yaml"), "version: 1\nartifacts: {types: [csv, xlsx], scan: [formulas]}\n")
    for code, kept_by in (("put('a.csv', 'a,b\\n1,2\\n'); put('e.bin', b'')", None),
                          ("put('a.csv', 'a,b\\n1,=2\\n')", "formula"),
                          ("put('a.xlsx', packed(**{'xl/a.xml': '<a/>'}))", None),
                          ("put('a.zip', packed(a='x'))", "type_not_allowed"),
                          ("put('a.csv', 'a\\n1\\n'); put('p.csv', png(1, 1))", "type_not_allowed")):
        folder = os.path.join(scratch(), "out")
        record = run(HELP + code, out=folder, profile=profile)[0]
        ends(record, "ok", None)
        equal(os.path.exists(folder), kept_by is None, code)
        equal([a["exported"] for a in record["artifacts"]], [kept_by is None] * len(record["artifacts"]), "all or nothing")
        if kept_by is not None:
            check(any(f["rule"] == kept_by for a in record["artifacts"] for f in a["findings"]), kept_by, record["artifacts"])
    for text, column in (("version: 1\nartifacts: {types: [csv, exe]}\n", 26), ("version: 1\nartifacts: {scan: [everything]}\n", 20)):
        record, ending = run("print(1)", profile=write(scratch("q.yaml"), text))[:2]
        equal((record["state"], record["cause"]), ("refused", "field"), text)
        check(":2:%d: unknown word" % column in record["error"]["message"], "place", record["error"])


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Every language of share/runtimes, by the same list of questions. A language whose tools are missing is skipped with the
reason that hotcell itself gives.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import Skip, check, ends, equal, err, main, out, run, test  # noqa: E402

# hello: prints "hello".          exits: ends with 7.             stdin: prints the sum of the numbers on two lines.
# args: prints its arguments, one a line.                         syntax: does not parse.
# fails: (program, type, message, line of the error), in the words of the language; None where it names none.
# writes: writes "made" into out.txt.   loops: for ever.   hogs: takes memory for ever, and uses it.
LANGUAGES = {
    "python": {
        "hello": "print('hello')",
        "exits": "import sys; sys.exit(7)",
        "stdin": "print(int(input()) + int(input()))",
        "args": "import sys\nfor a in sys.argv[1:]: print(a)",
        "syntax": "print(",
        "fails": ("\ndef f():\n    return 1 // 0\nf()", "ZeroDivisionError", "integer division or modulo by zero", 3),
        "writes": "open('out.txt', 'w').write('made')",
        "loops": "while True: pass",
        "hogs": "a = []\nwhile True: a.append(b'x' * 1000000 + bytes([len(a) % 256]))",
    },
    "bash": {
        "hello": "echo hello",
        "exits": "exit 7",
        "stdin": "read a; read b; echo $((a + b))",
        "args": "printf '%s\\n' \"$@\"",
        "syntax": "if true; then\n",
        "fails": ("\nset -e\ncd /nosuch", None, "cd: /nosuch: No such file or directory", 3),
        "writes": "printf made >out.txt",
        "loops": "while :; do :; done",
        "hogs": "x=abcdefgh; while :; do x=$x$x; done",
    },
    "c": {
        "hello": "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }",
        "exits": "int main(void) { return 7; }",
        "stdin": "#include <stdio.h>\nint main(void) { int a, b; scanf(\"%d %d\", &a, &b); printf(\"%d\\n\", a + b); return 0; }",
        "args": "#include <stdio.h>\nint main(int n, char **a) { for (int i = 1; i < n; i++) puts(a[i]); return 0; }",
        "syntax": "int main(void) {\n    return x;\n}",
        "writes": "#include <stdio.h>\nint main(void) { FILE *f = fopen(\"out.txt\", \"w\"); fputs(\"made\", f); return fclose(f); }",
        "loops": "int main(void) { for (volatile int i = 0;; i++) ; }",
        "hogs": "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }",
        "syntax_error": ("error", None, 2),
    },
    "cpp": {
        "hello": "#include <iostream>\nint main() { std::cout << \"hello\\n\"; }",
        "exits": "int main() { return 7; }",
        "stdin": "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }",
        "args": "#include <iostream>\nint main(int n, char **a) { for (int i = 1; i < n; i++) std::cout << a[i] << '\\n'; }",
        "syntax": "int main() {\n    return x;\n}",
        "fails": ("#include <stdexcept>\nint main() { throw std::out_of_range(\"too far\"); }", "std::out_of_range", "too far",
                  None),
        "writes": "#include <fstream>\nint main() { std::ofstream(\"out.txt\") << \"made\"; }",
        "loops": "int main() { for (volatile int i = 0;; i++) ; }",
        "hogs": "#include <vector>\nint main() { std::vector<std::vector<char>> v; for (;;) v.emplace_back(1 << 20, 'x'); }",
        "syntax_error": ("error", None, 2),
    },
    "javascript": {
        "hello": "console.log('hello')",
        "exits": "process.exit(7)",
        "stdin": "const [a, b] = require('fs').readFileSync(0, 'utf8').split('\\n').map(Number); console.log(a + b)",
        "args": "for (const a of process.argv.slice(2)) console.log(a)",
        "syntax": "const x = ;",
        "fails": ("\nfunction f(x) {\n  return x.y.z;\n}\nf({});", "TypeError",
                  "Cannot read properties of undefined (reading 'z')", 3),
        "writes": "require('fs').writeFileSync('out.txt', 'made')",
        "loops": "for (;;) ;",
        "hogs": "const a = []; for (;;) a.push(new Array(100000).fill(a.length))",
    },
    "java": {
        "hello": "class Main { public static void main(String[] a) { System.out.println(\"hello\"); } }",
        "exits": "class Main { public static void main(String[] a) { System.exit(7); } }",
        "stdin": "import java.util.*;\nclass Main { public static void main(String[] a) { Scanner s = new Scanner(System.in);"
                 " System.out.println(s.nextInt() + s.nextInt()); } }",
        "args": "class Main { public static void main(String[] a) { for (String s : a) System.out.println(s); } }",
        "syntax": "class Main {\n    int x = ;\n}",
        "fails": ("class Main {\n    static int f(int[] a) {\n        return a[3];\n    }\n"
                  "    public static void main(String[] a) { f(new int[2]); }\n}",
                  "java.lang.ArrayIndexOutOfBoundsException", "Index 3 out of bounds for length 2", 3),
        "writes": "import java.nio.file.*;\nclass Main { public static void main(String[] a) throws Exception {"
                  " Files.writeString(Path.of(\"out.txt\"), \"made\"); } }",
        "loops": "class Main { public static void main(String[] a) { for (;;) ; } }",
        "hogs": "import java.util.*;\nclass Main { public static void main(String[] a) { List<byte[]> l = new ArrayList<>();"
                " for (;;) l.add(new byte[1 << 20]); } }",
        "syntax_error": ("error", "illegal start of expression", 2),
    },
    "ruby": {
        "hello": "puts 'hello'",
        "exits": "exit 7",
        "stdin": "puts gets.to_i + gets.to_i",
        "args": "puts ARGV",
        "syntax": "def f(",
        "fails": ("\ndef f\n  Integer('x')\nend\nf", "ArgumentError", "invalid value for Integer(): \"x\"", 3),
        "writes": "File.write('out.txt', 'made')",
        "loops": "loop {}",
        "hogs": "a = []\nloop { a << 'x' * 1000000 }",
    },
    "perl": {
        "hello": "print \"hello\\n\"",
        "exits": "exit 7",
        "stdin": "print <STDIN> + <STDIN>, \"\\n\"",
        "args": "print \"$_\\n\" for @ARGV",
        "syntax": "if (",
        "fails": ("\nsub f {\n  die 'no such thing';\n}\nf();", None, "no such thing", 3),
        "writes": "open my $f, '>', 'out.txt'; print $f 'made'",
        "loops": "1 while 1",
        "hogs": "my @a; push @a, 'x' x (1000000 + @a) while 1",
    },
    "lua": {
        "hello": "print('hello')",
        "exits": "os.exit(7)",
        "stdin": "print(io.read('n') + io.read('n'))",
        "args": "for _, a in ipairs(arg) do print(a) end",
        "syntax": "x = = 2",
        "fails": ("\nlocal function f(x)\n  return x.y\nend\nprint(f(nil))", None,
                  "attempt to index a nil value (local 'x')", 3),
        "writes": "io.open('out.txt', 'w'):write('made')",
        "loops": "while true do end",
        "hogs": "local a = {}\nwhile true do a[#a + 1] = string.rep('x', 1000000 + #a) end",
    },
    "php": {
        "hello": "<?php echo \"hello\\n\";",
        "exits": "<?php exit(7);",
        "stdin": "<?php echo (int)fgets(STDIN) + (int)fgets(STDIN), \"\\n\";",
        "args": "<?php foreach (array_slice($argv, 1) as $a) echo $a, \"\\n\";",
        "syntax": "<?php\necho 1 2;",
        "fails": ("<?php\nfunction f() {\n  throw new DomainException('out of it');\n}\nf();", "DomainException", "out of it", 3),
        "writes": "<?php file_put_contents('out.txt', 'made');",
        "loops": "<?php for (;;) ;",
        "hogs": "<?php for ($a = [];;) $a[] = str_repeat('x', 1000000 + count($a));",
    },
    "r": {
        "hello": "cat('hello\\n')",
        "exits": "quit(status = 7)",
        "stdin": "x <- as.integer(readLines('stdin')); cat(sum(x), '\\n', sep = '')",
        "args": "cat(commandArgs(TRUE), sep = '\\n')",
        "syntax": "x <- (1",
        # R tells no line
        "fails": ("\nf <- function(x) stop('not this one')\nf(1)", "Error", "not this one", None),
        "writes": "cat('made', file = 'out.txt')",
        "loops": "repeat {}",
        "hogs": "a <- list(); repeat a[[length(a) + 1]] <- rep(1.5, 200000)",
    },
    "rust": {
        "hello": "fn main() { println!(\"hello\"); }",
        "exits": "fn main() { std::process::exit(7); }",
        "stdin": "use std::io::*;\nfn main() { let mut s = String::new(); stdin().read_to_string(&mut s).unwrap();\n"
                 " println!(\"{}\", s.split_whitespace().map(|x| x.parse::<i32>().unwrap()).sum::<i32>()); }",
        "args": "fn main() { for a in std::env::args().skip(1) { println!(\"{}\", a); } }",
        "syntax": "fn main() {\n    let x: i32 = \"a\";\n}",
        "fails": ("fn main() {\n    let v: Vec<i32> = Vec::new();\n    println!(\"{}\", v[3]);\n}", "panic",
                  "index out of bounds: the len is 0 but the index is 3", 3),
        "writes": "fn main() { std::fs::write(\"out.txt\", \"made\").unwrap(); }",
        "loops": "fn main() { loop {} }",
        "hogs": "fn main() { let mut v = Vec::new(); loop { v.push(vec![1u8; 1 << 20]); } }",
        "syntax_error": ("error[E0308]", "mismatched types", 2),
    },
    "go": {
        "hello": "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }",
        "exits": "package main\nimport \"os\"\nfunc main() { os.Exit(7) }",
        "stdin": "package main\nimport \"fmt\"\nfunc main() { var a, b int; fmt.Scan(&a, &b); fmt.Println(a + b) }",
        "args": "package main\nimport (\"fmt\"; \"os\")\nfunc main() { for _, a := range os.Args[1:] { fmt.Println(a) } }",
        "syntax": "package main\nfunc main() {\n\tx := 1\n}",
        "fails": ("package main\nfunc main() {\n\tvar m map[string]int\n\tm[\"a\"] = 1\n}", "panic",
                  "assignment to entry in nil map", 4),
        "writes": "package main\nimport \"os\"\nfunc main() { os.WriteFile(\"out.txt\", []byte(\"made\"), 0644) }",
        "loops": "package main\nfunc main() { for { } }",
        "hogs": "package main\nfunc main() { var a [][]byte; for { b := make([]byte, 1 << 20); for i := range b { b[i] = 1 };"
                " a = append(a, b) } }",
        "syntax_error": (None, None, 3),
    },
    "sql": {
        "hello": "select 'hello';",
        "exits": ".exit 7",
        "stdin": "create table t(x);\n.import '|cat' t\nselect sum(x) from t;",
        # the shell of sqlite has no check apart from running
        "fails": ("select 1;\n\nselect * from nosuch;\nselect 2;", "Parse error", "no such table: nosuch", 3),
        "writes": ".once out.txt\nselect 'made';",
        "loops": "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c;",
        "hogs": "create table t(b);\ninsert into t with recursive c(x) as (select 1 union all select x + 1 from c)"
                " select randomblob(1000000) from c;",
    },
}
COMPILED = ("c", "cpp", "java", "rust", "go")


def answer(language, code, **options):
    record, _, _, _ = run(code, language, **options)
    if record["status"] == "refused" and record["cause"] == "runtime":
        raise Skip(record["error"]["message"])
    return record


def hello(language, row):
    record = answer(language, row["hello"])
    ends(record, "ok", None)
    equal((out(record), err(record)), ("hello\n", ""), "what it printed")
    equal(record["files"]["created"], [], "files it made")
    equal(record["syscalls_denied"], [], "calls that were denied")
    equal([name for name, value in record["limits"].items() if value["hit"]], [], "limits it hit")
    check(record["runtime"]["version"], "the version is not known")


def exits(language, row):
    record = answer(language, row["exits"])
    ends(record, "runtime_error", "exit_code")
    equal(record["exit_code"], 7, "exit code")


def stdin(language, row):
    record = answer(language, row["stdin"], stdin=b"40\n2\n")
    ends(record, "ok", None)
    equal(out(record), "42\n", "what it printed")


def args(language, row):
    record = answer(language, row["args"], args=["a b", "@c", "-x", "ä$HOME"])
    ends(record, "ok", None)
    equal(out(record), "a b\n@c\n-x\nä$HOME\n", "what it printed")


def syntax(language, row):
    record = answer(language, row["syntax"])
    equal(record["status"], "compile_error" if language in COMPILED else "syntax_error", "status")
    if language in COMPILED:
        equal(record["compile"]["status"], "compile_error", "status of the compile step")
    if "syntax_error" in row:
        kind, message, line = row["syntax_error"]
        equal((record["error"]["type"], record["error"]["line"]), (kind, line), "the error's type and line")
        equal(record["error"]["message"], message or record["error"]["message"], "the error's message")
    if language in COMPILED:
        check(record["compile"]["stderr"]["bytes"] > 0, "the compiler said nothing")
    else:
        check(record["error"] is not None or language == "bash", "no error was found in %r" % err(record))


def fails(language, row):
    code, kind, message, line = row["fails"]
    record = answer(language, code)
    equal(record["status"], "runtime_error", "status")
    error = record["error"] or {}
    equal((error.get("type"), error.get("message"), error.get("line")), (kind, message, line),
          "what was read from %r" % err(record))


def writes(language, row):
    record = answer(language, row["writes"])
    ends(record, "ok", None)
    equal([item["path"] for item in record["artifacts"]], ["out.txt"], "artifacts")
    check(record["artifacts"][0]["bytes"] in (4, 5), "its size", record["artifacts"])


def loops(language, row):
    # A compiler has the same limits, so not too little.
    record = answer(language, row["loops"], cpu="3s", wall="20s")
    ends(record, "timeout", "cpu_time")
    check(record["compile"] is None or record["compile"]["status"] == "ok", "it was the compiler that ended")


def hogs(language, row):
    record = answer(language, row["hogs"], wall="40s", cpu="40s")
    ends(record, "memory_limit", "memory")
    check(record["compile"] is None or record["compile"]["status"] == "ok", "it was the compiler that ended")


def register():
    for language, row in LANGUAGES.items():
        for question in (hello, exits, stdin, args, syntax, fails, writes, loops, hogs):
            if question.__name__ not in row:
                continue

            def ask(question=question, language=language, row=row):
                question(language, row)
            ask.__name__ = "%s_%s" % (language, question.__name__)
            test(timeout=90)(ask)


register()


# ---- what is peculiar to one ----

def java(code, **options):
    record = answer("java", code, **options)
    ends(record, "ok", None)
    return out(record)


MAIN = "public static void main(String[] a) { System.out.println(\"%s\"); }"


@test(timeout=90)
def java_public_class_of_any_name():
    equal(java("public class Answer { " + MAIN % "any" + " }"), "any\n", "what it printed")


@test(timeout=90)
def java_helper_class_first():
    equal(java("class A { static class B {} }\ninterface I {}\nclass Main { " + MAIN % "main" + " }"), "main\n",
          "what it printed")


@test(timeout=90)
def java_package():
    equal(java("package a.b;\n\npublic final class C { " + MAIN % "package" + " }"), "package\n", "what it printed")


@test(timeout=90)
def java_fits_64_tasks():
    record = answer("java", "class Main { " + MAIN % "x" + " }", processes=64, memory="512M")
    ends(record, "ok", None)


@test(timeout=90)
def java_deep_garbage_is_not_a_memory_limit():
    equal(java("class Main { public static void main(String[] a) { byte[][] k = new byte[200][]; long n = 0;\n"
               " for (int i = 0; i < 20000; i++) { k[i % 200] = new byte[1 << 20]; n += k[i % 200].length; }\n"
               " System.out.println(n >> 20); } }"), "20000\n", "what it printed")


@test()
def javascript_module():
    record = answer("javascript", "import fs from 'node:fs';\nconsole.log(await Promise.resolve(typeof fs.readFileSync))")
    ends(record, "ok", None)
    equal(out(record), "function\n", "what it printed")


@test()
def javascript_failing_module_is_no_syntax_error():
    record = answer("javascript", "import fs from 'node:fs';\n\nthrow new RangeError('far');")
    ends(record, "runtime_error", "exception")
    equal((record["error"]["type"], record["error"]["line"]), ("RangeError", 3), "the error")


@test()
def sql_table_from_a_file():
    import hotcell_test
    path = hotcell_test.write(hotcell_test.scratch("data.csv"), "a,b\n1,2\n3,4\n")
    record = answer("sql", ".mode csv\n.import data.csv data\n.headers on\nselect sum(a) as s, sum(b) as t from data;",
                    file=path)
    ends(record, "ok", None)
    equal(out(record).replace("\r", ""), "s,t\n4,6\n", "what it printed")


if __name__ == "__main__":
    sys.exit(main())

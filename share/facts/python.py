# Reads a program and prints what it imports and calls, as facts for a policy: [kind, name, line, column] in a JSON list. Started in a cell
# of its own with the program beside it; nothing of the program is executed. What can't be seen by reading (a name that is put together at run
# time) is not in it: this is advice to the gate, the cell is the boundary.
import ast
import json
import sys

LIMIT = 20000


class Reader(ast.NodeVisitor):
    def __init__(self):
        self.facts = []
        self.names = {}  # local name -> what it stands for
        self.parameters = set()  # of functions and their names: not the builtin of that name
        self.depth = self.deepest = self.deepest_line = 0

    def add(self, kind, name, node):
        for prefix in ("builtins.", "__builtins__."):
            if name.startswith(prefix):
                name = name[len(prefix):]
        if len(self.facts) < LIMIT:
            self.facts.append([kind, name[:120], node.lineno, node.col_offset + 1])

    def visit(self, node):
        self.depth += 1
        if self.depth > self.deepest:
            self.deepest, self.deepest_line = self.depth, getattr(node, "lineno", self.deepest_line)
        super().visit(node)
        self.depth -= 1

    def take_function(self, node):
        arguments = node.args
        for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs + [arguments.vararg, arguments.kwarg]:
            if argument is not None:
                self.parameters.add(argument.arg)

    def collect(self, tree):
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.parameters.add(node.name)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                self.take_function(node)

    def visit_Import(self, node):
        for alias in node.names:
            self.add("import", alias.name, node)
            self.names[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]

    def visit_ImportFrom(self, node):
        module = "." * node.level + (node.module or "")
        if node.level == 0:
            self.add("import", module, node)
        for alias in node.names:
            self.names[alias.asname or alias.name] = "%s.%s" % (module, alias.name)
            self.add("call", "%s.%s" % (module, alias.name), node)  # a name that is taken out can be called under any other

    def full_name(self, node):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Call):
            inner = self.constant_call(node)
            if inner is None:
                return None
            parts.append(inner)
        elif isinstance(node, ast.Name):
            parts.append(self.names.get(node.id, node.id))
        else:
            return None
        name = ".".join(reversed(parts))
        return name[len("builtins."):] if name.startswith(("builtins.", "__builtins__.")) and name.count(".") == 1 else name

    def constant_call(self, node):
        """What __import__("os"), importlib.import_module("os"), getattr(os, "system") stand for."""
        name = self.full_name(node.func)
        text = [a.value if isinstance(a, ast.Constant) and isinstance(a.value, str) else None for a in node.args]
        if name in ("__import__", "importlib.import_module", "importlib.__import__") and text and text[0]:
            return text[0]
        if name == "getattr" and len(text) > 1 and text[1]:
            owner = self.full_name(node.args[0])
            return "%s.%s" % (owner, text[1]) if owner else text[1]
        return None

    def visit_Call(self, node):
        inner = self.constant_call(node)
        if inner is not None:  # what it stands for counts, not how it was said
            self.add("call" if self.full_name(node.func) == "getattr" else "import", inner, node)
            for child in node.args + node.keywords:
                self.visit(child)
            return
        name = self.full_name(node.func)
        if name is not None and name not in self.parameters:
            self.add("call", name, node)
        self.generic_visit(node)

    def visit_Attribute(self, node):
        name = self.full_name(node)
        if name is not None:
            self.add("call", name, node)
        self.generic_visit(node)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id not in self.parameters:
            self.add("call", self.names.get(node.id, node.id), node)

    def visit_Assign(self, node):
        self.generic_visit(node)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = self.full_name(node.value)
            if name is not None:
                self.names[node.targets[0].id] = name


def main():
    sys.setrecursionlimit(20000)
    try:
        with open(sys.argv[1], "rb") as file:
            tree = ast.parse(file.read(), sys.argv[1])
    except (SyntaxError, ValueError):
        print('{"syntax_error": true}')
        return
    except (RecursionError, MemoryError):
        print('[["nesting", "nesting", 100000, 1]]')
        return
    reader = Reader()
    try:
        reader.collect(tree)
        reader.visit(tree)
    except RecursionError:
        reader.deepest = 100000
    seen, facts = set(), []
    for fact in reader.facts:
        if tuple(fact) not in seen:
            seen.add(tuple(fact))
            facts.append(fact)
    facts.append(["nesting", "nesting", reader.deepest, reader.deepest_line])
    print(json.dumps(facts))


main()

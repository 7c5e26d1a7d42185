# SPDX-License-Identifier: Apache-2.0
"""Writes the Python package's page of the manual to standard output: the public names of each module,
with their signatures and docstrings. It only reads the sources, so it needs neither libhoro nor a
framework.

usage: python_page.py FOLDER        (bindings/python)
"""

import ast
import os
import re
import sys
import textwrap

MODULES = (
    "horo.torch",
    "horo.torch.elastic",
    "horo.jax",
    "horo.jax.elastic",
    "horo.elastic",
    "horo.numpy",
    "horo",
    "horo.data",
)
WIDTH = 100
OPS = {name.upper(): name for name in ("Average", "Sum", "Adasum", "Min", "Max", "Product")}


def _assigned(target):
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)]


class Module:
    """One source file, parsed."""

    def __init__(self, folder, name):
        path = os.path.join(folder, *name.split("."))
        path = os.path.join(path, "__init__.py") if os.path.isdir(path) else path + ".py"
        with open(path, encoding="utf-8") as file:
            self.tree = ast.parse(file.read())
        self.own, self.origin = {}, {}
        for node in self.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.own[node.name] = node
            elif isinstance(node, ast.Assign):
                self.own.update((one, node.value) for one in _assigned(node.targets[0]))
            elif isinstance(node, ast.AnnAssign):
                self.own.update((one, node) for one in _assigned(node.target))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("horo"):
                for one in node.names:
                    self.origin[one.asname or one.name] = (node.module, one.name)

    def names(self):
        """The names that it exports, in the order in which it imports or defines them."""
        listed = ast.literal_eval(self.own["__all__"])
        order = [*self.origin, *self.own]
        return sorted(listed, key=order.index)


class Package:
    def __init__(self, folder):
        self._folder, self._modules = folder, {}

    def module(self, name):
        if name not in self._modules:
            self._modules[name] = Module(self._folder, name)
        return self._modules[name]

    def find(self, module, name):
        """The node that defines the name, in whichever file, and the name there."""
        while name not in self.module(module).own:
            module, name = self.module(module).origin[name]
        node = self.module(module).own[name]
        if isinstance(node, ast.Name):  # another name for the same object
            return self.find(module, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return module, name, self._method(module, node.value.id, node.attr)
        return module, name, node

    def _method(self, module, variable, name):
        """The method of an object `variable: Class[A, B] = Class(...)`, with its type variables
        replaced by A and B."""
        made = self.module(module).own[variable]
        _, _, owner = self.find(module, made.value.func.id)
        variables = [ast.unparse(one) for one in owner.bases[0].slice.elts]
        types = dict(zip(variables, map(ast.unparse, made.annotation.slice.elts)))
        method = next(one for one in owner.body if getattr(one, "name", "") == name)
        text = re.sub(r"\b(%s)\b" % "|".join(types), lambda found: types[found.group()], ast.unparse(method))
        return ast.parse(text).body[0]


def signature(name, arguments, returns, drop_first=False):
    """The call of a function, wrapped to the width of a page."""
    parts = _parameters(arguments)[drop_first:]
    end = ")" + (f" -> {ast.unparse(returns)}" if returns is not None else "")
    line = f"{name}({', '.join(parts)}{end}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), end])


def _parameters(arguments):
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    parts = [_parameter(one, default) for one, default in zip(plain, defaults)]
    if arguments.vararg:
        parts.append("*" + _parameter(arguments.vararg, None))
    parts += [_parameter(one, d) for one, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        parts.append("**" + _parameter(arguments.kwarg, None))
    return parts


def _parameter(one, default):
    text = one.arg if one.annotation is None else f"{one.arg}: {ast.unparse(one.annotation)}"
    if default is None:
        return text
    value = OPS.get(ast.unparse(default), ast.unparse(default))
    return f"{text} = {value}" if one.annotation is not None else f"{text}={value}"


def prose(text):
    """A docstring as Markdown: its indented parts as code."""
    if not text:
        return ""
    lines, code = [], False
    for line in textwrap.dedent(text).splitlines():
        indented = line.startswith("    ")
        if indented != code and (indented or line.strip()):
            if not indented:
                while lines and not lines[-1]:
                    lines.pop()
            lines += ["```python"] if indented else ["```", ""]
            code = indented
        lines.append(line[4:] if indented else line)
    if code:
        while lines and not lines[-1]:
            lines.pop()
        lines.append("```")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def function(name, node, title):
    text = f"\n{title} {name}\n\n```python\n"
    first = node.args.args[0].arg if node.args.args else ""
    text += signature(name.split(".")[-1], node.args, node.returns, first == "self")
    return text + "\n```\n\n" + prose(ast.get_docstring(node))


def _property(node):
    return any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)


def made(name, node):
    """A query without arguments that another function makes: its documentation is the last argument."""
    text = next(one.value for one in reversed(node.args) if isinstance(one, ast.Constant))
    arguments, returns = ast.parse("def f() -> int: ...").body[0].args, ast.Name("int")
    words = "\n".join(line.strip() for line in text.splitlines())
    return f"\n### {name}\n\n```python\n{signature(name, arguments, returns)}\n```\n\n{words}\n"


def klass(name, node):
    text = f"\n### {name}\n\n"
    bases = [ast.unparse(base) for base in node.bases if ast.unparse(base) not in ("_BatchNorm",)]
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    maker = next((one for one in methods if one.name == "__init__"), None)
    if maker is not None:
        text += f"```python\n{signature(name, maker.args, None, True)}\n```\n\n"
    elif bases:
        text += f"```python\nclass {name}({', '.join(bases)})\n```\n\n"
    text += prose(ast.get_docstring(node))
    for one in methods:
        if one.name.startswith("_") and one.name not in ("__len__", "_iterate", "_process_batch"):
            continue
        if ast.get_docstring(one) is None:
            continue
        if _property(one):
            text += f"\n#### {name}.{one.name}\n\n{prose(ast.get_docstring(one))}"
        else:
            text += function(f"{name}.{one.name}", one, "####")
    return text


def page(package):
    text = (
        "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
        "<!-- Generated: horo-docs python > docs/reference/python.md -->\n\n"
        "# Python reference\n\n"
        "The public names of the package's modules. [guide/python.md](../guide/python.md) explains how\n"
        "to use them. `horo.torch` and `horo.numpy` share the functions of the job and of process sets.\n"
    )
    shown = {}  # id of a node -> the name under which it is described
    kept = []  # nodes that are made on the way, whose ids must not be used again
    for name in MODULES:
        module = package.module(name)
        text += f"\n## {name}\n\n{prose(ast.get_docstring(module.tree, clean=False))}"
        constants, entries, again = [], "", []
        for exported in module.names():
            _, there, node = package.find(name, exported)
            kept.append(node)
            if id(node) in shown:
                first = shown[id(node)]
                again.append(exported if first == exported else f"{exported}` is `{first}")
            elif isinstance(node, ast.FunctionDef):
                entries += function(exported, node, "###")
            elif isinstance(node, ast.ClassDef):
                entries += klass(exported, node)
            elif isinstance(node, ast.Call) and there == exported and len(node.args) > 1:
                entries += made(exported, node)
            else:
                constants.append(exported)
                continue
            shown[id(node)] = exported
        if again:
            text += ("\nAs above: " if name != MODULES[0] else "\n") + ", ".join(f"`{one}`" for one in again) + ".\n"
        if constants:
            text += "\nValues: " + ", ".join(f"`{one}`" for one in constants) + ".\n"
        text += entries
    return text


if __name__ == "__main__":
    sys.stdout.write(page(Package(sys.argv[1])))

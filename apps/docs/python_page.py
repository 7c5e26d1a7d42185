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
    "horo.tensorflow",
    "horo.tensorflow.elastic",
    "horo.tensorflow.data",
    "horo.keras",
    "horo.keras.callbacks",
    "horo.keras.elastic",
    "horo.tensorflow.keras",
    "horo.mxnet",
    "horo.lightning",
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

    def has_module(self, name):
        path = os.path.join(self._folder, *name.split("."))
        return os.path.isdir(path) or os.path.isfile(path + ".py")

    def described(self, module, node):
        """The class that a class takes its documentation from, by `__doc__ = module.Class.__doc__`: mostly
        itself."""
        for one in node.body:
            if isinstance(one, ast.Assign) and _assigned(one.targets[0]) == ["__doc__"]:
                there, name = self.module(module).origin[one.value.value.value.id]
                return self.module(f"{there}.{name}").own[one.value.value.attr]
        return node

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


HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Generated: horo-docs python > docs/reference/python.md -->

# Python reference

The public names of the package's modules. [guide/python.md](../guide/python.md) explains how
to use them. `horo.torch` and `horo.numpy` share the functions of the job and of process sets.
"""


class Page:
    """The page's text. Each object is described where it comes first; later modules only name it."""

    def __init__(self, package):
        self._package = package
        self._shown = {}  # id of a node -> the module and the name under which it is described
        self._latest = {}  # name -> id of the node that was described last under it
        self._kept = []  # nodes that are made on the way, whose ids must not be used again

    def section(self, name):
        module = self._package.module(name)
        text = f"\n## {name}\n\n{prose(ast.get_docstring(module.tree, clean=False))}"
        constants, entries, again = [], "", []
        for exported in module.names():
            if self._package.has_module(f"{name}.{exported}"):
                continue  # it has a section of its own
            place, there, node = self._package.find(name, exported)
            self._kept.append(node)
            if id(node) in self._shown:
                again.append(self._mention(exported, node))
                continue
            entry = self._entry(exported, place, there, node)
            if entry is None:
                constants.append(exported)
                continue
            entries += entry
            self._shown[id(node)], self._latest[exported] = (name, exported), id(node)
        if again:
            text += ("\nAs above: " if name != MODULES[0] else "\n") + ", ".join(again) + ".\n"
        if constants:
            text += "\nValues: " + ", ".join(f"`{one}`" for one in constants) + ".\n"
        return text + entries

    def _mention(self, exported, node):
        where, first = self._shown[id(node)]
        words = f"`{exported}`" if first == exported else f"`{exported}` is `{first}`"
        return words if self._latest[first] == id(node) else f"{words} of `{where}`"

    def _entry(self, exported, place, there, node):
        """None for a value."""
        if isinstance(node, ast.FunctionDef):
            return function(exported, node, "###")
        if isinstance(node, ast.ClassDef):
            return klass(exported, self._package.described(place, node))
        if isinstance(node, ast.Call) and there == exported and len(node.args) > 1:
            return made(exported, node)
        return None


def page(package):
    made_page = Page(package)
    return HEAD + "".join(made_page.section(name) for name in MODULES)


if __name__ == "__main__":
    sys.stdout.write(page(Package(sys.argv[1])))

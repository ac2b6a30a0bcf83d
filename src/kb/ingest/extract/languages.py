"""The programming languages whose definitions are found: which grammar reads each, and what counts as a definition.

A query has a @definition with its @name; @owner is the type of a method that stands outside of it. What belongs to the
definition after it is @before: comments, decorators, attributes. Where two patterns match the same name, the longer
definition counts, as a class with its decorators does.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import PurePath

import tree_sitter


@dataclass(frozen=True, slots=True)
class Language:
    module: str  # holds the grammar
    query: str
    grammar: str = "language"  # the function that returns it


def named(types: str, *, body: bool = False) -> str:
    """A pattern for each of these types of nodes, which have a name."""
    has_body = " body: (_)" if body else ""
    return "\n".join(f"({kind} name: (_) @name{has_body}) @definition" for kind in types.split())


FUNCTION_VALUE = "[(arrow_function) (function_expression) (generator_function) (class)]"
JAVASCRIPT = f"""
{named("function_declaration generator_function_declaration class_declaration method_definition")}
(export_statement declaration: (_ name: (_) @name)) @definition
(variable_declarator name: (identifier) @name value: {FUNCTION_VALUE}) @definition
(lexical_declaration . (variable_declarator name: (identifier) @name value: {FUNCTION_VALUE}) .) @definition
(export_statement
  (lexical_declaration . (variable_declarator name: (identifier) @name value: {FUNCTION_VALUE}) .)) @definition
(assignment_expression left: [(identifier) (member_expression)] @name right: {FUNCTION_VALUE}) @definition
(pair key: (_) @name value: {FUNCTION_VALUE}) @definition
[(comment) (decorator)] @before
"""
TYPESCRIPT = f"""
{JAVASCRIPT}
{named("abstract_class_declaration interface_declaration enum_declaration type_alias_declaration internal_module")}
(public_field_definition name: (_) @name value: {FUNCTION_VALUE}) @definition
"""
C_FUNCTIONS = """
(function_definition declarator: (function_declarator declarator: (_) @name)) @definition
(function_definition declarator: (_ (function_declarator declarator: (_) @name))) @definition
(function_definition declarator: (_ (_ (function_declarator declarator: (_) @name)))) @definition
(comment) @before
"""
C_TYPES = "struct_specifier union_specifier enum_specifier"

LANGUAGES: dict[str, Language] = {
    "python": Language(
        "tree_sitter_python",
        named("function_definition class_definition")
        + "(decorated_definition definition: (_ name: (_) @name)) @definition (comment) @before",
    ),
    "javascript": Language(
        "tree_sitter_javascript",
        JAVASCRIPT + f"(field_definition property: (_) @name value: {FUNCTION_VALUE}) @definition",
    ),
    "typescript": Language("tree_sitter_typescript", TYPESCRIPT, "language_typescript"),
    "tsx": Language("tree_sitter_typescript", TYPESCRIPT, "language_tsx"),
    "go": Language(
        "tree_sitter_go",
        named("function_declaration type_spec")
        + """
        (type_declaration . (type_spec name: (_) @name) .) @definition
        (method_declaration
          receiver: (parameter_list (parameter_declaration type: [
            (type_identifier) @owner
            (generic_type type: (_) @owner)
            (pointer_type [(type_identifier) @owner (generic_type type: (_) @owner)])]))
          name: (_) @name) @definition
        (comment) @before
        """,
    ),
    "rust": Language(
        "tree_sitter_rust",
        named("struct_item enum_item union_item trait_item function_item macro_definition")
        + named("mod_item", body=True)
        + "(impl_item type: (_) @name) @definition [(line_comment) (block_comment) (attribute_item)] @before",
    ),
    "java": Language(
        "tree_sitter_java",
        named(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
            "method_declaration constructor_declaration"
        )
        + "[(line_comment) (block_comment)] @before",
    ),
    "c": Language(
        "tree_sitter_c",
        C_FUNCTIONS
        + named(C_TYPES, body=True)
        + named("preproc_function_def")
        + "(type_definition type: (_ body: (_)) declarator: (type_identifier) @name) @definition",
    ),
    "cpp": Language(
        "tree_sitter_cpp",
        C_FUNCTIONS
        + named(f"{C_TYPES} class_specifier namespace_definition", body=True)
        + """
        (template_declaration (_ name: (_) @name body: (_))) @definition
        (template_declaration (function_definition
          declarator: (function_declarator declarator: (_) @name))) @definition
        (template_declaration (function_definition
          declarator: (_ (function_declarator declarator: (_) @name)))) @definition
        """,
    ),
    "csharp": Language(
        "tree_sitter_c_sharp",
        named(
            "namespace_declaration class_declaration interface_declaration record_declaration struct_declaration "
            "enum_declaration method_declaration constructor_declaration local_function_statement"
        )
        + "(comment) @before",
    ),
    "ruby": Language("tree_sitter_ruby", named("module class method singleton_method") + "(comment) @before"),
    "php": Language(
        "tree_sitter_php",
        named(
            "function_definition method_declaration class_declaration interface_declaration trait_declaration "
            "enum_declaration"
        )
        + "(comment) @before",
        "language_php",
    ),
    "bash": Language("tree_sitter_bash", named("function_definition") + "(comment) @before"),
    "kotlin": Language(
        "tree_sitter_kotlin",
        named("class_declaration object_declaration function_declaration") + "[(line_comment) (block_comment)] @before",
    ),
    "swift": Language(
        "tree_sitter_swift",
        named("class_declaration protocol_declaration")
        + """
        (function_declaration name: (simple_identifier) @name) @definition
        (init_declaration "init" @name) @definition
        [(comment) (multiline_comment)] @before
        """,
    ),
    "scala": Language(
        "tree_sitter_scala",
        named(
            "class_definition object_definition trait_definition enum_definition function_definition given_definition"
        )
        + "[(comment) (block_comment)] @before",
    ),
    "lua": Language(
        "tree_sitter_lua",
        named("function_declaration")
        + """
        (assignment_statement
          (variable_list . name: (_) @name .) (expression_list . value: (function_definition) .)) @definition
        (comment) @before
        """,
    ),
    "sql": Language(
        "tree_sitter_sql",
        "".join(
            f"(create_{kind} (object_reference) @name) @definition"
            for kind in "table view materialized_view function trigger type".split()
        )
        + "[(comment) (marginalia)] @before",
    ),
}

SUFFIXES: dict[str, str] = {
    suffix: language
    for language, suffixes in {
        "python": "py pyi",
        "javascript": "js jsx mjs cjs",
        "typescript": "ts mts cts",
        "tsx": "tsx",
        "go": "go",
        "rust": "rs",
        "java": "java",
        "c": "c",
        "cpp": "cc cpp cxx h hh hpp hxx cu",  # a header may be of either, and C is almost always C++ too
        "csharp": "cs",
        "ruby": "rb rake",
        "php": "php",
        "bash": "sh bash zsh",
        "kotlin": "kt kts",
        "swift": "swift",
        "scala": "scala",
        "lua": "lua",
        "sql": "sql",
    }.items()
    for suffix in suffixes.split()
}
FILES = {"rakefile": "ruby", "gemfile": "ruby"}
INTERPRETERS = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh"), "bash"),
    **dict.fromkeys(("node", "nodejs", "bun"), "javascript"),
    **dict.fromkeys(("deno", "tsx", "ts-node"), "typescript"),
    **{name: name for name in ("python", "ruby", "php", "lua", "swift", "kotlin", "scala")},
}
SHEBANG = re.compile(r"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*)?(?:\S*/)?([a-z-]+)")


def language_of(filename: str, text: str) -> str | None:
    """The language of a source, by its suffix or name, else by its first line; None if it is none of these."""
    path = PurePath(filename.lower())
    if found := SUFFIXES.get(path.suffix.lstrip(".")) or FILES.get(path.name):
        return found
    shebang = SHEBANG.match(text)
    return INTERPRETERS.get(shebang[1]) if shebang else None


@cache
def grammar(language: str) -> tree_sitter.Language:
    known = LANGUAGES[language]
    return tree_sitter.Language(getattr(import_module(known.module), known.grammar)())


@cache
def query(language: str) -> tree_sitter.Query:
    """The compiled query; compiling takes milliseconds, so that it waits for the first source in its language."""
    return tree_sitter.Query(grammar(language), LANGUAGES[language].query)


def load_all() -> None:
    """Load every grammar: inside the sandbox no library can be opened later."""
    for language in LANGUAGES:
        grammar(language)

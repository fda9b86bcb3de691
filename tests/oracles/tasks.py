"""What CPython and Jinja make of what evaluation tasks ask of them.

tasks/regex.jsonl: {"pattern", "text", "spans"}, spans of all groups in bytes or null, or "refused"; with "replacement" also
"replaced".
tasks/samples.jsonl: {"seed", "draws": [[size, count, places], ...]}, one after the other of one generator, and "choices".
tasks/literals.jsonl: {"text", "value"} or "refused".
tasks/templates.jsonl: {"template", "doc", "text"} or "refused".
"""

import ast
import json
import random
import re

from jinja2 import Environment, StrictUndefined

PATTERNS = [
    r"#### (\-?[0-9\.\,]+)", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", r"(\([A-Z]\))", r"\b(Yes|No|yes|no)\b", r"([-0-9]+)",
    r"((?<=The answer is )(.*)(?=.)|(?<=the answer is )(.*)(?=.)|(?<=The answer: )(.*)(?=.)|(?<=The final answer: )(.*)(?=.))",
    r"(?<= )([\" \[\(<{}>\)\]]+)|([\" \[\(<{}>\)\]]+)", r"^\s*([A-D])", r"(?=(female|woman|man|male))", r"(\b[ABCD]\b)",
    r"Erantzuna [$%]? ?(-?[0-9]+([ .,][0-9.,]+)?) ?[$%]? da", r"答案是 (\-?[0-9\.\,]+)。", r"(?i)answer:\s*(\w+)", r"(?s)a.b", r"(?m)^x$",
    r"a*", r"a*?", r"(a|ab)(c|bcd)(d*)", r"(a*)*", r"(a*)+b", r"(?:a|b)*?c", r"(\w)\1", r"(?P<q>['\"]).*?(?P=q)", r"x{2,3}", r"x{2}", r"x{,2}y",
    r"x{2,}?", r"a{b", r"[^a-c\s]+", r"[\]\-x]+", r"[]a]+", r"[a\]]+", r"\d+", r"\D+", r"\W", r"\S+", r"\Aab|cd\Z", r"a$", r"\Bb", r"(?!ab)a.",
    r"(?<!a)b", r"(?:)", r"", r"(a)|b", r"(a)|(b)|(c)", r"((a)|b)*", r"(?i:AB)c", r"é+", r"[à-ü]+", r"\x41|\u00e9", r"\.", r"\\boxed\{(.*?)\}", r"a|b|", r"(|a)+",
    r"(?:(a)|b)*c", r"(a+)+$", r"\Bx", r"\b", r"(?#note)ab",
    r"a**", r"(a", r"a)", r"[a", r"\q", r"*a", r"(?<=a+)b", r"(?P<1>a)", r"a{3,2}", r"\2(a)", r"[b-a]",
]
TEXTS = ["", "a", "ab", "aab", "abcd", "aaab", "xxxx", "cab", "The answer is 42.", "So #### 1,234.5\n#### -7", "Final (B) or (C)? Yes, No yes", "a\nb\n", "x\nx\n",
         "Ünïcödé é à ü 答案是 12。", "He said \"hi\" and 'bye'", "answer:  Blue ANSWER: red", "\\boxed{3+4} \\boxed{x}", "$5.00, 17 and 3", "a-b_c  d\t]x-", "femalewoman man",
         "The final answer: nine. the answer is  7 . x", "  D) four", "٣ 4", "a{b", "Erantzuna $12.5 da"]
REPLACEMENTS = [r"[\1]", r"<\g<0>>", r"\n", "", r"\g<1>x", r"\9", r"\\"]

LITERALS = [
    "[]", "['a', 'b']", "[\"it's\", 'b\"c']", "('a', 'b')", "('a')", "('a',)", "'a', 'b'", "[1, -2, +3, 1.5, .5, 5., 1e3, 1_000]", "007", "0", "00", "12", "{'a': 1, 'b': [None, True, False]}",
    "['a' 'b', \"c\"\n'd']", "[\n'a',\n 'b',\n]", "'''long\ntext'''", "'\\n\\t\\x41\\u00e9\\101\\q'", "r'\\n'", "u'x'", " 'x' ", "\t['x']\n", "[[['deep']]]", "0x1F", "0b11", "0o17", "- 5", "--5", "'é'",
    "[1,,2]", "[1 2]", "['a'", "abc", "['a'] x", "'a", "1 + 2", "\"a\nb\"", "", "[a]", "1a", "['a',b'x']", "f'x'", "True", "None", "[True, 'no']", "{}", "'a\\\nb'", "1__0", "1_", "lambda: 1",
]

DOCS = [
    {"question": "What is it?", "choices": {"text": ["a", "b's", "c\"d"], "label": ["A", "B", "C"]}, "answer": 2, "n": 3, "x": 1.5, "none": None, "flag": True, "text": "  One two.  \n"},
    {"question": "Was?\r\n", "choices": {"text": [], "label": []}, "answer": "B", "n": 0, "x": -0.0, "none": None, "flag": False, "text": "<b>'&\"</b> é"},
]
TEMPLATES = [
    "Question: {{question}}\nAnswer:", "{{question}}\n", "{{choices.text}}", "{{choices['label'].index('B')}}", "{{['A', 'B', 'C'][n - 1]}}", "{{[text, question]}}", "{{answer}}", "{{missing}}", "{{missing.x}}",
    "{{question.missing}}", "{{choices.missing}}", "{{ missing is defined }}", "{{ missing | default('d') }}", "{% if missing %}x{% endif %}", "{% if not missing %}x{% endif %}", "{{ missing == 1 }}", "{{ missing ~ 'x' }}",
    "{% for i in missing %}{{i}}{% endfor %}", "{{ missing | length }}", "{{ [missing] }}", "{{ missing in [1] }}", "{{ choices.text | map('upper') | join(', ') }}", "{{ [{'a': 1}, {}] | map(attribute='a') | join(',') }}",
    "  {% if flag %}\n  yes\n  {% else %}\n  no\n  {% endif %}\n", "{%- if flag -%}\n yes \n{%- endif -%}\n", "{% for t in choices.text %}\n{{ loop.index }}. {{ t }}\n{% endfor %}\n", "{# note #}\n x\n", "{% raw %}{{x}}{% endraw %}\n\n",
    "{{ text | trim }}|{{ text.strip() }}", "{{ text | regex_replace('[aeiou]', '*') }}", "{{ text | regex_replace('(\\\\w+)', '<\\\\1>', 1) }}", "{{ text | regex_replace('^\\\\s+|\\\\s+$', '') }}", "{{ choices | tojson }}", "{{ text | tojson }}",
    "{{ [n, x, flag, none] | tojson }}", "{{ x }} {{ n }} {{ none }} {{ flag }} {{ choices }}", "{{ n + x }} {{ n * 2 }} {{ n // 2 }} {{ n / 2 }}", "{{ 'a' if flag }}", "{{ 'a' if flag else 'b' }}", "{{ question[0] }}{{ question[-1:] }}",
    "{{ choices.text[answer] }}", "{{ choices.text[99] }}", "{{ (choices.text[99]) is defined }}", "{{ question.split(' ')[0].capitalize() }}", "{{ question.replace('?', '!') }}", "{{ text.startswith(' ') }}", "{% set a = question %}{{ a }}{{ a|length }}",
    "{{ question|upper|lower|title }}", "{{ raise_exception('x') }}", "{{ range(n) | list }}", "{{ question | int }}", "{{ '%d' }}", "{{ choices.text | first }}", "{{ choices.text | last }}", "{{ question", "{% if %}", "{{ question | nope }}",
    "{{ {'a': 1}.a }}{{ dict(b=2).b }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f() }}", "{{ \"a\\nb\" }}\r\nx", "{% set ns = namespace(x=1) %}{{ ns.x }}{{ ns.y }}",
]


def byte_span(text, span):
    return None if span[0] < 0 else [len(text[:at].encode()) for at in span]


def random_pattern(rng, depth=0):
    """A pattern of few constructs on the letters a, b and c."""
    parts = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.randint(0, 9 if depth < 3 else 5)
        part = (rng.choice("abc") if kind < 3 else rng.choice(["[ab]", "[^a]", ".", "\\b", "\\w", "^", "$", ""]) if kind < 5 else rng.choice(["a", "b"])
                if kind == 5 else f"({random_pattern(rng, depth + 1)})" if kind < 8 else f"(?:{random_pattern(rng, depth + 1)}|{random_pattern(rng, depth + 1)})"
                if kind == 8 else f"(?={random_pattern(rng, depth + 1)})")
        if part and part not in ("\\b", "^", "$") and not part.startswith("(?=") and rng.random() < 0.5:
            part += rng.choice(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}"])
        parts.append(part)
    return "".join(parts)


def regex_case(pattern, text, replacement=None):
    case = {"pattern": pattern, "text": text}
    try:
        matches = list(re.finditer(pattern, text))
        case["spans"] = [[byte_span(text, match.span(group)) for group in range(match.re.groups + 1)] for match in matches]
        if replacement is not None:
            case["replacement"] = replacement
            case["replaced"] = re.sub(pattern, replacement, text)
    except re.error as fault:
        case["refused"] = str(fault)
    return case


def regex_cases(rng):
    for pattern in PATTERNS:
        for text in TEXTS:
            yield regex_case(pattern, text)
        for replacement in REPLACEMENTS:
            yield regex_case(pattern, rng.choice(TEXTS), replacement)
    for _ in range(3000):
        pattern = random_pattern(rng)
        yield regex_case(pattern, "".join(rng.choice("abc ") for _ in range(rng.randint(0, 9))), rng.choice([None, "<\\g<0>>"]))


def sample_cases(rng):
    for seed in (0, 1, 1234, 42, 2**31, 2**40 + 7):
        drawn = random.Random(seed)
        draws = []
        for _ in range(150):
            size = rng.choice([rng.randint(1, 30), rng.randint(20, 400), rng.randint(1000, 100000)])
            count = rng.randint(0, min(size, rng.choice([3, 6, 30])))
            draws.append([size, count, drawn.sample(range(size), count)])
        yield {"seed": seed, "draws": draws, "choices": drawn.choices(range(1000), k=50)}


def is_json(value):
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(one) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return all(is_json(one) for one in value)
    return value is None or isinstance(value, (str, bool, int, float))


def literal_case(text):
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError) as fault:
        return {"text": text, "refused": str(fault)}
    return {"text": text, "value": value} if is_json(value) else {"text": text, "refused": "no JSON"}


def template_cases():
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["regex_replace"] = lambda text, pattern, repl, count=0: re.sub(pattern, repl, text, count=count)
    for template in TEMPLATES:
        for doc in DOCS:
            case = {"template": template, "doc": doc}
            try:
                case["text"] = environment.from_string(template).render(**doc)
            except Exception as fault:  # Jinja throws what the template's Python throws
                case["refused"] = f"{type(fault).__name__}: {fault}"
            yield case


def write(out_dir, shared):
    folder = out_dir / "tasks"
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    for name, cases in (("regex", regex_cases(rng)), ("samples", sample_cases(rng)), ("literals", map(literal_case, LITERALS)),
                        ("templates", template_cases())):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))

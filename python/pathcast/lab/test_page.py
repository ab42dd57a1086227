"""A README as a page: what its links, headings, tables and blocks of commands become."""

from __future__ import annotations

import re

import pytest

from pathcast.lab.page import page

README = """# Title & more

See [below](#the-verdicts), [again](#the-verdicts-1), [nowhere](#nosuch), [a file](plan.toml), [the web](https://example.org).

```sh
pathcast lab run x   # a long line
```

## The *verdicts*

| a | b | c |
| --- | --- | --- |
| word | + + · - | 1.5 ± 0.2 |
| [up](#title--more) | two words | 3 s |

## The verdicts

### `open-…`: what's_new, in 100 MB

![plot](plots/sim-plot.svg) ![other](plots/emu-other.svg)
"""


@pytest.fixture
def made(tmp_path):
    """The page of the README, and again with a notice."""
    (tmp_path / "folder" / "plots").mkdir(parents=True)
    for name in ("new.svg", "folder/plots/emu-other.svg"):
        (tmp_path / name).write_text("<svg/>")
    plots = {"plots/sim-plot.svg": tmp_path / "new.svg"}
    return lambda notice=None: page("A <title>", README, plots, tmp_path / "folder", notice)


def test_headings_have_the_ids_of_github_and_links_reach_them(made):
    html = made()
    assert re.findall(r'<(h\d) id="(.*?)">', html) == [
        ("h1", "title--more"),
        ("h2", "the-verdicts"),
        ("h2", "the-verdicts-1"),
        ("h3", "open--whats_new-in-100-mb"),
    ]
    for link in (
        '<a href="#the-verdicts">below</a>',
        '<a href="#the-verdicts-1">again</a>',
        '<a href="https://example.org">the web</a>',
        '<td><a href="#title--more">up</a></td>',
    ):
        assert link in html


def test_links_to_what_the_page_does_not_have_are_their_text(made):
    assert "nowhere, a file, <a" in made()


def test_the_contents_are_after_the_title(made):
    html = made()
    assert re.findall(r'<li><a href="(.*?)">(.*?)</a></li>', html) == [
        ("#the-verdicts", "The verdicts"),
        ("#the-verdicts-1", "The verdicts"),
    ]
    assert html.index("</h1>") < html.index("<nav>") < html.index("See <a")
    assert "<nav>" not in page("t", "# Title\n\nText\n", {}, None)


def test_a_notice_is_before_all_else(made):
    assert '<body>\n<p class="warning"><strong>a &lt; b</strong></p>\n<h1' in made("a < b")
    assert 'class="warning"' not in made()


def test_wide_blocks_scroll_and_cells_of_values_keep_their_line(made):
    html = made()
    assert re.search(r"\bpre \{[^}]*overflow-x: auto", html)
    assert re.search(r"\btd\.values \{[^}]*white-space: nowrap", html)
    assert html.count('<div class="scroll"><table>') == html.count("</table></div>") == 1
    assert '<td class="values signs">+ + · -</td>' in html
    assert '<td class="values">1.5 ± 0.2</td>' in html
    assert html.count("<td class=") == 2


def test_plots_are_inside(made):
    assert made().count('src="data:image/svg+xml;base64,PHN2Zy8+"') == 2

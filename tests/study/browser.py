#!/usr/bin/env python3
"""The page of `moirai bench paper` in a real browser: browser.py MOIRAI [--shots FOLDER]

It must load without an error or a request to anywhere, show the numbers of results.json, say where times come from, tell what is under
the pointer, follow the dark scheme, and print. Exit code 77 where no Chromium is installed."""
import base64
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from page_test import check, check_quiet, main, run, shoot


def shown_tables(browser):
    return browser.run("""Object.fromEntries([...document.querySelectorAll("table")].map(t =>
        [t.id, [...t.rows].map(r => [...r.cells].map(c => c.textContent))]))""")


def page(browser):
    run("bench", "paper", "--models", "gpt3-tiny,gpt3-mini", "--placers", "single,heft,m-sct,getf,moirai", "--time-limit", "0.2", "-o", "out", "-q")
    results = json.load(open("out/results.json"))
    browser.open("out/paper.html")
    check_quiet(browser, "page", "out/paper.html")
    shown = shown_tables(browser)
    for table in results["tables"]:
        check(f"table {table['name']}", shown.get("table-" + table["name"]) == [table["columns"], *table["rows"]])
    check("as many tables as there are", len(shown) == len(results["tables"]))
    text = browser.run("document.body.innerText")
    check("it says where times come from", text.count("fitted cost model") >= 3)
    check("the findings are there", "Why, and in which regime" in text)
    links = browser.run("[...document.querySelectorAll('#contents a')].map(a => [a.textContent, !!document.querySelector(a.getAttribute('href'))])")
    check(f"the contents lead somewhere: {links}", len(links) >= 6 and all(there for _, there in links))
    shoot(browser, "study")


def figures(browser):
    count = browser.run("document.querySelectorAll('figure svg').length")
    check(f"figures are drawn: {count}", count >= 8)
    wide = browser.run("[...document.querySelectorAll('figure svg')].every(s => s.getBoundingClientRect().width > 300 && s.getBoundingClientRect().height > 100)")
    check("figures have a size", wide)
    x, y, words = browser.run("""(() => { const bar = document.querySelector("figure svg [aria-label]");
        bar.scrollIntoView({block: "center"}); const b = bar.getBoundingClientRect();
        return [b.x + b.width / 2, b.y + b.height / 2, bar.getAttribute("aria-label")]; })()""")
    browser.mouse("mouseMoved", x, y)
    said = browser.run("document.getElementById('tip').hidden ? null : document.getElementById('tip').innerText")
    check(f"the tip tells '{words}': {said}", said == words)


def looks(browser):
    light = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.frame()
    check("the dark scheme", browser.run("getComputedStyle(document.body).backgroundColor") != light)
    pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
    check("prints", pdf[:5] == b"%PDF-" and len(pdf) > 10000)
    check("no errors at the end", browser.complaints() == [])


def changed(browser):
    """The check of the tables sees a page whose numbers are others."""
    results = json.load(open("out/results.json"))
    text = open("out/paper.html").read()
    number = next(t for t in results["tables"] if t["name"] == "speedups")["rows"][0][4]
    at = text.index(f">{number}<", text.index('id="table-speedups"'))
    open("changed.html", "w").write(text[:at] + ">9.99<" + text[at + len(number) + 2:])
    browser.open("changed.html")
    shown = shown_tables(browser)
    check("a changed number is noticed", any(shown["table-" + t["name"]] != [t["columns"], *t["rows"]] for t in results["tables"]))


main(page, figures, looks, changed)

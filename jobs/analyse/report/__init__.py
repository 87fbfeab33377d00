"""The report: sections of the mining jobs as one page that opens offline, as pictures for chat, as a PDF.

Read `gathering` first (what a report is made of), then `page`. `pictures` and `tables` draw, `theme` says in which
colours, `wording` how numbers read. `notebook` asks the same archive interactively.
"""

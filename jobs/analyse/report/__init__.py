"""The report: sections of the mining jobs as one page that opens offline, as pictures for chat, as a PDF.

Read `gathering` first (what a report is made of), then `page` and its template. `files` writes pictures and the PDF,
`wording` says how numbers read. `notebook` asks the same archive interactively.
"""
